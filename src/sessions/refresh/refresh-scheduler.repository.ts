import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Env } from '../../config/env.js';
import { Database } from '../../database/database.js';
import { UUID } from '../../http/request/uuid-param.js';
import { DEBOUNCE_MS, type FetchTicket } from '../model/apply-fetch.js';
import { IS_NAMED } from '../model/session-columns.js';
import { LANES } from '../model/session-row.js';

/** Rows made due by one statement, so that their locks do not delay events for long. */
const BATCH = 500;

/** SQL for the session whose newest event has waited longest for its fetch; found by a partial index. */
export const LONGEST_WAITING_SESSION = `(SELECT last_event_at, fault FROM sessions
  WHERE due_at IS NOT NULL AND wanted_generation > fetched_generation AND (fetched_at IS NULL OR last_event_at > fetched_at)
  ORDER BY last_event_at LIMIT 1)`;

/** Resets failures, because they belong to earlier fetches. */
const MAKE_DUE = `wanted_generation = wanted_generation + 1, due_at = clock_timestamp(), failures = 0, fault = NULL`;

/** SQL of a due date that `soon` brings forward. A wait after a fault is not shortened. */
const broughtForward = (table: string, soon: string): string => `CASE
  WHEN ${table}.failures > 0 AND coalesce(${table}.fault, '') NOT IN ('gone', 'maybe-gone') THEN coalesce(${table}.due_at, ${soon})
  ELSE least(${table}.due_at, ${soon}) END`;

const DEBOUNCED = `clock_timestamp() + ${DEBOUNCE_MS} * interval '1 millisecond'`;

/** SQL of when a row is due that a burst of changes may follow. @param table of the row */
export const dueSoon = (table: string): string => broughtForward(table, DEBOUNCED);

/** SQL of when a session is due after an event: immediately if it was quiet, otherwise together with the rest of the burst. */
export const DUE_AFTER_EVENT = broughtForward(
  't',
  `CASE WHEN t.last_event_at > clock_timestamp() - ${DEBOUNCE_MS} * interval '1 millisecond'
     THEN ${DEBOUNCED} ELSE clock_timestamp() END`,
);

/** The numbers of sessions to be fetched. */
export interface PendingRefreshes {
  /** Due, without a failed fetch. */
  pending: number;
  /** Last fetch failed; retried automatically. */
  failing: number;
}

/** An update that may be sent now, because a fetch after its end is committed. */
export interface PendingUpdate {
  /** Our id of the session. */
  id: string;
  /** The ticket for the platform's answer to the update. */
  ticket: FetchTicket;
  /** Until when it may take effect. */
  until: Date;
  /** The same of an earlier update. */
  before: Date | null;
}

/** Makes sessions due on request, and after updates. */
@Injectable()
export class RefreshScheduler {
  constructor(
    private readonly database: Database,
    private readonly env: Env,
  ) {}

  /** Makes one session due immediately. @returns the number of sessions: 0 if the platform's id is unknown */
  async scheduleRefresh(id: string): Promise<number> {
    const { rowCount } = await this.database.pool.query(
      `UPDATE sessions SET ${MAKE_DUE}, lane = ${LANES.events}
       WHERE id = $1 AND session_id IS NOT NULL`,
      [id],
    );
    return rowCount ?? 0;
  }

  /**
   * Makes every session due that had an event, was fetched or changed since the given time, with lower priority than events.
   *
   * @returns the number of sessions
   */
  scheduleRefreshesSince(since: Date): Promise<number> {
    // The cursor reads one snapshot completely while the rows are updated in batches.
    return this.database.transaction(async (reader) => {
      await reader.query(
        `DECLARE changed NO SCROLL CURSOR FOR SELECT id FROM sessions
         WHERE greatest(created_at, updated_at, last_event_at, fetched_at) >= '${since.toISOString()}'
           AND session_id IS NOT NULL`,
      );
      for (let count = 0; ; ) {
        const { rows } = await reader.query<{ id: string }>(`FETCH ${BATCH} FROM changed`);
        if (rows.length === 0) return count;
        // Sessions made due by events keep their priority.
        const { rowCount } = await this.database.transaction((tx) =>
          tx.query(
            `WITH locked AS (SELECT id FROM sessions WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE)
             UPDATE sessions SET ${MAKE_DUE}, lane = CASE
               WHEN due_at IS NOT NULL AND wanted_generation > fetched_generation THEN lane ELSE ${LANES.bulk} END
             WHERE id = ANY (ARRAY(SELECT id FROM locked))`,
            [rows.map(({ id }) => id)],
          ),
        );
        count += rowCount ?? 0;
      }
    }, 'bulk');
  }

  /**
   * Counts the sessions that have not been fetched since the last event of each.
   *
   * @param session counts only this one: our id or the platform's
   */
  async countPending(session?: string): Promise<PendingRefreshes> {
    const { rows } = await this.database.pool.query<PendingRefreshes>(
      `SELECT count(*) FILTER (WHERE fault IS NULL)::int AS pending, count(fault)::int AS failing FROM sessions
       WHERE wanted_generation > fetched_generation AND due_at IS NOT NULL
         ${session === undefined ? '' : `AND ${IS_NAMED}`}`,
      session === undefined ? [] : [UUID.test(session) ? session : null, session],
    );
    return rows[0] ?? { pending: 0, failing: 0 };
  }

  /**
   * Commits the start of an update. The session is due when the update can no longer take effect, so that a later fetch
   * follows even if this process ends, or the answer or the event is lost.
   */
  async beginUpdate(id: string): Promise<PendingUpdate> {
    const { PLATFORM_TIMEOUT_SECONDS: timeout, UNKNOWN_OUTCOME_GRACE_SECONDS: grace } = this.env;
    const { rows } = await this.database.pool.query<FetchTicket & Omit<PendingUpdate, 'id' | 'ticket'>>(
      `WITH known AS (SELECT id, CASE WHEN update_until > clock_timestamp() THEN update_until END AS before,
           clock_timestamp() + $2 * interval '1 second' AS until FROM sessions WHERE id = $1 FOR UPDATE)
       UPDATE sessions s SET wanted_generation = wanted_generation + 1, update_until = known.until,
         due_at = least(due_at, known.until)
       FROM known WHERE s.id = known.id
       RETURNING wanted_generation - 1 - (before IS NOT NULL)::int AS generation, answers, update_until AS until, before`,
      [id, timeout + grace],
    );
    const [row] = rows;
    if (!row) throw new Error('A session that was found does not exist.');
    const { generation, answers, until, before } = row;
    return { id, ticket: { generation, answers }, until, before };
  }

  /** Stores that an update can no longer take effect, and makes the session due. */
  async endUpdate(tx: Pick<PoolClient, 'query'>, { id, until, before }: PendingUpdate): Promise<void> {
    await tx.query(
      `UPDATE sessions SET update_until = CASE WHEN update_until = $2 THEN $3 ELSE update_until END,
         lane = ${LANES.events}, due_at = ${dueSoon('sessions')}
       WHERE id = $1`,
      [id, until, before],
    );
  }
}
