import type { Job } from 'bullmq';
import { within } from '../../config/within.js';
import type { Notification } from '../backend/queue-names.js';

/** Milliseconds that the store has for it: one that fell silent holds up no work, and no shutdown. */
const PATIENCE_MS = 500;

/** Takes the notification off, so that a ring during the work that follows is kept. Failing to is harmless: the poller notifies. */
export async function releaseDeduplicationKey(job: Job<Notification>): Promise<void> {
  const taken = job.removeDeduplicationKey().catch(() => false);
  await within(PATIENCE_MS, taken, () => false);
}
