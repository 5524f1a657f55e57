import type { Tx } from '../database/prisma.service.js';
import { Prisma } from '../generated/prisma/client.js';
import type { StoredDocument } from '../sessions/read/session-reader.js';
import { DOCUMENT_COLUMNS } from '../sessions/read/session-statements.js';
import type { TimeRange } from './search/time-range.js';

/** A document, and our id of its session's row. */
export type FoundDocument = StoredDocument & { session: string };

/** The place of a document in the order of all: the last change of its session, the session, and the document. */
export type DocumentKey = readonly [updatedAt: string, session: string, document: string];

/** The filters of a search; clients are identified by their platform users. */
export interface DocumentFilter {
  readonly clientUsers?: readonly string[] | undefined;
  readonly document?: string | undefined;
  readonly date: TimeRange;
  readonly lastUpdated: TimeRange;
  /** The end of the previous page. */
  readonly after?: readonly [...DocumentKey, ...unknown[]] | undefined;
}

/** A document, or only the end of a scan that found none there. */
type ScannedRow = (FoundDocument | { documentId: null; session: string }) & { updatedAt: Date; isScanEnd: boolean };

/** Maximum sessions that a page reads to find its documents, so that it ends long before the timeout. */
const SCAN_LIMIT = 1000;

/** Greater than or equal to any id. */
const LAST_UUID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** How far the clock of this service may be ahead of the database's. */
const CLOCK_SKEW_MS = 5 * 60_000;

/**
 * Reads a page of documents, which may have fewer documents than `count`, or none, although it is not the last one.
 *
 * @param tx a transaction, whose settings change
 * @param scanned maximum sessions to read, at least 2
 * @returns `end` is null on the last page
 */
export async function findDocuments(
  tx: Tx,
  filter: DocumentFilter,
  count: number,
  scanned = SCAN_LIMIT,
): Promise<{ documents: FoundDocument[]; end: DocumentKey | null }> {
  // Otherwise the planner collects and sorts all rows of a range of which it expects few.
  await tx.$executeRaw`SET LOCAL enable_sort = off`;
  const rows = await tx.$queryRaw<ScannedRow[]>(pageOf(filter, count + 1, scanned));
  const shown = rows.slice(0, count);
  const last = rows.length > count ? shown.at(-1) : rows.filter(({ isScanEnd }) => isScanEnd).at(-1);
  return {
    documents: shown.filter((row): row is typeof row & FoundDocument => row.documentId !== null),
    end: last
      ? [last.updatedAt.toISOString(), last.session, (rows.length > count && last.documentId) || LAST_UUID]
      : null,
  };
}

/**
 * Scans sessions by their last change, in the order of an index, and finds the documents of each. The limit is of what is
 * scanned, because any number of sessions may have no document of the wanted date; the last one is in the result in any
 * case, so that the next page starts after it. The scan stops as soon as the page is full. `notes_revision > 0` selects the
 * partial index of the sessions that have documents. OFFSET 0 keeps the planner from reading all revisions.
 */
function pageOf(filter: DocumentFilter, rows: number, scanned: number): Prisma.Sql {
  const { clientUsers, document, date, lastUpdated, after } = filter;
  // A session changes with each fetch of a version, so older sessions have no newer versions.
  const changed = { ...lastUpdated, from: Math.max(lastUpdated.from, date.from - CLOCK_SKEW_MS) };
  const sessions = [Prisma.sql`notes_revision > 0`, within(Prisma.sql`updated_at`, changed)];
  const documents = [Prisma.sql`d.session = t.id`, within(Prisma.sql`r.fetched_at`, date)];
  if (after) {
    const [at, session, last] = after;
    sessions.push(Prisma.sql`(updated_at, id) >= (${at}::timestamptz, ${session}::uuid)`);
    documents.push(Prisma.sql`(t.updated_at, t.id, d.id) > (${at}::timestamptz, ${session}::uuid, ${last}::uuid)`);
  }
  // Filters that match few sessions are materialized first, so that the planner does not read all in the order of the pages.
  const few: Prisma.Sql[] = [];
  if (clientUsers) {
    const users = Prisma.sql`${clientUsers}::text[]`;
    few.push(Prisma.sql`ever_client_user_ids && ${users} AND client_user_ids && ${users}`);
  }
  if (document !== undefined) {
    documents.push(Prisma.sql`d.id = ${document}::uuid`);
    few.push(Prisma.sql`id = (SELECT session FROM session_documents WHERE id = ${document}::uuid)`);
  }
  const found = Prisma.sql`(WITH found AS MATERIALIZED (
    SELECT id, updated_at, notes_revision FROM sessions WHERE ${allOf(few)}) SELECT * FROM found) AS found`;
  return Prisma.sql`
    SELECT f.*, t.id AS session, t.updated_at AS "updatedAt", t.place = ${scanned} AS "isScanEnd"
    FROM (
      SELECT updated_at, id, row_number() OVER (ORDER BY updated_at, id) AS place
      FROM ${few.length > 0 ? found : Prisma.sql`sessions`} WHERE ${allOf(sessions)} ORDER BY updated_at, id LIMIT ${scanned}) AS t
    LEFT JOIN LATERAL (
      SELECT ${Prisma.raw(DOCUMENT_COLUMNS)} FROM session_documents d CROSS JOIN LATERAL (
        SELECT * FROM document_revisions WHERE document = d.id AND revision = d.revision OFFSET 0) AS r
      WHERE ${allOf(documents)} OFFSET 0) AS f ON true
    WHERE f."documentId" IS NOT NULL OR t.place = ${scanned} ORDER BY t.updated_at, t.id, f."documentId" LIMIT ${rows}`;
}

const allOf = (conditions: Prisma.Sql[]): Prisma.Sql =>
  conditions.reduce((all, one) => Prisma.sql`${all} AND ${one}`, Prisma.sql`true`);

const within = (column: Prisma.Sql, { from, to }: TimeRange): Prisma.Sql =>
  Prisma.sql`${column} >= ${timeOf(from)}::timestamptz AND ${column} < ${timeOf(to)}::timestamptz`;

/** A time that PostgreSQL reads in ISO 8601, without sign and year 0. All rows are within these bounds. */
const timeOf = (ms: number): Date => new Date(Math.max(0, Math.min(ms, Date.UTC(9999, 0))));
