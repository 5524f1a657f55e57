import { Injectable } from '@nestjs/common';
import { PrismaService } from '../database/prisma.service.js';
import type { FeedEventResponse, FeedFilter, FeedPageResponse } from './feed.dto.js';
import { checkPosition, cursorOf, type FeedBounds, type FeedPosition, LATEST, positionOf } from './feed-cursor.js';
import { SubjectIds } from './subject-ids.js';

/** Maximum events that one page of a filtered feed considers. */
const MAX_CONSIDERED = 1_000;

/** Events on a page of an export. */
const EXPORT_PAGE = 500;

const BOUNDS = `
  SELECT coalesce(max(epoch), 1) AS epoch, coalesce(max(pruned_to), 0) AS "prunedTo",
    greatest((SELECT max(cursor) FROM feed_events), max(pruned_to), 0) AS head
  FROM feed_state`;

const COLUMNS = 'cursor, type, at, subject, data';

/** SQL of the place after which a page begins. What a legal hold keeps before the bound is only in exports. */
const AFTER = 'greatest($1::bigint, (SELECT "prunedTo" FROM bounds))';

/** At most $2 events. */
const OF_ALL = `SELECT ${COLUMNS} FROM feed_events WHERE cursor > ${AFTER} ORDER BY cursor LIMIT $2`;

/** At most $2 events of the subjects $5, up to $6. Only the index of subjects serves row comparisons. */
const ofSubjects = (after: string) => `
  SELECT ${COLUMNS} FROM unnest($5::text[]) AS wanted, LATERAL (
    SELECT ${COLUMNS} FROM feed_events
    WHERE (subject, cursor) > (wanted, ${after}) AND (subject, cursor) <= (wanted, $6::bigint) AND cursor IS NOT NULL
    ORDER BY subject, cursor LIMIT $2) AS theirs
  ORDER BY cursor LIMIT $2`;

/** At most $4 of the considered events, of the types $3 or of all, with the bounds of the same moment. */
const page = (considered: string) => `
  WITH bounds AS MATERIALIZED (${BOUNDS}),
    considered AS MATERIALIZED (${considered}),
    page AS (SELECT * FROM considered WHERE $3::text[] IS NULL OR type = ANY ($3) ORDER BY cursor LIMIT $4)
  SELECT bounds.*, (SELECT count(*)::int FROM considered) AS considered,
    (SELECT max(cursor) FROM considered) AS "lastConsidered", page.*
  FROM bounds LEFT JOIN page ON true ORDER BY page.cursor`;

const PAGE_OF_ALL = page(OF_ALL);
const PAGE_OF_SUBJECTS = page(ofSubjects(AFTER));
const EXPORT_OF_SUBJECTS = page(ofSubjects('$1::bigint'));

/** The subjects of a page, and the number up to which their ids are known. */
type Subjects = { subjects: readonly string[]; upTo: bigint };

/** The selection of a page. */
interface Selection {
  after: bigint;
  limit: number;
  types?: readonly string[] | undefined;
  of?: Subjects | undefined;
  isExport?: boolean;
}

type EventRow = Omit<FeedEventResponse, 'cursor'> & { cursor: bigint };
type PageRow = FeedBounds & { considered: number; lastConsidered: bigint | null } & (EventRow | { cursor: null });

/** Reads the numbered events. An event is visible from its number on, so none ever appears before one that was read. */
@Injectable()
export class FeedReader {
  constructor(
    private readonly prisma: PrismaService,
    private readonly subjectIds: SubjectIds,
  ) {}

  /**
   * A page of the events after a position, each once and in order.
   *
   * @param after a cursor, `OLDEST` or `LATEST`
   * @throws {Problem} 410 `cursor-gone`
   */
  async read(after: string, limit: number, { types, subject }: FeedFilter = {}): Promise<FeedPageResponse> {
    const position = after === LATEST ? await this.startAt(LATEST) : positionOf(after);
    const of = subject === undefined ? undefined : await this.idsOf(subject);
    const { bounds, items, readTo, end } = await this.select({ after: position?.number ?? 0n, limit, types, of });
    // The bounds are as new as the events, so that none was deleted in between.
    if (position) checkPosition(position, bounds);
    const cursor = cursorOf(bounds.epoch, readTo);
    return { items, cursor, nextCursor: readTo < end ? cursor : null };
  }

  /**
   * Finds the position at which a new reader starts.
   *
   * @param after a cursor, `OLDEST` or `LATEST`
   * @throws {Problem} 410 `cursor-gone`
   */
  async startAt(after: string): Promise<FeedPosition> {
    const bounds = await this.bounds();
    const position = positionOf(after);
    if (!position) return { epoch: bounds.epoch, number: after === LATEST ? bounds.head : bounds.prunedTo };
    checkPosition(position, bounds);
    return position;
  }

  /** The cursor of the newest event. */
  async head(): Promise<string> {
    const { epoch, head } = await this.bounds();
    return cursorOf(epoch, head);
  }

  /** All events about certain subjects, in their order, first those that only a legal hold keeps. */
  async *about(subjects: readonly string[]): AsyncGenerator<FeedEventResponse> {
    const of = { subjects, upTo: (await this.bounds()).head };
    for (let after = 0n; after < of.upTo; ) {
      const { items, readTo } = await this.select({ after, limit: EXPORT_PAGE, of, isExport: true });
      yield* items;
      after = readTo;
    }
  }

  private async bounds(): Promise<FeedBounds> {
    const [bounds] = await this.prisma.$queryRawUnsafe<[FeedBounds]>(BOUNDS);
    return bounds;
  }

  /** The ids of a subject, and the number of an event up to which no other id can appear: it was read before them. */
  private async idsOf(subject: string): Promise<Subjects> {
    const { head: upTo } = await this.bounds();
    return { subjects: await this.subjectIds.equalTo(subject), upTo };
  }

  /** @returns the events, the number up to which all were considered, and the number at which the feed ends */
  private async select({ after, limit, types, of, isExport }: Selection) {
    const max = types ? MAX_CONSIDERED : limit;
    const values: unknown[] = [after, max, types ?? null, limit];
    if (of) values.push(of.subjects, of.upTo);
    const statement = isExport ? EXPORT_OF_SUBJECTS : of ? PAGE_OF_SUBJECTS : PAGE_OF_ALL;
    const rows = (await this.prisma.$queryRawUnsafe(statement, ...values)) as [PageRow, ...PageRow[]];
    const [{ epoch, prunedTo, head, considered, lastConsidered }] = rows;
    const found = rows.flatMap((row) => (row.cursor === null ? [] : row));
    const end = of?.upTo ?? head;
    const last = found.length === limit ? found.at(-1)?.cursor : considered === max ? lastConsidered : null;
    const items = found.map(
      ({ cursor, type, at, subject, data }): FeedEventResponse => ({
        ...{ cursor: cursorOf(epoch, cursor), type, at, subject, data },
      }),
    );
    return { bounds: { epoch, prunedTo, head }, items, readTo: last ?? end, end };
  }
}
