import { PassThrough, type Readable } from 'node:stream';
import { finished } from 'node:stream/promises';

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
  request.unpipe().resume();
  await finished(request, { writable: false, cleanup: true, signal: AbortSignal.timeout(ms) }).catch(() => undefined);
}
