import { once } from 'node:events';
import { PassThrough, type Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';

/** How long a sender may continue after a failure, because most read the answer only at the end. */
const LINGER_MS = 5_000;

/** A body as a stream that may be destroyed: destroying the request would cut the connection of its answer. */
export function sourceOf(request: Readable): Readable {
  const source = new PassThrough();
  request.once('error', (error) => source.destroy(error));
  request.once('close', () => {
    if (!request.readableEnded) source.destroy(new Error('The sender is gone.'));
  });
  return request.pipe(source);
}

/** Drops what still comes for a while, so that a sender in the middle of its body gets the answer and no reset. */
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
