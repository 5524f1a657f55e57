import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../config/clock.js';
import { isDatabaseUnavailable } from '../http/problem/fault.js';

/** Milliseconds for which a database that is there, and refuses, is tried. */
const REFUSED_MS = 120_000;

/** Milliseconds between two tries, at most: sooner than a poll takes up what seems to have no answer. */
const LONGEST_PAUSE_MS = 500;

/**
 * Stores what only this process knows, such as the answer to a create: for as long as the database is away, and for two
 * minutes when it is there and refuses.
 *
 * @param store must bear to be run again
 * @param pause between two tries; rejects to give up
 */
export async function retryUntilStored<T>(
  store: () => Promise<T>,
  clock: Pick<Clock, 'monotonicMs'>,
  pause: (ms: number) => Promise<unknown> = delay,
): Promise<T> {
  let refusedSince: number | undefined;
  for (let tries = 1; ; tries++) {
    try {
      return await store();
    } catch (error) {
      const now = clock.monotonicMs();
      refusedSince = isDatabaseUnavailable(error) ? undefined : (refusedSince ?? now);
      if (refusedSince !== undefined && now - refusedSince > REFUSED_MS) throw error;
      await pause(Math.min(LONGEST_PAUSE_MS, 100 * tries));
    }
  }
}

/**
 * Runs work once more when the database went away meanwhile: its commit may stand although it was not confirmed.
 *
 * @param work must find what it did itself before
 */
export async function confirmed<T>(work: () => Promise<T>): Promise<T> {
  return work().catch((error: unknown) => {
    if (!isDatabaseUnavailable(error)) throw error;
    return work();
  });
}
