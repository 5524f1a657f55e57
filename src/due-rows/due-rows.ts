import type { PoolClient } from 'pg';
import type { Database } from '../database/database.js';
import type { WorkerProcess } from '../processes/worker-process.js';
import type { Bind } from '../queue/notifier/poller.js';
import { firstDue } from './first-due.js';
import { isAlive, isFree, isHeld, type Lease, RELEASE, take } from './lease.js';

/**
 * A table whose rows have due times. It has the columns `lane`, `due_at`, `lease_owner`, `lease_no` and
 * `lease_safe_at`, and an index on `(lane, due_at, key) WHERE due_at IS NOT NULL`.
 */
export interface DueTable {
  readonly name: string;
  /** SQL of the columns of a row `t`, with the names of its fields. */
  readonly columns: string;
  /** Its primary key, one column. */
  readonly key: string;
  /** Most urgent first. */
  readonly lanes: readonly Lane[];
  /** How long a call may still take effect after it was sent; 0 for work that only reads. */
  readonly effectMs: number;
  /** SQL condition, the same for all rows: while it is true, none is claimed or due. */
  readonly held?: string;
  /** SQL assignments of a claim, in addition to the lease. */
  readonly onClaim?: string;
}

/** Rows of one urgency. */
interface Lane {
  readonly lane: number;
  /** Maximum rows in progress per process, so that a slot remains for more urgent rows. Defaults to no limit. */
  readonly concurrency?: number;
}

/** A row at the time of its claim. */
export interface Leased<Row> {
  readonly row: Row;
  readonly lease: Lease;
}

type ClaimColumns = { leaseKey: string; leaseNo: number };

/** Claims and settles the due rows of one table, under leases of this process. */
export class DueRows<Row extends object> {
  /** The rows in progress in this process: keys and their lanes. */
  private readonly held = new Map<string, number>();
  /** Claims run one at a time, because the next one must know the row that the last one leased. */
  private claiming: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly table: DueTable,
    private readonly database: Database,
    private readonly worker: WorkerProcess,
  ) {}

  /** Leases the longest due row of the most urgent lane. The caller calls `done` when its work has ended. */
  claim(): Promise<Leased<Row> | undefined> {
    const claim = this.claiming.then(() => this.claimNext());
    this.claiming = claim.catch(() => undefined);
    return claim;
  }

  /** Leases that ended without a `settle`, because their process died or lost track of them. @param condition of the rows */
  async lost(condition: string): Promise<Lease[]> {
    const { key } = this.table;
    const columns = `${key}::text AS key, lease_owner AS owner, lease_no AS no`;
    const values: unknown[] = [];
    const lost = this.lostSql(columns, condition, (value) => `$${values.push(value)}`);
    return (await this.database.pool.query<Lease>(`${lost} LIMIT 100`, values)).rows;
  }

  /** For a poll: due while a lease is lost. @param condition of the rows */
  lostSince(condition: string, bind: Bind): string {
    return `(${this.lostSql('lease_safe_at', condition, bind)} LIMIT 1)`;
  }

  /** Records that the work on a row has ended, successfully or not. */
  done({ key }: Lease): void {
    this.held.delete(key);
  }

  /** For the poller: when the next free row is due, in a lane that is not full. Null if all are full. */
  nextDue(bind: Bind): string | null {
    const { name, key, held } = this.table;
    const lanes = this.table.lanes.filter((lane) => !this.isFull(lane));
    if (lanes.length === 0) return null;
    const free = isFree(key, bind(this.worker.id), bind([...this.held.keys()]));
    const next = `least(${lanes.map(({ lane }) => firstDue(name, lane, free, `due_at, ${key}`)).join(', ')})`;
    return held === undefined ? next : `CASE WHEN NOT ${held} THEN ${next} END`;
  }

  /** Locks a leased row until the transaction ends. @returns undefined if the lease is lost, so that nothing is stored */
  async lock(tx: PoolClient, { key, owner, no }: Lease): Promise<(Row & { now: Date }) | undefined> {
    const { rows } = await tx.query<Row & { now: Date }>(
      `SELECT ${this.table.columns}, clock_timestamp() AS now FROM ${this.table.name} t
       WHERE ${this.table.key} = $1 AND ${isHeld('$2', '$3')} FOR UPDATE`,
      [key, owner, no],
    );
    return rows[0];
  }

  /**
   * Stores the outcome of an attempt and releases the lease.
   *
   * @param set SQL assignments, whose parameters start at $1
   * @returns false if the lease is lost, so that nothing was stored
   */
  async settle(
    tx: Pick<PoolClient, 'query'>,
    lease: Lease,
    { set, values }: { set: string; values: readonly unknown[] },
  ): Promise<boolean> {
    const [key, owner, no] = [1, 2, 3].map((place) => `$${values.length + place}`) as [string, string, string];
    const { rowCount } = await tx.query(
      `UPDATE ${this.table.name} SET ${set}, ${RELEASE} WHERE ${this.table.key} = ${key} AND ${isHeld(owner, no)}`,
      [...values, lease.key, lease.owner, lease.no],
    );
    return rowCount === 1;
  }

  private lostSql(columns: string, condition: string, bind: Bind): string {
    const { name, key } = this.table;
    return `SELECT ${columns} FROM ${name}
       WHERE ${condition} AND lease_owner IS NOT NULL AND lease_safe_at <= now()
         AND ${isFree(key, bind(this.worker.id), bind([...this.held.keys()]))}
       ORDER BY lease_safe_at`;
  }

  private async claimNext(): Promise<Leased<Row> | undefined> {
    for (const lane of this.table.lanes) {
      if (this.isFull(lane)) continue;
      if (!this.worker.hasFreshHeartbeat()) return undefined;
      const { rows } = await this.database.pool.query<Row & ClaimColumns>(this.claimSql(), [
        lane.lane,
        this.worker.id,
        [...this.held.keys()],
        this.table.effectMs,
      ]);
      const [row] = rows;
      if (!row) continue;
      this.held.set(row.leaseKey, lane.lane);
      return { row, lease: { key: row.leaseKey, owner: this.worker.id, no: row.leaseNo } };
    }
    return undefined;
  }

  private isFull({ lane, concurrency = Number.POSITIVE_INFINITY }: Lane): boolean {
    return [...this.held.values()].filter((held) => held === lane).length >= concurrency;
  }

  /** Uses `now()`, because `clock_timestamp()` is not an index condition, and a constant limit for the planner. */
  private claimSql(): string {
    const { name, key, columns, held = 'FALSE', onClaim } = this.table;
    return `
      WITH picked AS MATERIALIZED (
        SELECT ${key} FROM ${name}
        WHERE lane = $1 AND due_at <= now() AND ${isFree(key, '$2', '$3')} AND NOT ${held}
        ORDER BY due_at, ${key} LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)
      UPDATE ${name} t SET ${take('$2', '$4')}${onClaim === undefined ? '' : `, ${onClaim}`}
      WHERE ${key} = ANY (ARRAY(SELECT ${key} FROM picked)) AND ${isAlive('$2')}
      RETURNING ${columns}, ${key}::text AS "leaseKey", lease_no AS "leaseNo"`;
  }
}
