import type { PoolClient } from 'pg';
import type { Database } from '../../database/database.js';
import type { Bind } from '../notifier/poller.js';
import { firstDue } from './first-due.js';
import { isAlive, isFree, isHeld, type Lease, RELEASE, take } from './lease.js';
import type { WorkerProcess } from './worker-process.js';

/**
 * A table whose rows are due at moments. It has the columns `lane`, `due_at`, `lease_owner`, `lease_no` and
 * `lease_safe_at`, and an index on `(lane, due_at, key) WHERE due_at IS NOT NULL`.
 */
export interface DueTable {
  readonly name: string;
  /** Its primary key, one column. */
  readonly key: string;
  /** The most urgent first. */
  readonly lanes: readonly Lane[];
  /** Milliseconds after which what an attempt sends has taken effect or never will; 0 for work that only reads. */
  readonly effectMs: number;
  /** Assignments of a claim beside the lease. */
  readonly onClaim?: string;
}

/** Rows of one urgency. */
interface Lane {
  readonly lane: number;
  /** How many of them one process works on at most, so that there is always a place for the more urgent. */
  readonly concurrency?: number;
}

/** A row as it was when it was leased. */
export interface Leased<Row> {
  readonly row: Row;
  readonly lease: Lease;
}

type LeaseColumns = { lease_key: string; lease_no: number };

/** The rows of one table that are due: one way to claim them, and one to settle them, under a lease of this process. */
export class DueRows<Row extends object> {
  /** What this process works on: keys and their lanes. */
  private readonly held = new Map<string, number>();
  /** One claim at a time: a row that was just leased here must be known as held before the next claim looks. */
  private claiming: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly table: DueTable,
    private readonly database: Database,
    private readonly worker: WorkerProcess,
  ) {}

  /** Leases the row that is due for longest in the most urgent lane that has one; the caller calls `done` at last. */
  claim(): Promise<Leased<Row> | undefined> {
    const claim = this.claiming.then(() => this.claimNext());
    this.claiming = claim.catch(() => undefined);
    return claim;
  }

  /** Counts a row as worked on that this process has leased otherwise than by a claim. */
  hold(key: string): void {
    this.held.set(key, this.table.lanes[0]?.lane ?? 0);
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

  /** The work on a row has ended, however it did. */
  done({ key }: Lease): void {
    this.held.delete(key);
  }

  /** When the next row without a lease is due, in a lane that is not full; undefined if no row is due. */
  async nextDueAt(): Promise<Date | undefined> {
    const values: unknown[] = [];
    const next = this.nextDue((value) => `$${values.push(value)}`);
    if (next === null) return undefined;
    const { rows } = await this.database.pool.query<{ due_at: Date | null }>(`SELECT ${next} AS due_at`, values);
    return rows[0]?.due_at ?? undefined;
  }

  /** The same for a poll. Null if all lanes are full. */
  nextDue(bind: Bind): string | null {
    const { name, key } = this.table;
    const lanes = this.table.lanes.filter((lane) => !this.isFull(lane));
    if (lanes.length === 0) return null;
    const free = isFree(key, bind(this.worker.id), bind([...this.held.keys()]));
    return `least(${lanes.map(({ lane }) => firstDue(name, lane, free, `due_at, ${key}`)).join(', ')})`;
  }

  /** Locks a leased row until the transaction ends. @returns undefined when the lease is lost: nothing may be stored */
  async lock(tx: PoolClient, { key, owner, no }: Lease): Promise<(Row & { now: Date }) | undefined> {
    const { rows } = await tx.query<Row & { now: Date }>(
      `SELECT *, clock_timestamp() AS now FROM ${this.table.name}
       WHERE ${this.table.key} = $1 AND ${isHeld('$2', '$3')} FOR UPDATE`,
      [key, owner, no],
    );
    return rows[0];
  }

  /**
   * Stores what came of an attempt and releases the lease.
   *
   * @param set assignments, whose parameters count from $1
   * @returns false when the lease is lost: nothing was stored
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
      if (!this.worker.mayWork()) return undefined;
      const { rows } = await this.database.pool.query<Row & LeaseColumns>(this.claimSql(), [
        lane.lane,
        this.worker.id,
        [...this.held.keys()],
        this.table.effectMs,
      ]);
      const [row] = rows;
      if (!row) continue;
      this.held.set(row.lease_key, lane.lane);
      return { row, lease: { key: row.lease_key, owner: this.worker.id, no: row.lease_no } };
    }
    return undefined;
  }

  private isFull({ lane, concurrency = Number.POSITIVE_INFINITY }: Lane): boolean {
    return [...this.held.values()].filter((held) => held === lane).length >= concurrency;
  }

  /** `now()` is an index condition, which `clock_timestamp()` is not; a limit that is a parameter is planned for many. */
  private claimSql(): string {
    const { name, key, onClaim } = this.table;
    return `
      WITH picked AS MATERIALIZED (
        SELECT ${key} FROM ${name}
        WHERE lane = $1 AND due_at <= now() AND ${isFree(key, '$2', '$3')}
        ORDER BY due_at, ${key} LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)
      UPDATE ${name} SET ${take('$2', '$4')}${onClaim === undefined ? '' : `, ${onClaim}`}
      WHERE ${key} = ANY (ARRAY(SELECT ${key} FROM picked)) AND ${isAlive('$2')}
      RETURNING *, ${key}::text AS lease_key`;
  }
}
