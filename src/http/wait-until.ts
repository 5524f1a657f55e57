import { setTimeout as delay } from 'node:timers/promises';

/** Milliseconds between two looks: a twentieth of the wait so far, within these bounds. */
const SHORTEST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 250;

/**
 * Reads a state again and again until it is settled, the time is over or the caller is gone. It always reads once,
 * and once more when the time is over.
 *
 * @param seconds to wait at most; 0 reads once
 * @param read looks at the state; its errors pass through
 * @param done answers whether the state is settled
 * @param signal aborted when the caller hangs up (`@HangUp()`)
 * @returns what was read last, settled or not
 */
export async function waitUntil<T>(
  seconds: number,
  read: () => Promise<T>,
  done: (state: T) => boolean,
  signal?: AbortSignal,
): Promise<T> {
  const begun = performance.now();
  const end = begun + seconds * 1000;
  for (;;) {
    const state = await read();
    const now = performance.now();
    if (now >= end || done(state) || signal?.aborted) return state;
    const pause = Math.min(Math.max((now - begun) / 20, SHORTEST_PAUSE_MS), LONGEST_PAUSE_MS);
    await delay(Math.min(pause, end - now), undefined, { signal }).catch(() => undefined);
  }
}
