import type pg from 'pg';
import type { LoggedPlan } from './auto-explain.js';
import { fullReadsIn, indexedTables, rowsReadIn } from './query-plans.js';

/** Tables that grow with time; the others contain settings, or work in progress. */
export const GROWING = [
  'people',
  'client_providers',
  'email_claims',
  'platform_users',
  'platform_calls',
  'import_rows',
  'audit_entries',
  'audit_subjects',
  'audit_ranges',
  'audit_links',
  'idempotency_records',
  'sessions',
  'session_documents',
  'document_revisions',
  'session_insights',
  'processing_sessions',
  'compliance_jobs',
  'webhook_deliveries',
  'feed_events',
];

/** Tables of sessions. */
export const OF_SESSIONS = GROWING.filter((table) => /session|document_revisions/.test(table));

/**
 * Statements that count all people: once for the plan of an import, and for the metrics, but not at each scrape. And a page of
 * the sessions of one state, which sorts all of them as long as the table has no statistics.
 */
const RARE = [
  'FROM sessions AS t WHERE state = $1 ORDER BY updated_at',
  'SELECT kind, count(*)::int AS people FROM people WHERE wanted GROUP BY kind',
  'SELECT COUNT(*) AS "_count$_all", "public"."people"."kind"::text',
];

/** Partial indexes that contain only pending work. */
const SMALL = [
  'import_rows_applied_idx',
  'people_new_by_import_idx',
  'platform_users_external_user_id_idx', // of users without a mapped person
  'people_import_id_step_due_at_idx',
  'people_step_due_at_idx',
  'people_urgent_idx',
  'sessions_backlog_idx',
  'webhook_deliveries_due_at_idx',
  'webhook_deliveries_pending_idx',
  'sessions_due_idx',
  'sessions_awaited_idx',
  'sessions_open_idx',
  'sessions_open_key',
  'sessions_publish_end_by_idx',
  'sessions_to_send_idx',
  'processing_sessions_due_idx',
  'compliance_jobs_review_created_at_id_idx', // of jobs that need a decision
  'feed_events_without_cursor_idx',
  'audit_links_faulty_idx',
];

/** Statements that read a whole growing table or index, with its name; without the rare ones. */
export async function fullReadsOf(
  database: Pick<pg.ClientBase, 'query'>,
  plans: readonly LoggedPlan[],
): Promise<[statement: string, reads: string[]][]> {
  const tables = await indexedTables(database);
  const found = new Map<string, string[]>();
  for (const { text, plan } of plans) {
    if (RARE.some((rare) => text.replace(/\s+/g, ' ').includes(rare))) continue;
    const reads = fullReadsIn(tables, plan, { large: GROWING, small: SMALL });
    if (reads.length > 0) found.set(text.replace(/\s+/g, ' '), reads);
  }
  return [...found];
}

/** Executed statements that read more than `max` rows of sessions, without the rare ones. */
export async function longReadsOf(
  database: Pick<pg.ClientBase, 'query'>,
  plans: readonly LoggedPlan[],
  max: number,
): Promise<[statement: string, rows: number][]> {
  const tables = await indexedTables(database);
  const found = new Map<string, number>();
  for (const { text, plan } of plans) {
    const statement = text.replace(/\s+/g, ' ');
    if (RARE.some((rare) => statement.includes(rare))) continue;
    const rows = rowsReadIn(tables, plan, OF_SESSIONS);
    if (rows > Math.max(max, found.get(statement) ?? 0)) found.set(statement, rows);
  }
  return [...found];
}
