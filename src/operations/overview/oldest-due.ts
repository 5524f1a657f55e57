import type { ClientBase } from 'pg';
import { OPERATIONS } from '../../people/rules/person.js';
import { isStandingStill } from '../../people/store/due-people.repository.js';
import type { Contract } from '../../platform/contract/contract.js';
import type { OperationName } from '../../platform/contract/operations.js';
import { LONGEST_AWAITED } from '../../sessions/model/longest-awaited.js';

/** SQL of the due times of the first person of each step. @param condition of an index on step and time */
const firstOfSteps = (condition: string): string => `
  SELECT d.due_at FROM unnest(ARRAY['${OPERATIONS.join("', '")}']) AS s(step) CROSS JOIN LATERAL (
    SELECT due_at FROM people p WHERE p.step = s.step AND ${condition} AND p.due_at IS NOT NULL
    ORDER BY p.due_at LIMIT 1) AS d`;

/** Someone waits for them. */
const FIRST_URGENT = `(SELECT min(due_at) FROM (${firstOfSteps('p.urgent')}) AS first)`;

/** The others, without those of paused imports. Each import is read by itself, as the feeder does. */
const FIRST_ORDINARY = `(
  WITH RECURSIVE named(id) AS (
    (SELECT import_id FROM people WHERE due_at IS NOT NULL AND import_id IS NOT NULL ORDER BY import_id LIMIT 1)
    UNION ALL
    SELECT (SELECT import_id FROM people WHERE due_at IS NOT NULL AND import_id > named.id ORDER BY import_id LIMIT 1)
    FROM named WHERE named.id IS NOT NULL)
  SELECT min(due_at) FROM (
    ${firstOfSteps('p.import_id IS NULL AND NOT p.urgent')}
    UNION ALL
    SELECT e.due_at FROM named CROSS JOIN LATERAL (${firstOfSteps('p.import_id = named.id AND NOT p.urgent')}) AS e
    WHERE NOT ${isStandingStill('named.id')}) AS first)`;

/** SQL of the due time of the first row of a table, in the order of a partial index with this condition. */
const firstOf = (table: string, condition = 'due_at IS NOT NULL'): string =>
  `(SELECT due_at FROM ${table} WHERE ${condition} ORDER BY due_at LIMIT 1)`;

/** The same of sessions of the platform. */
const firstFetch = (urgency: string) =>
  firstOf('sessions', `${urgency} AND due_at IS NOT NULL AND session_id IS NOT NULL`);

/** A kind of work, the operation that it needs, and the due time of its oldest due row. */
interface Kind {
  /** While the contract does not define its call, such work waits for a setting and not for a worker. */
  readonly operation?: OperationName;
  readonly since: string;
}

/** Each is found by an index. Bulk work may legitimately wait, so it is a separate kind. */
const KINDS = {
  webhooks: { since: firstOf('webhook_deliveries') },
  people: { operation: 'checkUser', since: FIRST_URGENT },
  'bulk-people': { operation: 'checkUser', since: FIRST_ORDINARY },
  sessions: { operation: 'getSession', since: firstFetch('urgent') },
  'bulk-sessions': { operation: 'getSession', since: firstFetch('NOT urgent') },
  'processing-sessions': { operation: 'getProcessingSession', since: firstOf('processing_sessions') },
  'session-requests': { operation: 'createSession', since: firstOf('sessions', `state = 'Requested'`) },
  'compliance-jobs': { operation: 'getComplianceJob', since: firstOf('compliance_jobs') },
  /** Since the event that no fetch has answered yet, because each fault of a fetch postpones its session. */
  notes: { operation: 'getSession', since: `(SELECT last_event_at FROM ${LONGEST_AWAITED} AS awaited)` },
} as const satisfies Record<string, Kind>;

export type WorkKind = keyof typeof KINDS;

/**
 * When the oldest work of a kind became due (null if none is due), and for how many seconds it has been due, by the
 * database's clock.
 */
export interface OldestDue {
  readonly since: Date | null;
  readonly seconds: number;
}

/** Forces indexes, because the planner has no statistics of tables that were just filled. */
export const BY_INDEXES = 'SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off';

/** Reads the oldest due work of each kind that the contract allows, in a transaction that reads `BY_INDEXES`. */
export async function oldestDue(tx: Pick<ClientBase, 'query'>, contract: Contract): Promise<Map<WorkKind, OldestDue>> {
  const kinds = (Object.entries(KINDS) as [WorkKind, Kind][]).filter(
    ([, { operation }]) => operation === undefined || contract.canCall(operation),
  );
  const moments = kinds.map(([kind, { since }]) => `SELECT '${kind}' AS kind, ${since} AS since`);
  const { rows } = await tx.query<OldestDue & { kind: WorkKind }>(
    `SELECT kind, CASE WHEN since <= now() THEN since END AS since,
       greatest(0, extract(epoch FROM clock_timestamp() - since))::float8 AS seconds
     FROM (${moments.join(' UNION ALL ')}) AS work`,
  );
  return new Map(rows.map(({ kind, since, seconds }) => [kind, { since, seconds }]));
}
