import { Problem } from '../http/problem/problem.js';

/** Starts at the oldest event that is still available. */
export const OLDEST = '0';

/** Starts with the events from now on. */
export const LATEST = 'latest';

/** A position in the feed: its epoch, and the number of the last event read. */
export interface FeedPosition {
  epoch: bigint;
  number: bigint;
}

/** The beginning and the end of the feed of this database, as numbers of events. */
export interface FeedBounds {
  epoch: bigint;
  /** The number up to which retention has removed events. */
  prunedTo: bigint;
  /** The number of the newest event. */
  head: bigint;
}

const CURSOR = /^(\d{1,18})-(\d{1,18})$/;

export const cursorOf = (epoch: bigint, number: bigint): string => `${epoch}-${number}`;

/** Unpacks a cursor; undefined for `OLDEST`, `LATEST` and a text that is not a cursor. */
export function positionOf(text: string): FeedPosition | undefined {
  const [, epoch, number] = CURSOR.exec(text) ?? [];
  return epoch === undefined || number === undefined ? undefined : { epoch: BigInt(epoch), number: BigInt(number) };
}

/** The number of the event that a valid cursor names. */
export const numberOf = (cursor: string): bigint => positionOf(cursor)?.number ?? 0n;

/**
 * Chooses where a reader continues: after the later of its cursors, because readers that page often repeat their first
 * `after`. Without a cursor it starts at `OLDEST` or `LATEST`.
 *
 * @throws {Problem} 400 `bad-cursor` if one of them is not a cursor, because a silent restart would repeat every event
 */
export function startOf(after: string = OLDEST, page: string = after): string {
  const places = { '/after': after, '/cursor': page };
  for (const [pointer, text] of Object.entries(places)) {
    if (text === OLDEST || text === LATEST || positionOf(text)) continue;
    const detail = 'The cursor does not belong to the feed. Use the cursor of a page or an event, 0 or latest.';
    throw new Problem('bad-cursor', detail, { pointer });
  }
  const [one, other] = [positionOf(after), positionOf(page)];
  if (!one || !other) return other ? page : after;
  const isLater = one.epoch === other.epoch ? other.number > one.number : other.epoch > one.epoch;
  return isLater ? page : after;
}

/**
 * Checks that a reader can continue after a position without missing an event.
 *
 * @throws {Problem} 410 `cursor-gone` with `continueAfter`, the cursor from which all available events follow
 */
export function checkPosition({ epoch, number }: FeedPosition, bounds: FeedBounds): void {
  const fault =
    epoch !== bounds.epoch
      ? 'The cursor is from before the database was restored, so events may differ from those that you read.'
      : number > bounds.head
        ? 'The cursor is ahead of the feed: it is mistyped, or the database has lost events that you read.'
        : number < bounds.prunedTo
          ? 'Events after this cursor were deleted by retention before you read them.'
          : undefined;
  if (fault === undefined) return;
  const continueAfter = cursorOf(bounds.epoch, bounds.prunedTo);
  const advice = `Read the current state of what you mirror, then continue after ${continueAfter}.`;
  throw new Problem('cursor-gone', `${fault} ${advice}`, { extensions: { continueAfter } });
}

/** True for the error of `checkPosition`. */
export const isCursorGone = (error: unknown): boolean => error instanceof Problem && error.type === 'cursor-gone';
