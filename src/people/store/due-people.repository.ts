import { Injectable } from '@nestjs/common';
import type { Pool, PoolClient } from 'pg';
import type { Lane } from '../../platform/rate-limit/pacing.js';
import { firstDue } from '../../queue/due-rows/first-due.js';
import { isFree } from '../../queue/due-rows/lease.js';
import { WorkerProcess } from '../../queue/due-rows/worker-process.js';
import type { Bind } from '../../queue/notifier/poller.js';
import { OPERATIONS } from '../model/person.js';

/** All lanes, most urgent first. */
export const LANES: readonly Lane[] = ['interactive', 'bulk'];

/** SQL condition: scheduled, neither paused by an import nor leased. It implies the condition of the partial index. */
const FREE = `due_at IS NOT NULL AND paused_by_import IS NULL AND ${isFree('id', '$1', '$2')}`;

/** Orders the people of one lane and step. Names the step, because the planner does not treat `IS NULL` as constant. */
const SOONEST = 'ORDER BY step, due_at LIMIT 1';

const LOCK = 'FOR NO KEY UPDATE SKIP LOCKED';

/** SQL of the time when the first unpaused person of a lane is due, leased or not: the earliest head of all steps. */
export const firstPersonDue = (lane: Lane): string => {
  const conditions = [...OPERATIONS.map((step) => `step = '${step}'`), 'step IS NULL'];
  const heads = conditions.map((step) =>
    firstDue('people', `'${lane}'`, `${step} AND paused_by_import IS NULL`, 'step, due_at'),
  );
  return `least(${heads.join(', ')})`;
};

/**
 * Finds due people. An index orders people by lane, step and time, and each query reads only the head of each step. A
 * stopped operation or a paused import with a million people therefore costs nothing.
 */
@Injectable()
export class DuePeopleRepository {
  /** The people that this process works on. Its leases on any other person are free. */
  private readonly held = new Set<string>();

  constructor(private readonly worker: WorkerProcess) {}

  /** This process, as the owner of its leases. */
  get owner(): string {
    return this.worker.id;
  }

  /** False while this process may count as dead, so that it must not lease rows. */
  mayLease(): boolean {
    return this.worker.mayWork();
  }

  hold(id: string): void {
    this.held.add(id);
  }

  release(id: string): void {
    this.held.delete(id);
  }

  /** SQL for the poller: due while a free person is due. Names both lanes, so that the index on due times is used. */
  nextDue(bind: Bind): string {
    const free = isFree('id', bind(this.worker.id), bind([...this.held]));
    return `(SELECT now() FROM people WHERE lane IN ('interactive', 'bulk') AND due_at <= now() AND due_at IS NOT NULL
      AND paused_by_import IS NULL AND ${free} LIMIT 1)`;
  }

  /**
   * Locks the most urgent due person that is free.
   *
   * @param stopped operations to skip
   * @param now the time of the database clock
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
   * Locks a person that is due for an operation: one that was never refused, otherwise the one refused longest ago.
   * Locks none while the never refused one waits for its lane, because otherwise two people with their own refusals
   * would take all probes of the people in the paced lane.
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
   * Pauses a locked person if its import was just paused or cancelled and has not paused all its people yet.
   *
   * @returns whether it paused the person
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
   * The first person of each lane and step, due or not, ordered by lane and due time. A null step is still undecided.
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
      [...this.leaseParameters(), lanes, steps],
    );
    return rows;
  }

  private async lock(tx: PoolClient, condition: string, order: string, now: Date, values: unknown[]) {
    const { rows } = await tx.query<{ id: string }>(
      `SELECT id FROM people WHERE ${condition} AND due_at <= $3 AND ${FREE} ${order} ${LOCK}`,
      [...this.leaseParameters(), now, ...values],
    );
    return rows[0]?.id;
  }

  /** The parameters of `FREE`. */
  private leaseParameters(): [owner: string, held: string[]] {
    return [this.worker.id, [...this.held]];
  }
}
