import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Env } from '../../config/env.js';
import { Database } from '../../database/database.js';
import { UUID } from '../../http/request/uuid-param.js';
import { joinTraces, tracesNow } from '../../queue/due-rows/traces.js';
import { DEBOUNCE_MS, type FetchTicket } from '../model/apply-fetch.js';

/** Sessions that events, their readers or their age make due. */
export const EVENT_LANE = 0;

/** Sessions that are fetched again because all since a moment were asked for. */
export const BULK_LANE = 1;

/** Rows that one statement makes due: their locks hold up no event for long. */
const BATCH = 500;

/** The session whose newest event has waited longest for a fetch that answers it, as SQL; found by an index of these. */
export const LONGEST_AWAITED = `(SELECT last_event_at, fault FROM sessions
  WHERE due_at IS NOT NULL AND wanted_generation > fetched_generation AND (fetched_at IS NULL OR last_event_at > fetched_at)
  ORDER BY last_event_at LIMIT 1)`;

/** A fetch of another kind has failed, not this one. */
const WANTED = `wanted_generation = wanted_generation + 1, due_at = clock_timestamp(), failures = 0, fault = NULL`;

/**
 * When a row is due that something was said about: a burst costs one fetch, and a wait after a fault is not cut short.
 *
 * @param table whose row it is
 */
export const dueAfterDebounce = (table: string): string => {
  const soon = `clock_timestamp() + ${DEBOUNCE_MS} * interval '1 millisecond'`;
  return `CASE WHEN ${table}.failures > 0 AND ${table}.fault IS DISTINCT FROM 'gone'
    THEN coalesce(${table}.due_at, ${soon}) ELSE least(${table}.due_at, ${soon}) END`;
};

/** Sessions that are still to be fetched. */
export interface PendingRefreshes {
  /** Due, and never failed since. */
  pending: number;
  /** Whose last fetch failed; they are tried again by themselves. */
  failing: number;
}

/** An update that may leave now: it is on record that the session must be fetched once it has ended. */
export interface PendingUpdate {
  /** Our id of the session. */
  id: string;
  /** What the platform's answer to the update covers. */
  ticket: FetchTicket;
  /** Until when it may take effect. */
  until: Date;
  /** The same of an update that had left before it. */
  before: Date | null;
}

/** Makes sessions due on request, and around updates. */
@Injectable()
export class WantedRefreshes {
  constructor(
    private readonly database: Database,
    private readonly env: Env,
  ) {}

  /** Makes one session due, at once. @param id ours @returns how many: none when the platform's is not known */
  async wantOne(id: string): Promise<number> {
    const { rowCount } = await this.database.pool.query(
      `UPDATE sessions SET ${WANTED}, lane = ${EVENT_LANE}, ${joinTraces('sessions', '$2')}
       WHERE id = $1 AND session_id IS NOT NULL`,
      [id, tracesNow()],
    );
    return rowCount ?? 0;
  }

  /**
   * Makes every session due with an event or a change since a moment, after those that events make due.
   *
   * @returns how many
   */
  wantSince(since: Date): Promise<number> {
    // A view of that moment is read to its end while the rows are changed beside it, some at a time.
    return this.database.transaction(async (reader) => {
      await reader.query(
        `DECLARE changed NO SCROLL CURSOR FOR SELECT id FROM sessions
         WHERE greatest(created_at, updated_at, last_event_at) >= '${since.toISOString()}' AND session_id IS NOT NULL`,
      );
      for (let count = 0; ; ) {
        const { rows } = await reader.query<{ id: string }>(`FETCH ${BATCH} FROM changed`);
        if (rows.length === 0) return count;
        // What an event has made due already stays before the rest.
        const { rowCount } = await this.database.transaction((tx) =>
          tx.query(
            `WITH locked AS (SELECT id FROM sessions WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE)
             UPDATE sessions SET ${WANTED}, lane = CASE
               WHEN due_at IS NOT NULL AND wanted_generation > fetched_generation THEN lane ELSE ${BULK_LANE} END
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
   * @param session the one that counts alone: our id, also a former one, or the platform's
   */
  async countWanted(session?: string): Promise<PendingRefreshes> {
    const one = 'AND (id = $1 OR session_id = $2 OR id = (SELECT session FROM session_aliases WHERE id = $1))';
    const { rows } = await this.database.pool.query<PendingRefreshes>(
      `SELECT count(*) FILTER (WHERE fault IS NULL)::int AS pending, count(fault)::int AS failing FROM sessions
       WHERE wanted_generation > fetched_generation AND due_at IS NOT NULL ${session === undefined ? '' : one}`,
      session === undefined ? [] : [UUID.test(session) ? session : null, session],
    );
    return rows[0] ?? { pending: 0, failing: 0 };
  }

  /**
   * Commits that an update leaves, so that the session is due when it can't take effect any more, even if this process
   * ends now: whatever becomes of it, of its answer and of its event, a fetch that began later follows.
   *
   * @param id ours
   * @returns undefined when there is no such row any more
   */
  async beginUpdate(id: string): Promise<PendingUpdate | undefined> {
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
    if (!row) return undefined;
    const { generation, answers, until, before } = row;
    return { id, ticket: { generation, answers }, until, before };
  }

  /** Notes that an update can't take effect any more; the session is due. */
  async endUpdate(tx: Pick<PoolClient, 'query'>, { id, until, before }: PendingUpdate): Promise<void> {
    await tx.query(
      `UPDATE sessions SET update_until = CASE WHEN update_until = $2 THEN $3 ELSE update_until END,
         lane = ${EVENT_LANE}, due_at = ${dueAfterDebounce('sessions')}
       WHERE id = $1`,
      [id, until, before],
    );
  }
}
