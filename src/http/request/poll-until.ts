import { setTimeout as delay } from 'node:timers/promises';

/** Milliseconds between two looks: a twentieth of the wait so far, within these bounds. */
const SHORTEST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 250;

/** What a wait is measured by, and what passes its pauses; another one in tests. */
export interface WaitTime {
  /** Milliseconds that never go back. */
  nowMs(): number;
  /** Rejects when the signal is aborted. */
  pause(ms: number, signal?: AbortSignal): Promise<unknown>;
}

const REAL_TIME: WaitTime = {
  nowMs: () => performance.now(),
  pause: (ms, signal) => delay(ms, undefined, { signal }),
};

/**
 * Reads a state again and again until it is settled, the time is over or the caller is gone. It always reads once,
 * and once more when the time is over.
 *
 * @param seconds to wait at most; 0 reads once
 * @param read looks at the state; its errors pass through
 * @param done answers whether the state is settled
 * @param signal aborted when the caller hangs up (`@ClientDisconnect()`)
 * @returns what was read last, settled or not
 */
export async function pollUntil<T>(
  seconds: number,
  read: () => Promise<T>,
  done: (state: T) => boolean,
  signal?: AbortSignal,
  time: WaitTime = REAL_TIME,
): Promise<T> {
  const begun = time.nowMs();
  const end = begun + seconds * 1000;
  for (;;) {
    const state = await read();
    const now = time.nowMs();
    if (now >= end || done(state) || signal?.aborted) return state;
    const pause = Math.min(Math.max((now - begun) / 20, SHORTEST_PAUSE_MS), LONGEST_PAUSE_MS);
    await time.pause(Math.min(pause, end - now), signal).catch(() => undefined);
  }
}
