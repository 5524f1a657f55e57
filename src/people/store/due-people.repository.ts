import { Injectable } from '@nestjs/common';
import type { Pool, PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import type { Lane } from '../../platform/rate-limit/pacing.js';
import { firstDue } from '../../queue/due-rows/first-due.js';
import { isFree } from '../../queue/due-rows/lease.js';
import { WorkerProcess } from '../../queue/due-rows/worker-process.js';
import { OPERATIONS } from '../model/person.js';

/** The most urgent first. */
export const LANES: readonly Lane[] = ['interactive', 'bulk'];

/** Due, and neither paused by an import nor leased: the condition of the partial index, and of a few rows beside. */
const FREE = `due_at IS NOT NULL AND paused_by_import IS NULL AND ${isFree('id', '$1', '$2')}`;

/** Of one lane and one step; the step is named since the planner does not take `IS NULL` for a constant. */
const SOONEST = 'ORDER BY step, due_at LIMIT 1';

const LOCK = 'FOR NO KEY UPDATE SKIP LOCKED';

/** When the first of a lane is due whom no import holds back, leased or not, as SQL: the first over the heads of the steps. */
export const firstPersonDue = (lane: Lane): string => {
  const conditions = [...OPERATIONS.map((step) => `step = '${step}'`), 'step IS NULL'];
  const heads = conditions.map((step) =>
    firstDue('people', `'${lane}'`, `${step} AND paused_by_import IS NULL`, 'step, due_at'),
  );
  return `least(${heads.join(', ')})`;
};

/**
 * Finds who is due. People stand in one index by lane, step and moment, and each query reads the head of each step alone:
 * neither a stopped operation with a million people behind it nor a paused import is walked through.
 */
@Injectable()
export class DuePeopleRepository {
  /** The people that this process works on: a lease of its own that it knows nothing of is free. */
  private readonly held = new Set<string>();

  constructor(
    private readonly database: Database,
    private readonly worker: WorkerProcess,
  ) {}

  /** Which process asks: the owner of its leases. */
  get owner(): string {
    return this.worker.id;
  }

  /** False while this process can't be sure to count as alive: then it may lease no row. */
  mayLease(): boolean {
    return this.worker.mayWork();
  }

  hold(id: string): void {
    this.held.add(id);
  }

  release(id: string): void {
    this.held.delete(id);
  }

  /** Whether a person is due without a lease. Both lanes are named, so that the index of moments is used. */
  async isAnyDue(): Promise<boolean> {
    const { rowCount } = await this.database.pool.query(
      `SELECT FROM people WHERE lane IN ('interactive', 'bulk') AND due_at <= now() AND ${FREE} LIMIT 1`,
      this.asker(),
    );
    return rowCount !== 0;
  }

  /**
   * Locks the most urgent person who is due and can be had.
   *
   * @param stopped operations for which no person is claimed
   * @param now by the database's clock
   * @returns the person's id
   */
  async take(tx: PoolClient, lanes: Lane[], stopped: string[], now: Date): Promise<string | undefined> {
    for (const { lane, step, dueAt } of await this.heads(tx, stopped, lanes)) {
      if (dueAt > now) continue;
      const isStep = step === null ? 'step IS NULL AND $5::text IS NULL' : 'step = $5';
      const id = await this.lock(tx, `lane = $4 AND ${isStep}`, SOONEST, now, [lane, step]);
      if (id) return id;
    }
    return undefined;
  }

  /**
   * Locks the person that is due for an operation and was never refused, else the one refused longest ago. One that was
   * never refused is waited for while its lane may not call: else two people with a refusal of their own would take the
   * probes of all that are in the paced lane.
   *
   * @returns the person's id
   */
  async takeProber(tx: PoolClient, lanes: Lane[], operation: string, now: Date): Promise<string | undefined> {
    for (const lane of LANES) {
      const condition = 'lane = $4 AND step = $5 AND refused_at IS NULL';
      const id = await this.lock(tx, condition, SOONEST, now, [lane, operation]);
      if (id) return lanes.includes(lane) ? id : undefined;
    }
    const condition = 'lane = ANY($4::lane[]) AND step = $5 AND refused_at IS NOT NULL';
    return this.lock(tx, condition, 'ORDER BY step, refused_at LIMIT 1', now, [lanes, operation]);
  }

  /**
   * Pauses a locked person of an import that was paused or cancelled just now: not all of its people are paused yet,
   * there may be a million.
   *
   * @returns whether that is so
   */
  async pauseWithImport(tx: PoolClient, id: string): Promise<boolean> {
    const { rowCount } = await tx.query(
      `UPDATE people p SET paused_by_import = stopped.id FROM (
         SELECT i.id, r.person_wanted_at FROM import_rows r JOIN imports i ON i.id = r.import_id
         WHERE r.person_id = $1 AND r.outcome = 'pending' AND r.applied AND i.steered_to IS NOT NULL AND i.state <> 'running'
       ) AS stopped
       WHERE p.id = $1 AND p.lane = 'bulk' AND p.paused_by_import IS NULL AND p.wanted_at = stopped.person_wanted_at`,
      [id],
    );
    return rowCount === 1;
  }

  /**
   * The most urgent of each lane and step, whenever they are due: lane after lane, and there by their moments. A step
   * that is null has yet to be decided.
   */
  async heads(sql: Pick<Pool, 'query'>, stopped: string[], lanes = LANES) {
    const steps = OPERATIONS.filter((operation) => !stopped.includes(operation));
    const head = (condition: string) =>
      `SELECT due_at FROM people WHERE lane = served.lane AND ${condition} AND ${FREE} ${SOONEST}`;
    const { rows } = await sql.query<{ lane: Lane; step: string | null; dueAt: Date }>(
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

  private async lock(tx: PoolClient, condition: string, order: string, now: Date, values: unknown[]) {
    const { rows } = await tx.query<{ id: string }>(
      `SELECT id FROM people WHERE ${condition} AND due_at <= $3 AND ${FREE} ${order} ${LOCK}`,
      [...this.asker(), now, ...values],
    );
    return rows[0]?.id;
  }

  /** The first two parameters of every query. */
  private asker(): [owner: string, held: string[]] {
    return [this.worker.id, [...this.held]];
  }
}
