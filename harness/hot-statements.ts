import type pg from 'pg';
import type { LoggedPlan } from './auto-explain.js';
import { fullReadsIn } from './query-plans.js';

/** What grows with the years; the other tables hold settings, or what is under way. */
export const GROWING = [
  'people',
  'client_providers',
  'email_claims',
  'platform_users',
  'platform_calls',
  'import_rows',
  'import_raw_rows',
  'audit_entries',
  'audit_subjects',
  'audit_seals',
  'idempotency_records',
  'sessions',
  'session_documents',
  'document_revisions',
  'session_insights',
  'session_requests',
  'session_calls',
  'processing_sessions',
  'processing_notices',
  'compliance_jobs',
  'webhook_deliveries',
  'feed_events',
];

/** Count everybody: once for the plan of an import, and now and then for the metrics, not at each scrape. */
const RARE = [
  'SELECT kind, count(*)::int AS people FROM people WHERE wanted GROUP BY kind',
  'count(*)::int AS people, count(*) FILTER',
];

/** Hold what is still to be done alone. */
const SMALL = [
  'import_rows_open_person_idx',
  'import_rows_pending_idx',
  'people_step_refused_at_idx',
  'people_lane_step_due_at_idx',
  'sessions_backlog_idx',
  'webhook_deliveries_due_at_idx',
  'sessions_due_idx',
  'session_requests_lease_safe_at_idx', // of the attempts that are under way
];

/** The statements that read a growing table, or an index of one, from end to end, with what they read; but for the rare ones. */
export async function fullReadsOf(
  database: Pick<pg.ClientBase, 'query'>,
  plans: readonly LoggedPlan[],
): Promise<[statement: string, reads: string[]][]> {
  const found = new Map<string, string[]>();
  for (const { text, plan } of plans) {
    if (RARE.some((rare) => text.replace(/\s+/g, ' ').includes(rare))) continue;
    const reads = await fullReadsIn(database, plan, { large: GROWING, small: SMALL });
    if (reads.length > 0) found.set(text.replace(/\s+/g, ' '), reads);
  }
  return [...found];
}
