import { Injectable } from '@nestjs/common';
import type { Pool, PoolClient } from 'pg';
import type { Lane } from '../platform/call-pace.js';
import { OPERATIONS } from './person.js';

/** The most urgent of those in one lane whose next step is the same; null: it has yet to be decided. */
interface Head {
  lane: Lane;
  step: string | null;
  dueAt: Date;
}

/** The most urgent first. */
export const LANES: readonly Lane[] = ['interactive', 'bulk'];

/** Nobody holds them back and nobody serves them: the words of the partial index, and a few rows beside. */
const FREE = `due_at IS NOT NULL AND held_by IS NULL AND (lease_until IS NULL OR lease_until < $1)`;

/** Of one lane and one step; the step is named since the planner takes `IS NULL` for no constant. */
const SOONEST = 'ORDER BY step, due_at LIMIT 1';

const LOCK = 'FOR NO KEY UPDATE SKIP LOCKED';

/**
 * Finds who is due. People stand in one index by lane, step and moment, and each question reads the head of each step
 * alone: neither a stopped operation with a million people behind it nor a paused import is walked through.
 */
@Injectable()
export class DuePeopleRepository {
  /**
   * Locks the most urgent person who is due and can be had.
   *
   * @param stopped operations for which nobody is taken
   * @param now by the database's clock
   * @returns the person's id
   */
  async take(tx: PoolClient, lanes: Lane[], stopped: string[], now: Date): Promise<string | undefined> {
    for (const { lane, step, dueAt } of await this.heads(tx, lanes, stopped, now)) {
      if (dueAt > now) continue;
      const isStep = step === null ? 'step IS NULL AND $3::text IS NULL' : 'step = $3';
      const sql = `SELECT id FROM people WHERE lane = $2 AND ${isStep} AND due_at <= $1 AND ${FREE} ${SOONEST} ${LOCK}`;
      const { rows } = await tx.query<{ id: string }>(sql, [now, lane, step]);
      if (rows[0]) return rows[0].id;
    }
    return undefined;
  }

  /**
   * Locks who is due for an operation and was never refused, else who was refused longest ago. Whoever was never refused
   * is waited for when its lane may not call just now: else two people who are refused for themselves would take the
   * probes of all who stand in the paced lane.
   *
   * @returns the person's id
   */
  async takeProber(tx: PoolClient, lanes: Lane[], operation: string, now: Date): Promise<string | undefined> {
    for (const lane of LANES) {
      const { rows } = await tx.query<{ id: string }>(
        `SELECT id FROM people WHERE lane = $2 AND step = $3 AND due_at <= $1 AND ${FREE} AND refused_at IS NULL
         ${SOONEST} ${LOCK}`,
        [now, lane, operation],
      );
      if (rows[0]) return lanes.includes(lane) ? rows[0].id : undefined;
    }
    const { rows } = await tx.query<{ id: string }>(
      `SELECT id FROM people WHERE lane = ANY($2::lane[]) AND step = $3 AND due_at <= $1 AND ${FREE} AND refused_at IS NOT NULL
       ORDER BY step, refused_at LIMIT 1 ${LOCK}`,
      [now, lanes, operation],
    );
    return rows[0]?.id;
  }

  /** The most urgent of each lane, whenever they are due. */
  async soonest(sql: Pick<Pool, 'query'>, stopped: string[], now: Date): Promise<Head[]> {
    return this.heads(sql, LANES, stopped, now);
  }

  /** In the order in which they are served: lane after lane, and there by their moments. */
  private async heads(sql: Pick<Pool, 'query'>, lanes: readonly Lane[], stopped: string[], now: Date): Promise<Head[]> {
    const steps = OPERATIONS.filter((operation) => !stopped.includes(operation));
    const head = (condition: string) =>
      `SELECT due_at FROM people WHERE lane = served.lane AND ${condition} AND ${FREE} ${SOONEST}`;
    const { rows } = await sql.query<Head>(
      `SELECT served.lane, step, due_at AS "dueAt"
       FROM unnest($2::lane[]) WITH ORDINALITY AS served(lane, place) CROSS JOIN LATERAL (
         SELECT wanted.step, head.due_at FROM unnest($3::text[]) AS wanted(step)
           CROSS JOIN LATERAL (${head('step = wanted.step')}) AS head
         UNION ALL SELECT NULL, due_at FROM (${head('step IS NULL')}) AS undecided) AS heads
       ORDER BY place, due_at`,
      [now, lanes, steps],
    );
    return rows;
  }
}
