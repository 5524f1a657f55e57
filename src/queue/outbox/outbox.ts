import type { PoolClient } from 'pg';
import type { Database } from '../../database/database.js';
import { DueRows } from '../due-rows/due-rows.js';
import { type Lease, RELEASE } from '../due-rows/lease.js';
import type { WorkerProcess } from '../due-rows/worker-process.js';
import type { Bind } from '../notifier/poller.js';

/**
 * A table of requests that must be sent once. It has the columns of due rows, `fault`, `failures` and `state`:
 *
 * - `Requested` with a due date: to be sent. With a lease: an attempt is under way, and its mark was committed before.
 * - `Unknown`: an attempt may have taken effect. It is never sent again by itself: evidence or a person resolves it.
 * - Whatever else the feature has: the request has ended.
 */
interface OutboxTable {
  readonly name: string;
  /** Its primary key, one column. */
  readonly key: string;
  /** The column with the mark of an attempt: since when it may have left. */
  readonly mark: string;
  /** Milliseconds after which an attempt has taken effect or never will. */
  readonly effectMs: number;
}

/** SQLSTATE 23505, unique_violation: another row for the same thing of the platform was made at the same moment. */
export const wasTaken = (error: unknown): boolean => (error as { code?: string }).code === '23505';

const TRIES = 3;

/** SQL condition: an attempt has been marked, and has no outcome yet. */
const IN_FLIGHT = `state = 'Requested' AND due_at IS NULL`;

type Queryable = Pick<PoolClient, 'query'>;

/** Sends each request once: an attempt without a stored outcome leaves it `Unknown`. */
export class Outbox<Row extends object> {
  readonly due: DueRows<Row>;
  /** The owner of leases that are taken here. */
  readonly owner: string;

  constructor(
    readonly table: OutboxTable,
    private readonly database: Database,
    worker: WorkerProcess,
  ) {
    const { name, key, mark, effectMs } = table;
    const onClaim = `${mark} = clock_timestamp(), due_at = NULL`;
    this.due = new DueRows({ name, key, lanes: [{ lane: 0 }], effectMs, onClaim }, database, worker);
    this.owner = worker.id;
  }

  /** An attempt of this process that began otherwise than by a claim; `due.done` ends it. */
  begun(key: string, no: number): Lease {
    this.due.hold(key);
    return { key, owner: this.owner, no };
  }

  /** Runs a transaction that gives a request the platform's id: again when it meets the row of an event. */
  async settling<T>(work: (tx: PoolClient) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.database.transaction(work);
      } catch (error) {
        if (tries === TRIES || !wasTaken(error)) throw error;
      }
    }
  }

  /** Attempts whose process ended before it stored what they came to. */
  lost(): Promise<Lease[]> {
    return this.due.lost(IN_FLIGHT);
  }

  /** For the poller: due while an attempt is lost. */
  lostSince(bind: Bind): string {
    return this.due.lostSince(IN_FLIGHT, bind);
  }

  /**
   * Locks the request of an attempt until the transaction ends. Its lease may be over: a late answer counts, too.
   *
   * @returns undefined when the request has ended, or another attempt followed: nothing may be stored
   */
  async lock(tx: Queryable, { key, no }: Lease): Promise<Row | undefined> {
    const { name, key: column } = this.table;
    const { rows } = await tx.query<Row>(
      `SELECT * FROM ${name} WHERE ${column} = $1 AND lease_no = $2 AND state IN ('Requested', 'Unknown') FOR UPDATE`,
      [key, no],
    );
    return rows[0];
  }

  /** Stores where a request stands that is locked: nothing is sent by itself any more. @param set assignments */
  async settle(tx: Queryable, key: string, state: string, set = 'fault = NULL'): Promise<void> {
    const { name, key: column } = this.table;
    const statement = `UPDATE ${name} SET ${set}, state = $2, due_at = NULL, ${RELEASE} WHERE ${column} = $1`;
    await tx.query(statement, [key, state]);
  }

  /** Makes a locked request due once more, whose attempt has certainly done nothing. */
  async putOff(tx: Queryable, { key }: Lease, fault: string, waitMs: number): Promise<void> {
    const { name, key: column, mark } = this.table;
    await tx.query(
      `UPDATE ${name} SET state = 'Requested', ${mark} = NULL, fault = $2, failures = failures + 1,
         due_at = clock_timestamp() + $3 * interval '1 millisecond', ${RELEASE}
       WHERE ${column} = $1`,
      [key, fault, waitMs],
    );
  }
}
