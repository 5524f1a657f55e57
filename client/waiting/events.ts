import type { Methods, Schemas } from '../methods.js';
import { checkMember } from '../sending/answer.js';
import { pause } from '../sending/pause.js';

/** An event of the feed. */
export type FeedEvent = Schemas['FeedEventResponse'];

export interface EventsOptions {
  /** A cursor, `0` for the oldest event (the default), or `latest` for the events from now on. */
  after?: string | undefined;
  /** Only events of these types. Defaults to all. */
  types?: readonly FeedEvent['type'][] | undefined;
  /** Only events about this subject, such as `clients/C-1`, under any id that it has or had. */
  subject?: string | undefined;
  /** Ends the iteration without an error. */
  signal?: AbortSignal | undefined;
  /** Stores a cursor: of each handled event, and of positions after events that the filter left out. */
  save?: ((cursor: string) => unknown) | undefined;
}

const WAIT_SECONDS = 50;
const PAGE_SIZE = 200;

/** The least time between two requests without an event: a service that stops answers immediately. */
const MIN_WAIT_MS = 1_000;

/**
 * Follows the feed in its order, by long polls, and reconnects with increasing backoff up to 30 seconds. An event is
 * handled once the loop asks for the next one; only then `save` is called, and awaited, before that one is read. End it
 * by its signal: `return()` of the generator waits for the poll in flight.
 *
 * @param first sends the first request, with finite attempts, so that a wrong url does not stay silent
 * @param endless sends the others, without an end
 * @throws {NotebridgeError} `cursor-gone` with `more.continueAfter`, and every other error that a repetition does not solve
 */
export async function* readEvents(
  first: Methods['GET'],
  endless: Methods['GET'],
  { after = '0', types, subject, signal, save = () => undefined }: EventsOptions,
): AsyncGenerator<FeedEvent, void, undefined> {
  let GET = first;
  let cursor = after;
  const filter = { limit: PAGE_SIZE, types: types?.join(',') || undefined, subject };
  try {
    while (!signal?.aborted) {
      const begun = performance.now();
      // A lost answer must not lose events: the first request gets a cursor, and only the next one waits.
      const headers = cursor === 'latest' ? {} : { prefer: `wait=${WAIT_SECONDS}` };
      const { data } = await GET('/v1/events', { params: { query: { ...filter, after: cursor } }, headers, signal });
      checkMember(data, 'items', Array.isArray);
      GET = endless;
      for (const event of data.items) {
        yield event;
        cursor = event.cursor;
        await save(cursor);
        if (signal?.aborted) return;
      }
      const isSkipped = data.cursor !== cursor;
      cursor = data.cursor;
      if (isSkipped) await save(cursor);
      const isIdle = data.items.length === 0 && !isSkipped && data.nextCursor === null;
      if (isIdle) await pause(MIN_WAIT_MS - (performance.now() - begun), signal);
    }
  } catch (error) {
    if (!signal?.aborted || error !== signal.reason) throw error;
  }
}
