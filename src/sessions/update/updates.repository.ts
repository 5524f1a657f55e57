import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Env } from '../../config/env.js';
import { Database } from '../../database/database.js';
import type { FetchTicket } from '../model/apply-fetch.js';
import { DEBOUNCE_MS } from '../model/refresh-timing.js';

/** The moment that the fourth parameter is from now, in milliseconds. */
const SOON = `clock_timestamp() + $4 * interval '1 millisecond'`;

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

/** Updates on their way. Whatever becomes of one, of its answer and of its event, a fetch that began later follows. */
@Injectable()
export class UpdatesRepository {
  constructor(
    private readonly database: Database,
    private readonly env: Env,
  ) {}

  /**
   * Commits that an update leaves, so that the session is due when it can't take effect any more, even if this process
   * ends now.
   *
   * @param id ours
   * @returns undefined when there is no such row any more
   */
  async begin(id: string): Promise<PendingUpdate | undefined> {
    const { PLATFORM_TIMEOUT_SECONDS: timeout, UNKNOWN_OUTCOME_GRACE_SECONDS: grace } = this.env;
    const { rows } = await this.database.pool.query<{
      generation: number;
      answers: number;
      until: Date;
      before: Date | null;
    }>(
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

  /** Notes that an update can't take effect any more; the session is due. A wait after a fault is not cut short by it. */
  async end(tx: Pick<PoolClient, 'query'>, { id, until, before }: PendingUpdate): Promise<void> {
    await tx.query(
      `UPDATE sessions SET update_until = CASE WHEN update_until = $2 THEN $3 ELSE update_until END,
         lane = 0,
         due_at = CASE WHEN failures > 0 AND fault IS DISTINCT FROM 'gone' THEN coalesce(due_at, ${SOON})
                       ELSE least(due_at, ${SOON}) END
       WHERE id = $1`,
      [id, until, before, DEBOUNCE_MS],
    );
  }
}
