import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { numberCommitted } from './commit-order.js';
import type { FeedEventResponse, FeedFilter, FeedPageResponse } from './feed.dto.js';
import { checkPosition, cursorOf, type FeedBounds, type FeedPosition, LATEST, positionOf } from './feed-cursor.js';
import { kindOf, SubjectIds } from './subject-ids.js';

/** Maximum events that one read numbers, so that the first reader of a long feed gets a quick answer. */
const MAX_NUMBERED = 1_000;

/** Maximum events that one page of a filtered feed considers. */
const MAX_CONSIDERED = 1_000;

/** Events on a page of an export. */
const EXPORT_PAGE = 500;

const NUMBERING = {
  lock: 727_003,
  // ORDER BY selects the partial index. Without it the planner may expect no cursor on any event, and read the table.
  pending: 'SELECT 1 FROM feed_events WHERE cursor IS NULL ORDER BY id LIMIT 1',
  assign: `
    UPDATE feed_events f SET cursor = last.cursor + fresh.place
    FROM (SELECT coalesce(max(cursor), 0) AS cursor FROM feed_events) AS last,
      (SELECT id, row_number() OVER (ORDER BY id) AS place FROM
        (SELECT id FROM feed_events WHERE cursor IS NULL ORDER BY id LIMIT $1) AS oldest) AS fresh
    WHERE f.id = fresh.id`,
};

/**
 * The offset that retention adds to the numbers of events that a legal hold keeps: they become negative, and keep their
 * order. Readers of the feed no longer see them, only exports do.
 */
export const KEPT_CURSORS = -(2n ** 62n);

/** Retention deletes the oldest events and never the newest, so the oldest remaining event shows which were deleted. */
const BOUNDS = `
  SELECT (SELECT coalesce(max(epoch), 1) FROM feed_epochs) AS epoch,
    (SELECT coalesce(min(cursor), 1) - 1 FROM feed_events WHERE cursor > 0) AS oldest,
    (SELECT coalesce(max(cursor), 0) FROM feed_events) AS head`;

const COLUMNS = 'cursor, type, at, subject, data';

/** At most $2 events after $1. */
const OF_ALL = `SELECT ${COLUMNS} FROM feed_events WHERE cursor > $1 ORDER BY cursor LIMIT $2`;

/** At most $2 events after $1 of the subjects $5, up to $6. Only the index of subjects serves row comparisons. */
const OF_SUBJECTS = `
  SELECT ${COLUMNS} FROM unnest($5::text[]) AS wanted, LATERAL (
    SELECT ${COLUMNS} FROM feed_events
    WHERE (subject, cursor) > (wanted, $1) AND (subject, cursor) <= (wanted, $6) AND cursor IS NOT NULL
    ORDER BY subject, cursor LIMIT $2) AS theirs
  ORDER BY cursor LIMIT $2`;

/** At most $4 of the considered events, of the types $3 or of all, with the bounds of the same moment. */
const page = (considered: string) => `
  WITH considered AS MATERIALIZED (${considered}),
    page AS (SELECT * FROM considered WHERE $3::text[] IS NULL OR type = ANY ($3) ORDER BY cursor LIMIT $4)
  SELECT bounds.*, (SELECT count(*)::int FROM considered) AS considered,
    (SELECT max(cursor) FROM considered) AS "lastConsidered", page.*
  FROM (${BOUNDS}) AS bounds LEFT JOIN page ON true ORDER BY page.cursor`;

const PAGE_OF_ALL = page(OF_ALL);
const PAGE_OF_SUBJECTS = page(OF_SUBJECTS);

/** The selection of a page. */
interface Selection {
  after: bigint;
  limit: number;
  types?: readonly string[] | undefined;
  /** The subjects, and the number up to which their ids are known. */
  of?: { subjects: readonly string[]; upTo: bigint } | undefined;
}

type BoundsRow = Record<keyof FeedBounds, string>;

type PageRow = BoundsRow & { considered: number; lastConsidered: string | null } & (
    | FeedEventResponse
    | { cursor: null }
  );

/**
 * Reads the feed in the order in which its events became visible. An event gets its number from the first reader after
 * its commit, so that no event ever appears before one that was read.
 */
@Injectable()
export class FeedReader {
  constructor(
    private readonly database: Database,
    private readonly subjectIds: SubjectIds,
  ) {}

  /**
   * A page of the events after a position, each once and in order.
   *
   * @param after a cursor, `OLDEST` or `LATEST`
   * @throws {Problem} 410 `cursor-gone`
   */
  async read(after: string, limit: number, { types, subject }: FeedFilter = {}): Promise<FeedPageResponse> {
    if (after === LATEST) await this.numberAll();
    // Before the position is checked: without numbers, the feed would seem to end before it.
    const isMore = await this.number();
    const position = positionOf(after === LATEST ? await this.head() : after);
    const of = subject === undefined ? undefined : await this.idsOf(subject);
    const { bounds, items, readTo, end } = await this.select({ after: position?.number ?? 0n, limit, types, of });
    // The bounds are as new as the events, so that none was deleted in between.
    if (position) checkPosition(position, bounds);
    const cursor = cursorOf(bounds.epoch, readTo);
    return { items, cursor, nextCursor: readTo < end || isMore ? cursor : null };
  }

  /** The events among `items` that match a filter. Reads the ids of the subject after the events, so that none is missing. */
  async filter(items: FeedEventResponse[], { types, subject }: FeedFilter): Promise<FeedEventResponse[]> {
    const ofTypes = types ? items.filter(({ type }) => types.includes(type)) : items;
    if (subject === undefined) return ofTypes;
    const ofKind = ofTypes.filter((event) => kindOf(event.subject) === kindOf(subject));
    if (ofKind.length === 0) return [];
    const subjects = await this.subjectIds.equalTo(subject);
    return ofKind.filter((event) => subjects.includes(event.subject));
  }

  /**
   * Finds the position at which a new reader starts.
   *
   * @param after a cursor, `OLDEST` or `LATEST`
   * @throws {Problem} 410 `cursor-gone`
   */
  async startAt(after: string): Promise<FeedPosition> {
    await this.numberAll();
    const bounds = await this.bounds();
    const position = positionOf(after);
    if (!position) return { epoch: bounds.epoch, number: after === LATEST ? bounds.head : bounds.oldest };
    checkPosition(position, bounds);
    return position;
  }

  /** The cursor of the newest event. Numbers at most 1,000 events that no reader has seen yet. */
  async head(): Promise<string> {
    await this.number();
    const { epoch, head } = await this.bounds();
    return cursorOf(epoch, head);
  }

  /** All events about certain subjects, in their order, first those that only a legal hold keeps. */
  async *about(subjects: readonly string[]): AsyncGenerator<FeedEventResponse> {
    await this.numberAll();
    const upTo = (await this.bounds()).head;
    for (let after = KEPT_CURSORS; after < upTo; ) {
      const { items, readTo } = await this.select({ after, limit: EXPORT_PAGE, of: { subjects, upTo } });
      yield* items;
      after = readTo;
    }
  }

  /** Gives every committed event its number. */
  async numberAll(): Promise<void> {
    while (await this.number());
  }

  private number(): Promise<boolean> {
    return numberCommitted(this.database, NUMBERING, MAX_NUMBERED);
  }

  private async bounds(): Promise<FeedBounds> {
    return boundsOf((await this.database.pool.query<BoundsRow>(BOUNDS)).rows[0]);
  }

  /** The ids of a subject, and the number of an event up to which no other id can appear: it was read before them. */
  private async idsOf(subject: string): Promise<NonNullable<Selection['of']>> {
    const { head: upTo } = await this.bounds();
    return { subjects: await this.subjectIds.equalTo(subject), upTo };
  }

  /** @returns the events, the number up to which all were considered, and the number at which the feed ends */
  private async select({ after, limit, types, of }: Selection) {
    const max = types ? MAX_CONSIDERED : limit;
    const values: unknown[] = [after, max, types ?? null, limit];
    if (of) values.push(of.subjects, of.upTo);
    const { rows } = await this.database.pool.query<PageRow>(of ? PAGE_OF_SUBJECTS : PAGE_OF_ALL, values);
    const bounds = boundsOf(rows[0]);
    const found = rows.flatMap((row) => (row.cursor === null ? [] : eventOf(row)));
    const end = of?.upTo ?? bounds.head;
    const isScanFull = rows[0]?.considered === max;
    const last = found.length === limit ? found.at(-1)?.cursor : isScanFull ? rows[0]?.lastConsidered : undefined;
    const items = found.map((event) => ({
      ...event,
      cursor: cursorOf(bounds.epoch, numberBefore(BigInt(event.cursor))),
    }));
    return { bounds, items, readTo: last == null ? end : BigInt(last), end };
  }
}

/** The number of an event before retention. */
const numberBefore = (cursor: bigint): bigint => (cursor < 0n ? cursor - KEPT_CURSORS : cursor);

function boundsOf(row: BoundsRow | undefined): FeedBounds {
  return { epoch: BigInt(row?.epoch ?? 1), oldest: BigInt(row?.oldest ?? 0), head: BigInt(row?.head ?? 0) };
}

const eventOf = ({ cursor, type, at, subject, data }: FeedEventResponse): FeedEventResponse => ({
  cursor,
  type,
  at,
  subject,
  data,
});
