import { once } from 'node:events';
import { PassThrough, type Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';

/** Milliseconds for which a sender may go on after it failed: only at the end most listen for an answer. */
const LINGER_MS = 5_000;

/**
 * A stream of a request's body that may be destroyed without harm: destroying the request itself would cut the
 * connection on which its answer has to leave. The pace of the reader is the pace of the request.
 */
export function sourceOf(request: Readable): Readable {
  const source = new PassThrough();
  request.once('error', (error) => source.destroy(error));
  request.once('close', () => {
    if (!request.readableEnded) source.destroy(new Error('The sender is gone.'));
  });
  return request.pipe(source);
}

/**
 * Reads on and drops what comes, so that a sender in the middle of its body gets to the answer instead of a reset.
 *
 * @param ms to go on at most
 */
export async function dropRest(request: Readable, ms = LINGER_MS): Promise<void> {
  if (request.readableEnded || request.destroyed) return;
  const done = new AbortController();
  const { signal } = done;
  const ended = Promise.race([once(request, 'end', { signal }), once(request, 'close', { signal })]);
  request.unpipe().resume();
  await Promise.race([ended, delay(ms, undefined, { signal })]).catch(() => undefined);
  done.abort();
  ended.catch(() => undefined);
}
