import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { prepared } from '../../database/database.js';
import { firstDue } from '../../due-rows/first-due.js';
import { isFree } from '../../due-rows/lease.js';
import type { Lane } from '../../platform/rate-limit/pacing.js';
import { WorkerProcess } from '../../processes/worker-process.js';
import type { Bind } from '../../queue/notifier/poller.js';
import { BLIND_CREATE, type Gate, isReading, QUEUES } from '../model/next-step.js';

/** All lanes, most urgent first. */
export const LANES: readonly Lane[] = ['interactive', 'bulk'];

/** One of the first two people of a lane and queue. A null queue means that the step is still undecided. */
export interface Head {
  lane: Lane;
  queue: string | null;
  dueAtMs: number;
}

/** SQL condition: scheduled and not leased. It implies the condition of the partial index. */
const FREE = `due_at IS NOT NULL AND ${isFree('id', '$1', '$2')}`;

/** Orders the people of one lane and step. Names the step, because the planner does not treat `IS NULL` as constant. */
const SOONEST = 'ORDER BY step, due_at LIMIT';

const LOCK = 'FOR NO KEY UPDATE SKIP LOCKED';

/**
 * Maximum creates of clients without an email whose outcome may be lost together, over all processes. Such a client
 * needs an operator, because no lookup can find its user.
 */
const BLIND_CREATES_MAX = 3;

/** SQL of the number of such creates in flight, and of those that were just lost in a row. */
const BLIND_CREATES = `(
  (SELECT count(*) FROM (
    SELECT 1 FROM people WHERE attempt_operation = 'createClient' AND attempt_email IS NULL AND attempt_look_up_at > now()
    LIMIT ${BLIND_CREATES_MAX}) AS in_flight)
  + coalesce((SELECT CASE WHEN state->'streak'->>'code' = 'platform-fault' THEN jsonb_array_length(state->'streak'->'people') END
    FROM circuit_breakers WHERE operation = 'createClient'), 0))`;

/** SQL of the time when the first person of a lane is due, leased or not: the earliest head of all steps. */
export const firstPersonDue = (lane: Lane): string => {
  const conditions = [...QUEUES.map((queue) => `step = '${queue}'`), 'step IS NULL'];
  const heads = conditions.map((step) => firstDue('people', `'${lane}'`, step, 'step, due_at'));
  return `least(${heads.join(', ')})`;
};

/**
 * Finds due people. An index orders people by lane, step and time, and each query reads only the head of each step. A
 * stopped operation with a million people therefore costs nothing.
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

  /** False while the last heartbeat is too old to claim rows. */
  canClaim(): boolean {
    return this.worker.hasFreshHeartbeat();
  }

  hold(id: string): void {
    this.held.add(id);
  }

  release(id: string): void {
    this.held.delete(id);
  }

  /**
   * SQL for the poller: due while a free person is due. Names both lanes, so that the index on due times is used.
   *
   * @param isHeld SQL condition: only people whose next call reads, or is not decided, can be claimed
   */
  nextDue(bind: Bind, isHeld: string): string {
    const free = isFree('id', bind(this.worker.id), bind([...this.held]));
    const due = (more = '') =>
      `(SELECT now() FROM people WHERE lane IN ('interactive', 'bulk') ${more} AND due_at <= now() AND due_at IS NOT NULL
      AND ${free} LIMIT 1)`;
    const reading = QUEUES.filter(isReading).map((queue) => due(`AND step = '${queue}'`));
    return `CASE WHEN ${isHeld} THEN coalesce(${[...reading, due('AND step IS NULL')].join(', ')}) ELSE ${due()} END`;
  }

  /**
   * Locks the most urgent due person that is free.
   *
   * @param queues those whose calls may go out
   * @param heads the first people of each lane and queue
   * @param now the time of the database clock
   * @returns the person's id
   */
  async take(tx: PoolClient, lanes: Lane[], queues: string[], heads: Head[], now: Date): Promise<string | undefined> {
    const isOpen = ({ lane, queue }: Head) => lanes.includes(lane) && (queue === null || queues.includes(queue));
    for (const head of heads) {
      const { lane, queue } = head;
      if (head.dueAtMs > now.getTime() || !isOpen(head)) continue;
      const isQueued = queue === null ? 'step IS NULL AND $5::text IS NULL' : 'step = $5';
      const id = await this.lock(tx, `lane = $4 AND ${isQueued}`, `${SOONEST} 1`, now, [lane, queue]);
      if (id) return id;
    }
    return undefined;
  }

  /**
   * Locks a person for the probe of a queue, if possible another one than last time: one that was never refused,
   * otherwise the one refused longest ago. Locks none while the never refused one waits for its lane, because otherwise
   * two people with their own refusals would take all probes of the people in the paced lane.
   *
   * @returns the person's id
   */
  async takeProber(tx: PoolClient, lanes: Lane[], { queue, person }: Gate, now: Date): Promise<string | undefined> {
    const isAnother = 'step = $5 AND id IS DISTINCT FROM $6::uuid';
    for (const lane of LANES) {
      const condition = `lane = $4 AND ${isAnother} AND refused_at IS NULL`;
      const id = await this.lock(tx, condition, `${SOONEST} 1`, now, [lane, queue, person]);
      if (id) return lanes.includes(lane) ? id : undefined;
    }
    const refused = `lane = ANY($4::lane[]) AND ${isAnother} AND refused_at IS NOT NULL`;
    const id = await this.lock(tx, refused, 'ORDER BY step, refused_at LIMIT 1', now, [lanes, queue, person]);
    if (id || person === null) return id;
    return this.lock(tx, 'lane = ANY($4::lane[]) AND step = $5 AND id = $6', 'LIMIT 1', now, [lanes, queue, person]);
  }

  /**
   * A column `heads` with the first two people of each lane and queue, due or not, most urgent first, for a statement that
   * reads more; its parameters are `leaseParameters`. The second one tells a claim when to claim next. Omits blind creates
   * while the most that may be lost are in flight.
   */
  static headsColumn(first: number): string {
    const free = FREE.replaceAll('$1', `$${first}`).replaceAll('$2', `$${first + 1}`);
    const head = (isQueued: string) =>
      `SELECT due_at FROM people WHERE lane = served.lane AND ${isQueued} AND ${free} ${SOONEST} 2`;
    return `(SELECT coalesce(json_agg(json_build_object('lane', served.lane, 'queue', heads.queue,
          'dueAtMs', extract(epoch FROM heads.due_at) * 1000) ORDER BY place, heads.due_at), '[]')
      FROM unnest(ARRAY['${LANES.join("', '")}']::lane[]) WITH ORDINALITY AS served(lane, place) CROSS JOIN LATERAL (
        SELECT wanted.queue, head.due_at FROM unnest(ARRAY['${QUEUES.join("', '")}']) AS wanted(queue)
          CROSS JOIN LATERAL (${head('step = wanted.queue')}) AS head
        WHERE wanted.queue <> '${BLIND_CREATE}' OR ${BLIND_CREATES} < ${BLIND_CREATES_MAX}
        UNION ALL SELECT NULL, due_at FROM (${head('step IS NULL')}) AS undecided) AS heads) AS heads`;
  }

  /** The parameters of `FREE`. */
  leaseParameters(): [owner: string, held: string[]] {
    return [this.worker.id, [...this.held]];
  }

  private async lock(tx: PoolClient, condition: string, order: string, now: Date, values: unknown[]) {
    const text = `SELECT id FROM people WHERE ${condition} AND due_at <= $3 AND ${FREE} ${order} ${LOCK}`;
    const statement = prepared(text, [...this.leaseParameters(), now, ...values]);
    const { rows } = await tx.query<{ id: string }>(statement);
    return rows[0]?.id;
  }
}
