import { setTimeout as delay } from 'node:timers/promises';
import { withQuery } from '../src/cli/api/api.js';
import { CliFault } from '../src/cli/api/cli-fault.js';
import type { SessionResponse } from '../src/sessions/model/session-view.js';
import type { Stage } from './stage.js';

const POLL_MS = 200;
/** Ends a hang: a slow machine is far below it. */
const PATIENCE_MS = 180_000;

/** Waits until the EHR finds the session of an appointment with its notes. */
export async function finishedSession({ ehr, signal }: Stage, appointment: string): Promise<SessionResponse> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  for (;;) {
    const path = withQuery('/v1/sessions', { appointment });
    const [session] = (await ehr.get<{ items: SessionResponse[] }>(path, { signal })).items;
    if (session?.state === 'Done' && session.notesRevision > 0) return session;
    if (performance.now() > giveUpAt) {
      throw new CliFault(
        `The session is ${session?.state ?? 'not heard of'} after ${PATIENCE_MS / 1_000} s: see service.log.`,
      );
    }
    await delay(POLL_MS, undefined, { signal });
  }
}
