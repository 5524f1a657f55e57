import { within } from '../../config/within.js';
import { Problem } from '../../http/problem/problem.js';

/** Milliseconds without a byte after which an upload is given up. */
export const STALLED_MS = 30_000;

/**
 * Passes on what comes of an upload, its parts or their chunks; a sender that falls silent is given up.
 *
 * @param source destroyed by whoever reads when this throws
 * @throws {Problem} 408 `upload-stalled`
 */
export async function* signsOfLife<T>(source: AsyncIterable<T>, stalledMs = STALLED_MS): AsyncGenerator<T> {
  const items = source[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await within(stalledMs, items.next(), () => giveUp(stalledMs));
      if (next.done) return;
      yield next.value;
    }
  } finally {
    // Not awaited: a sender that is silent would keep it waiting.
    void items.return?.()?.catch(() => undefined);
  }
}

function giveUp(ms: number): never {
  throw new Problem(408, 'upload-stalled', `No byte of the upload came for ${ms / 1_000} seconds; send it again.`);
}
