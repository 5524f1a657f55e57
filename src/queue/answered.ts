import type { Job } from 'bullmq';
import type { Ring } from './queue-names.js';

/** Takes the bell off, so that a ring during the work that follows is kept. Failing to is harmless: the sweep rings. */
export async function answered(job: Job<Ring>): Promise<void> {
  await job.removeDeduplicationKey().catch(() => false);
}
