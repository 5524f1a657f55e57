/**
 * Waits for work, up to a time limit. Late work continues, but its result or error is ignored.
 *
 * @param late makes the result after the limit; may throw
 */
export async function within<T, Late>(ms: number, work: T | Promise<T>, late: () => Late): Promise<T | Late> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  try {
    return await Promise.race([work, limit.then(late)]);
  } finally {
    clearTimeout(timer);
  }
}
