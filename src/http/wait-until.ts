import { setTimeout as delay } from 'node:timers/promises';

/** Milliseconds between two looks: the first is short, since most waits are. */
const FIRST_PAUSE_MS = 100;
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
  const end = performance.now() + seconds * 1000;
  let pause = FIRST_PAUSE_MS;
  for (;;) {
    const state = await read();
    const left = end - performance.now();
    if (left <= 0 || done(state) || signal?.aborted) return state;
    await delay(Math.min(pause, left), undefined, { signal }).catch(() => undefined);
    pause = Math.min(pause * 1.25, LONGEST_PAUSE_MS);
  }
}
