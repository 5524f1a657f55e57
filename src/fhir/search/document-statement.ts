import type { CursorKey } from '../../http/request/page.js';
import { DOCUMENT_COLUMNS } from '../../sessions/read/session-statements.js';
import type { TimeRange } from './time-range.js';

/** Sort key of a page by date: when a version was fetched, its document, and its revision. */
export type DateKey = readonly [fetchedAt: string, document: string, revision: number];

/** Sort key of a page by last change: that of the session, the session, and its document. */
export type ChangeKey = readonly [updatedAt: string, session: string, document: string];

/** The filters of a search; clients are identified by their platform users. */
export interface DocumentFilter {
  readonly clientUsers: readonly string[] | undefined;
  readonly appointment: string | undefined;
  readonly document: string | undefined;
  readonly date: TimeRange;
  readonly lastUpdated: TimeRange;
}

/** The maximum numbers of rows of a statement. */
interface Limits {
  /** Rows of the result. */
  readonly rows: number;
  /** Versions or sessions in whose order documents are looked for. */
  readonly scanned: number;
}

/** A row of a statement: a document, or only the end of a scan that found none there. */
export interface ScannedRow {
  /** Null if the row has no document. */
  readonly documentId: string | null;
  readonly session: string;
  /** True if the scan ended here because of its limit. */
  readonly isScanEnd: boolean;
  /** The sort key of what was scanned. */
  readonly scannedAt: Date;
  readonly scannedId: string;
  readonly scannedRevision?: number;
}

interface Statement {
  /** Settings of the planner for the transaction; empty: the usual ones. */
  readonly settings: string;
  readonly text: string;
  readonly values: unknown[];
  /** The sort key of a row; that of a row without a document is greater than those of its scanned session's documents. */
  readonly keyOf: (row: ScannedRow) => CursorKey;
}

/** Greater than or equal to any id. */
const LAST_UUID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** How far the clock of this service may be ahead of the database's. */
const CLOCK_SKEW_MS = 5 * 60_000;

/**
 * Makes the planner read a page in the order of an index. Otherwise, if it expects few rows of a range, it collects and
 * sorts all of them.
 */
const IN_ORDER_OF_INDEX =
  'SET LOCAL enable_bitmapscan = off; SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off';

/** Documents `d` with their newest revisions `r`. OFFSET 0 keeps the planner from reading all revisions. */
const DOCUMENTS = `session_documents d CROSS JOIN LATERAL (
  SELECT * FROM document_revisions WHERE document = d.id AND revision = d.revision OFFSET 0) AS r`;

/** The document $1 with its newest revision. */
export const ONE_DOCUMENT = `SELECT ${DOCUMENT_COLUMNS}, d.session FROM ${DOCUMENTS} WHERE d.id = $1`;

/** True if documents are best found, and paged, by the date of their version. */
export function isByDate({ clientUsers, appointment, document, date, lastUpdated }: DocumentFilter): boolean {
  const isOfFew = clientUsers !== undefined || appointment !== undefined || document !== undefined;
  return !isOfFew && isBounded(date) && !isBounded(lastUpdated);
}

/** Documents by the date of their version. @param after the end of the previous page */
export function statementByDate({ date }: DocumentFilter, after: DateKey | undefined, limits: Limits): Statement {
  const { values, parameter, within } = parameters();
  const conditions = within('fetched_at', date);
  if (after) {
    const [at, document, revision] = after.map(parameter);
    conditions.push(`(fetched_at, document, revision) > (${at}::timestamptz, ${document}::uuid, ${revision}::int)`);
  }
  const text = scanStatement({
    ...{ from: 'document_revisions', conditions, key: 'fetched_at, document, revision' },
    scanned: 't.fetched_at AS "scannedAt", t.document AS "scannedId", t.revision AS "scannedRevision"',
    documents: ['d.id = t.document', 'd.revision = t.revision'],
    order: 't.fetched_at, t.document, t.revision',
    ...{ rows: parameter(limits.rows), limit: parameter(limits.scanned) },
  });
  const keyOf = ({ scannedAt: at, scannedId: id, scannedRevision: revision = 0 }: ScannedRow) => [
    at.toISOString(),
    id,
    revision,
  ];
  return { settings: IN_ORDER_OF_INDEX, text, values, keyOf };
}

/**
 * Documents by the last change of their session. Filters that match few sessions are materialized first, as in lists of
 * sessions. `notes_revision > 0` selects the partial index of the sessions that have documents.
 *
 * @param after the end of the previous page
 */
export function statementByChange(filter: DocumentFilter, after: ChangeKey | undefined, limits: Limits): Statement {
  const { clientUsers, appointment, document, date, lastUpdated } = filter;
  const { values, parameter, within } = parameters();
  const rare: string[] = [];
  const documents = ['d.session = t.id', ...within('r.fetched_at', date)];
  if (clientUsers) {
    const users = `${parameter(clientUsers)}::text[]`;
    rare.push(`ever_client_user_ids && ${users} AND client_user_ids && ${users}`);
  }
  if (appointment !== undefined) rare.push(`partner_appointment_id = ${parameter(appointment)}`);
  if (document !== undefined) {
    documents.push(`d.id = ${parameter(document)}::uuid`);
    rare.push(`id = (SELECT session FROM session_documents WHERE id = $${values.length}::uuid)`);
  }
  const isRare = rare.length > 0;
  const found = `found AS MATERIALIZED (SELECT id, updated_at, notes_revision FROM sessions WHERE ${rare.join(' AND ')})`;
  // A session changes with each fetch of a version, so older sessions have no newer versions.
  const changed = { ...lastUpdated, from: Math.max(lastUpdated.from, date.from - CLOCK_SKEW_MS) };
  const conditions = ['notes_revision > 0', ...within('updated_at', changed)];
  if (after) {
    const [at, session, last] = after.map(parameter);
    // Skips the session of a finished scan, so that each page makes progress, even with a limit of 1.
    const operator = after[2] === LAST_UUID ? '>' : '>=';
    conditions.push(`(updated_at, id) ${operator} (${at}::timestamptz, ${session}::uuid)`);
    documents.push(`(t.updated_at, t.id, d.id) > (${at}::timestamptz, ${session}::uuid, ${last}::uuid)`);
  }
  const text = scanStatement({
    ...{ from: isRare ? 'found' : 'sessions', conditions, key: 'updated_at, id', documents },
    scanned: 't.updated_at AS "scannedAt", t.id AS "scannedId"',
    order: 't.updated_at, t.id, f."documentId"',
    ...{ rows: parameter(limits.rows), limit: parameter(limits.scanned) },
  });
  const keyOf = ({ scannedAt: at, scannedId: id, documentId }: ScannedRow) => [
    at.toISOString(),
    id,
    documentId ?? LAST_UUID,
  ];
  return { settings: isRare ? '' : IN_ORDER_OF_INDEX, text: `${isRare ? `WITH ${found}` : ''}${text}`, values, keyOf };
}

interface Scan {
  readonly from: string;
  readonly conditions: readonly string[];
  readonly key: string;
  /** Columns of the sort key. */
  readonly scanned: string;
  /** Conditions of the documents of a scanned row `t`. */
  readonly documents: readonly string[];
  readonly order: string;
  readonly rows: string;
  readonly limit: string;
}

/**
 * SQL that scans rows `t` in the order of an index, and finds the documents `f` of each. The limit is of what is scanned,
 * because any number of rows may have no document that matches; the last one is in the result in any case, so that the next
 * page starts after it. The scan stops as soon as the page is full.
 */
function scanStatement({ from, conditions, key, scanned, documents, order, rows, limit }: Scan): string {
  return `
    SELECT f.*, ${scanned}, t.place = ${limit} AS "isScanEnd"
    FROM (
      SELECT ${key}, row_number() OVER (ORDER BY ${key}) AS place FROM ${from}
      WHERE ${conditions.join(' AND ') || 'true'} ORDER BY ${key} LIMIT ${limit}) AS t
    LEFT JOIN LATERAL (
      SELECT ${DOCUMENT_COLUMNS}, d.session FROM ${DOCUMENTS} WHERE ${documents.join(' AND ')} OFFSET 0) AS f ON true
    WHERE f."documentId" IS NOT NULL OR t.place = ${limit} ORDER BY ${order} LIMIT ${rows}`;
}

function parameters() {
  const values: unknown[] = [];
  const parameter = (value: unknown) => `$${values.push(value)}`;
  const within = (column: string, { from, to }: TimeRange): string[] => [
    ...(Number.isFinite(from) ? [`${column} >= ${parameter(new Date(from))}`] : []),
    ...(Number.isFinite(to) ? [`${column} < ${parameter(new Date(to))}`] : []),
  ];
  return { values, parameter, within };
}

const isBounded = ({ from, to }: TimeRange): boolean => Number.isFinite(from) || Number.isFinite(to);
