/**
 * What some work resolves to, or what `late` gives when it takes longer. The work itself goes on, and what it rejects
 * with afterwards is dropped.
 *
 * @param ms milliseconds
 * @param late may throw
 */
export async function within<T, Late>(ms: number, work: T | Promise<T>, late: () => Late): Promise<T | Late> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  try {
    return await Promise.race([work, over.then(late)]);
  } finally {
    clearTimeout(timer);
  }
}
