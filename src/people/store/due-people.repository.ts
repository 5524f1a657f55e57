import { Injectable } from '@nestjs/common';
import type { Pool, PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import type { Lane } from '../../platform/rate-limit/pacing.js';
import { isFree, type Lease, take } from '../../queue/due-rows/lease.js';
import { WorkerProcess } from '../../queue/due-rows/worker-process.js';
import { OPERATIONS } from '../model/person.js';

/** The most urgent of those in one lane whose next step is the same; null: it has yet to be decided. */
interface Head {
  lane: Lane;
  step: string | null;
  dueAt: Date;
}

/** The most urgent first. */
export const LANES: readonly Lane[] = ['interactive', 'bulk'];

/** Nobody holds them back and nobody serves them: the words of the partial index, and a few rows beside. */
const FREE = `due_at IS NOT NULL AND paused_by_import IS NULL AND ${isFree('id', '$1', '$2')}`;

/** Of one lane and one step; the step is named since the planner takes `IS NULL` for no constant. */
const SOONEST = 'ORDER BY step, due_at LIMIT 1';

const LOCK = 'FOR NO KEY UPDATE SKIP LOCKED';

/**
 * Finds who is due. People stand in one index by lane, step and moment, and each question reads the head of each step
 * alone: neither a stopped operation with a million people behind it nor a paused import is walked through.
 */
@Injectable()
export class DuePeopleRepository {
  /** Whom this process serves. */
  private readonly held = new Set<string>();

  constructor(
    private readonly database: Database,
    private readonly worker: WorkerProcess,
  ) {}

  /** False while this process may not be taken for alive: then nobody may be leased. */
  mayLease(): boolean {
    return this.worker.mayWork();
  }

  /**
   * Leases a person to this process, in the transaction that grants its call; `done` gives it up here.
   *
   * @param effectMs milliseconds after which what is now sent has taken effect or never will; 0: it may be done again
   */
  async lease(tx: PoolClient, id: string, effectMs: number): Promise<Lease> {
    const { rows } = await tx.query<{ no: number }>(
      `UPDATE people SET ${take('$2', '$3')} WHERE id = $1 RETURNING lease_no AS no`,
      [id, this.worker.id, effectMs],
    );
    return { key: id, owner: this.worker.id, no: rows[0]?.no ?? 0 };
  }

  /** This process serves the person of a lease from now on, or no longer: what it knows nothing of it may lease anew. */
  hold({ key }: Lease): void {
    this.held.add(key);
  }

  done({ key }: Lease): void {
    this.held.delete(key);
  }

  /** Whether somebody is due who is not being served. Both lanes are named, so that the index of moments is used. */
  async someoneIsDue(): Promise<boolean> {
    const { rows } = await this.database.pool.query<{ due: boolean }>(
      `SELECT EXISTS (SELECT 1 FROM people WHERE lane IN ('interactive', 'bulk') AND due_at <= now() AND ${FREE}) AS due`,
      this.asker(),
    );
    return rows[0]?.due ?? false;
  }

  /**
   * Locks the most urgent person who is due and can be had.
   *
   * @param stopped operations for which nobody is taken
   * @param now by the database's clock
   * @returns the person's id
   */
  async take(tx: PoolClient, lanes: Lane[], stopped: string[], now: Date): Promise<string | undefined> {
    for (const { lane, step, dueAt } of await this.heads(tx, lanes, stopped)) {
      if (dueAt > now) continue;
      const isStep = step === null ? 'step IS NULL AND $5::text IS NULL' : 'step = $5';
      const sql = `SELECT id FROM people WHERE lane = $4 AND ${isStep} AND due_at <= $3 AND ${FREE} ${SOONEST} ${LOCK}`;
      const { rows } = await tx.query<{ id: string }>(sql, [...this.asker(), now, lane, step]);
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
        `SELECT id FROM people WHERE lane = $4 AND step = $5 AND due_at <= $3 AND ${FREE} AND refused_at IS NULL
         ${SOONEST} ${LOCK}`,
        [...this.asker(), now, lane, operation],
      );
      if (rows[0]) return lanes.includes(lane) ? rows[0].id : undefined;
    }
    const { rows } = await tx.query<{ id: string }>(
      `SELECT id FROM people WHERE lane = ANY($4::lane[]) AND step = $5 AND due_at <= $3 AND ${FREE} AND refused_at IS NOT NULL
       ORDER BY step, refused_at LIMIT 1 ${LOCK}`,
      [...this.asker(), now, lanes, operation],
    );
    return rows[0]?.id;
  }

  /** The most urgent of each lane, whenever they are due. */
  async soonest(sql: Pick<Pool, 'query'>, stopped: string[]): Promise<Head[]> {
    return this.heads(sql, LANES, stopped);
  }

  /** In the order in which they are served: lane after lane, and there by their moments. */
  private async heads(sql: Pick<Pool, 'query'>, lanes: readonly Lane[], stopped: string[]): Promise<Head[]> {
    const steps = OPERATIONS.filter((operation) => !stopped.includes(operation));
    const head = (condition: string) =>
      `SELECT due_at FROM people WHERE lane = served.lane AND ${condition} AND ${FREE} ${SOONEST}`;
    const { rows } = await sql.query<Head>(
      `SELECT served.lane, step, due_at AS "dueAt"
       FROM unnest($3::lane[]) WITH ORDINALITY AS served(lane, place) CROSS JOIN LATERAL (
         SELECT wanted.step, head.due_at FROM unnest($4::text[]) AS wanted(step)
           CROSS JOIN LATERAL (${head('step = wanted.step')}) AS head
         UNION ALL SELECT NULL, due_at FROM (${head('step IS NULL')}) AS undecided) AS heads
       ORDER BY place, due_at`,
      [...this.asker(), lanes, steps],
    );
    return rows;
  }

  /** The first two parameters of every question. */
  private asker(): [owner: string, held: string[]] {
    return [this.worker.id, [...this.held]];
  }
}
