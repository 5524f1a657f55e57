import { DOCUMENT_COLUMNS } from '../../sessions/read/session-statements.js';
import type { TimeRange } from './time-range.js';

/** Sort key of a page by date: when the version was fetched, and its document. */
export type DateKey = readonly [fetchedAt: string, document: string];

/** Sort key of a page by last change: that of the session, the session, and its document. */
export type ChangeKey = readonly [updatedAt: string, session: string, document: string];

/** The filters of a search; clients are identified by their platform users. */
export interface DocumentFilter {
  readonly clientUsers: readonly string[] | undefined;
  readonly appointment: string | undefined;
  readonly date: TimeRange;
  readonly lastUpdated: TimeRange;
  readonly limit: number;
}

interface Statement {
  /** Settings of the planner for the transaction; empty: the usual ones. */
  readonly settings: string;
  readonly text: string;
  readonly values: unknown[];
}

/**
 * Makes the planner read a page in the order of an index. Otherwise, if it expects few rows of a range, it collects and
 * sorts all of them.
 */
const IN_ORDER_OF_INDEX =
  'SET LOCAL enable_bitmapscan = off; SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off';

/** The newest revision of document `d`. OFFSET 0 keeps the planner from reading all revisions. */
const CURRENT = `CROSS JOIN LATERAL (
  SELECT * FROM document_revisions WHERE document = d.id AND revision = d.revision OFFSET 0) AS r`;

/** The document $1 with its newest revision. */
export const ONE_DOCUMENT = `
  SELECT ${DOCUMENT_COLUMNS}, d.session FROM session_documents d ${CURRENT} WHERE d.id = $1`;

/** True if documents are best found, and paged, by the date of their version. */
export function isByDate({ clientUsers, appointment, date, lastUpdated }: DocumentFilter): boolean {
  return clientUsers === undefined && appointment === undefined && isBounded(date) && !isBounded(lastUpdated);
}

/** Documents by the date of their version. @param after the last document of the previous page */
export function statementByDate({ date, limit }: DocumentFilter, after: DateKey | undefined): Statement {
  const { values, parameter, within } = parameters();
  const conditions = within('r.fetched_at', date);
  if (after)
    conditions.push(`(r.fetched_at, r.document) > (${parameter(after[0])}::timestamptz, ${parameter(after[1])}::uuid)`);
  const text = `
    SELECT ${DOCUMENT_COLUMNS}, d.session
    FROM document_revisions r CROSS JOIN LATERAL (
      SELECT * FROM session_documents WHERE id = r.document AND revision = r.revision OFFSET 0) AS d
    WHERE ${conditions.join(' AND ') || 'true'} ORDER BY r.fetched_at, r.document LIMIT ${parameter(limit)}`;
  return { settings: IN_ORDER_OF_INDEX, text, values };
}

/**
 * Documents by the last change of their session. Filters that match few sessions are materialized first, as in lists of
 * sessions. `notes_revision > 0` selects the partial index of the sessions that have documents.
 *
 * @param after the last document of the previous page
 */
export function statementByChange(filter: DocumentFilter, after: ChangeKey | undefined): Statement {
  const { clientUsers, appointment, date, lastUpdated, limit } = filter;
  const { values, parameter, within } = parameters();
  const rare: string[] = [];
  if (clientUsers) rare.push(`client_user_ids && ${parameter(clientUsers)}::text[]`);
  if (appointment !== undefined) rare.push(`partner_appointment_id = ${parameter(appointment)}`);
  const isRare = rare.length > 0;
  const found = `found AS MATERIALIZED (SELECT * FROM sessions WHERE ${rare.join(' AND ')})`;
  // A session changes with each fetch of a version, so neither is needed of older sessions.
  const changed = { ...lastUpdated, from: Math.max(lastUpdated.from, date.from) };
  const conditions = ['t.notes_revision > 0', ...within('t.updated_at', changed), ...within('r.fetched_at', date)];
  if (after) {
    const [at, session, document] = after.map(parameter);
    conditions.push(`(t.updated_at, t.id) >= (${at}::timestamptz, ${session}::uuid)`);
    conditions.push(`(t.updated_at, t.id, d.id) > (${at}::timestamptz, ${session}::uuid, ${document}::uuid)`);
  }
  const text = `
    ${isRare ? `WITH ${found}` : ''}
    SELECT ${DOCUMENT_COLUMNS}, t.id AS session, t.updated_at AS "updatedAt"
    FROM ${isRare ? 'found' : 'sessions'} t
    CROSS JOIN LATERAL (SELECT * FROM session_documents WHERE session = t.id OFFSET 0) AS d ${CURRENT}
    WHERE ${conditions.join(' AND ')} ORDER BY t.updated_at, t.id, d.id LIMIT ${parameter(limit)}`;
  return { settings: isRare ? '' : IN_ORDER_OF_INDEX, text, values };
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
