import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../config/clock.js';
import { isDatabaseUnavailable } from '../errors/database-fault.js';

/** How long to retry while the database is available and rejects the work. */
const REJECTED_MS = 120_000;

/** Maximum backoff. Shorter than the interval of the polls, which take work that is not stored as unanswered. */
const MAX_BACKOFF_MS = 500;

/**
 * Retries until something that only this process knows is stored, such as the answer to a create. Gives up after two
 * minutes of rejections, but not while the database is unavailable.
 *
 * @param store may run more than once
 * @param pause waits between two attempts; rejects to end them
 */
export async function retryUntilStored<T>(
  store: () => Promise<T>,
  clock: Pick<Clock, 'monotonicMs'>,
  pause: (ms: number) => Promise<unknown> = delay,
): Promise<T> {
  let rejectedSince: number | undefined;
  for (let tries = 1; ; tries++) {
    try {
      return await store();
    } catch (error) {
      const now = clock.monotonicMs();
      rejectedSince = isDatabaseUnavailable(error) ? undefined : (rejectedSince ?? now);
      if (rejectedSince !== undefined && now - rejectedSince > REJECTED_MS) throw error;
      await pause(Math.min(MAX_BACKOFF_MS, 100 * tries));
    }
  }
}

/**
 * Runs work again after the database was unavailable, because an unconfirmed commit may have taken effect.
 *
 * @param work must recognise its own earlier effect
 */
export async function confirmed<T>(work: () => Promise<T>): Promise<T> {
  return work().catch((error: unknown) => {
    if (!isDatabaseUnavailable(error)) throw error;
    return work();
  });
}
