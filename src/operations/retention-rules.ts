import type { Env } from '../config/env.js';
import type { Days } from '../config/setting.decorators.js';
import { IS_NO_HELD_ROW } from '../imports/model/named-rows.js';
import { HELD_IDS, HELD_PEOPLE, isNotIn } from '../people/store/legal-hold.js';
import { HELD_EVENT_IDS, HELD_SESSIONS, HELD_SUBJECTS } from '../sessions/model/held-sessions.js';

/** Rows of one statement: small enough for the write-ahead log. No other work waits for rows this old. */
export const BATCH = 10_000;

/** The physical places of rows `t` of a table that are not locked. */
const places = (table: string, where: string): string =>
  `ctid = ANY (ARRAY(SELECT ctid FROM ${table} t WHERE ${where} LIMIT ${BATCH} FOR UPDATE SKIP LOCKED))`;

const deletion = (table: string, where: string): string => `DELETE FROM ${table} WHERE ${places(table, where)}`;

/** SQL condition: row `t` belongs to an import that finished before, or was never applied and was uploaded before. */
const IN_EXPIRED_IMPORT = `EXISTS (SELECT 1 FROM imports i WHERE i.id = t.import_id
  AND (i.finished_at < $1 OR i.finished_at IS NOT NULL AND i.applied_at IS NULL AND i.opened_at < $1))`;

/** SQL condition: event `t` of the feed is about a client under a legal hold, or about its sessions. */
const IS_HELD_EVENT = `(ARRAY[t.data ->> 'externalId', t.data ->> 'externalUserId'] && ${HELD_IDS}
  OR ARRAY[split_part(t.subject, '/', 2), t.data ->> 'sessionId', t.data ->> 'processingId'] && ${HELD_EVENT_IDS})`;

const INSIGHTS = 'transcript, topics, named_entities, analytics';

/** A compliance job without pending work: it has no lookup left and needs no decision. */
const ENDED_JOB = `state IN ('Rejected', 'Abandoned', 'Completed', 'Failed') AND num_nonnulls(due_at, give_up_at, review) = 0`;

/** The retention of one kind. Its statement removes rows older than $1, at most `BATCH` of them. */
interface Rule {
  days: Days;
  statement: string;
}

/**
 * The rules by the kind that the audit log names. Clients under a legal hold are excluded. Events of the feed leave
 * it in the order of their cursors: the bound rises, and what a hold keeps below it is only in exports. Plans that were never applied are cancelled; the imports' own count then finishes them. Finished imports keep their outcomes, but
 * rows that need their content can no longer be retried. Notes and insights leave a row with their fingerprint, so that a
 * later fetch recognizes them. A compliance job keeps its ids and its end.
 */
export function retentionRules(env: Env): Record<string, Rule> {
  const usual = env.RETENTION_DAYS;
  const { NOTES_RETENTION_DAYS: notes, TRANSCRIPTS_RETENTION_DAYS: insights } = env;
  const { DELIVERIES_RETENTION_DAYS: deliveries = usual, IMPORT_ROWS_RETENTION_DAYS: imports = usual } = env;
  const rule = (days: Days | undefined, statement: string): Rule => ({ days: days ?? usual, statement });
  return {
    calls: rule(
      env.CALLS_RETENTION_DAYS,
      deletion('platform_calls', `at < $1 AND ${isNotIn('person_id', HELD_PEOPLE)}`),
    ),
    deliveries: rule(
      deliveries,
      deletion(
        'webhook_deliveries',
        `state IN ('processed', 'ignored') AND received_at < $1 AND ${isNotIn('subject', HELD_SUBJECTS)}`,
      ),
    ),
    events: rule(
      env.FEED_RETENTION_DAYS,
      `WITH oldest AS MATERIALIZED (SELECT cursor, at FROM feed_events
         WHERE cursor > coalesce((SELECT pruned_to FROM feed_state), 0) ORDER BY cursor LIMIT ${BATCH}),
       bound AS (INSERT INTO feed_state AS s (pruned_to)
         SELECT coalesce(min(cursor) FILTER (WHERE at >= $1) - 1, max(cursor), 0) FROM oldest
         ON CONFLICT (id) DO UPDATE SET pruned_to = greatest(s.pruned_to, excluded.pruned_to) RETURNING pruned_to)
       ${deletion('feed_events', `cursor <= (SELECT pruned_to FROM bound) AND ${IS_HELD_EVENT} IS NOT TRUE`)}`,
    ),
    handedOut: rule(env.RECORDINGS_RETENTION_DAYS, deletion('handed_out_urls', 'handed_out_at < $1')),
    idempotencyRecords: rule(usual, deletion('idempotency_records', 'expires_at < greatest($1, now())')),
    plans: rule(
      imports,
      `UPDATE imports SET state = 'cancelled' WHERE ${places(
        'imports',
        `state = 'planned' AND opened_at < $1 AND NOT EXISTS (SELECT FROM import_rows r
           WHERE r.import_id = t.id AND r.external_id = ANY (${HELD_IDS}) AND (r.profile IS NOT NULL OR r.cells IS NOT NULL))`,
      )}`,
    ),
    importRows: rule(
      imports,
      `UPDATE import_rows SET profile = NULL, cells = NULL, profile_hash = NULL, email_fingerprint = NULL
       WHERE ${places('import_rows', `(profile IS NOT NULL OR cells IS NOT NULL) AND ${IN_EXPIRED_IMPORT} AND ${IS_NO_HELD_ROW('t')}`)}`,
    ),
    // No upload is open for so long.
    deletedIds: rule(
      usual,
      deletion('people', `wanted_version = 0 AND stated_at < greatest($1, now() - interval '2 days')`),
    ),
    notes: rule(
      notes,
      `UPDATE document_revisions SET notes = NULL, removed_at = now()
       WHERE ${places(
         'document_revisions',
         `notes IS NOT NULL AND fetched_at < $1
         AND ${isNotIn('document', `ARRAY(SELECT id FROM session_documents WHERE session = ANY (${HELD_SESSIONS}))`)}`,
       )}`,
    ),
    transcripts: rule(
      insights,
      `UPDATE session_insights SET (${INSIGHTS}, removed_at) = ROW (NULL, NULL, NULL, NULL, now())
       WHERE ${places('session_insights', `removed_at IS NULL AND num_nonnulls(${INSIGHTS}) > 0 AND fetched_at < $1 AND ${isNotIn('session', HELD_SESSIONS)}`)}`,
    ),
    // An answer of the Processing API may hold notes and transcript alike.
    processingAnswers: rule(
      shorter(notes, insights),
      `UPDATE processing_sessions SET answer = NULL
       WHERE ${places('processing_sessions', `answer IS NOT NULL AND updated_at < $1 AND ${isNotIn('session', HELD_SESSIONS)}`)}`,
    ),
    complianceJobs: rule(
      env.COMPLIANCE_RETENTION_DAYS,
      `UPDATE compliance_jobs SET files = NULL, message = NULL, result = NULL, removed_at = now()
       WHERE ${places('compliance_jobs', `removed_at IS NULL AND updated_at < $1 AND ${ENDED_JOB}`)}`,
    ),
  };
}

function shorter(one: Days, other: Days): Days {
  if (one === 'off') return other;
  return other === 'off' ? one : Math.min(one, other);
}
