import { within } from '../config/within.js';
import { Problem } from '../http/problem.js';

/** Milliseconds without a byte after which an upload is given up. */
export const STALLED_MS = 30_000;

/**
 * Passes chunks on as they come, and says so; a sender that falls silent is given up.
 *
 * @param source the chunks of an upload; destroyed by whoever reads when this throws
 * @param alive called for every chunk
 * @throws {Problem} 408 `upload-stalled`
 */
export async function* signsOfLife(
  source: AsyncIterable<Buffer>,
  alive: () => void,
  stalledMs = STALLED_MS,
): AsyncGenerator<Buffer> {
  const chunks = source[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await within(stalledMs, chunks.next(), () => giveUp(stalledMs));
      if (next.done) return;
      alive();
      yield next.value;
    }
  } finally {
    // Not awaited: a sender that is silent would keep it waiting.
    void chunks.return?.()?.catch(() => undefined);
  }
}

function giveUp(ms: number): never {
  throw new Problem(408, 'upload-stalled', `No byte of the upload came for ${ms / 1_000} seconds; send it again.`);
}
