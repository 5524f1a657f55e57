import { setTimeout as delay } from 'node:timers/promises';

/** Milliseconds between two reads: a twentieth of the wait so far, within these bounds. */
const MIN_PAUSE_MS = 20;
const MAX_PAUSE_MS = 250;

/** The clock of a wait, and its pauses; another one in tests. */
interface WaitTime {
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
 * Reads a state until it is settled, the time is over or the caller disconnects: always once, and once more at the end.
 *
 * @param seconds the maximum wait
 * @returns the last state read, settled or not
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
    const pause = Math.min(Math.max((now - begun) / 20, MIN_PAUSE_MS), MAX_PAUSE_MS);
    await time.pause(Math.min(pause, end - now), signal).catch(() => undefined);
  }
}
