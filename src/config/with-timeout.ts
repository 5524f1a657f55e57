import { Clock } from './clock.js';

/**
 * Waits for work, up to a time limit. Late work continues, but its result or error is ignored.
 *
 * @param late makes the result after the limit; may throw
 * @param clock measures the limit; by default the machine's
 */
export async function within<T, Late>(
  ms: number,
  work: T | Promise<T>,
  late: () => Late,
  clock: Pick<Clock, 'after'> = new Clock(),
): Promise<T | Late> {
  let cancel = () => {};
  const limit = new Promise<void>((resolve) => {
    cancel = clock.after(ms, resolve);
  });
  try {
    return await Promise.race([work, limit.then(late)]);
  } finally {
    cancel();
  }
}
