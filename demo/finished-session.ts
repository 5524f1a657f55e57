import { setTimeout as delay } from 'node:timers/promises';
import type { Schemas } from '../client/methods.js';
import { CliFault } from '../src/cli/api/cli-fault.js';
import type { Stage } from './stage.js';

const POLL_MS = 200;
/** Far longer than a slow machine needs. */
const TIMEOUT_MS = 180_000;

/** Waits until the EHR finds the session of an appointment with its notes. */
export async function finishedSession(
  { ehr, signal }: Stage,
  appointment: string,
): Promise<Schemas['SessionResponse']> {
  const giveUpAt = performance.now() + TIMEOUT_MS;
  for (;;) {
    const query = { appointment };
    const [session] = (await ehr.GET('/v1/sessions', { params: { query }, signal })).data.items;
    if (session?.state === 'Done' && session.notesRevision > 0) return session;
    if (performance.now() > giveUpAt) {
      throw new CliFault(
        `The session is ${session?.state ?? 'not announced yet'} after ${TIMEOUT_MS / 1_000} s: see service.log.`,
      );
    }
    await delay(POLL_MS, undefined, { signal });
  }
}
