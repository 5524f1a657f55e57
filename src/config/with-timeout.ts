import { Clock } from './clock.js';

/**
 * Waits for work, up to a timeout. Late work continues, but its result or error is ignored.
 *
 * @param onTimeout makes the result after the timeout; may throw
 * @param clock measures the timeout; by default the machine's
 */
export async function withTimeout<T, Late>(
  work: T | Promise<T>,
  ms: number,
  onTimeout: () => Late,
  clock: Pick<Clock, 'after'> = new Clock(),
): Promise<T | Late> {
  let cancel = () => {};
  const timeout = new Promise<void>((resolve) => {
    cancel = clock.after(ms, resolve);
  });
  try {
    return await Promise.race([work, timeout.then(onTimeout)]);
  } finally {
    cancel();
  }
}
