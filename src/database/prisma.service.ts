import { AsyncLocalStorage } from 'node:async_hooks';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { PrismaPg } from '@prisma/adapter-pg';
import type {
  IsolationLevel,
  SqlDriverAdapter,
  SqlDriverAdapterFactory,
  Transaction,
} from '@prisma/driver-adapter-utils';
import type pg from 'pg';
import { codeOf } from '../errors/error-code.js';
import { type Prisma, PrismaClient } from '../generated/prisma/client.js';
import { collect, takeCollected } from './after-commit.js';
import type { ConnectionShares } from './connect/connection-shares.js';
import { poolOf, USUAL } from './connect/pools.js';
import { schemaOf } from './connect/session.js';
import { borrowed, joinAtFirstCall, joined } from './joined-transaction.js';

/** A transaction of Prisma. Make one call at a time, because it has one connection. */
export type Tx = Prisma.TransactionClient;

/**
 * Prisma's timeouts end a transaction while its statement runs on, so only PostgreSQL's count. A new object each time, because
 * Prisma changes it when transactions are nested.
 */
const limits = () => ({ maxWait: NEVER_MS, timeout: NEVER_MS });
const NEVER_MS = 2 ** 31 - 1;

/** SQLSTATEs of transactions that had no effect and can run again: serialization_failure, deadlock_detected. */
const RETRIED = ['40001', '40P01'];
const MAX_TRIES = 4;

/** True for an error after which a transaction runs its work again. */
export const isRetried = (error: unknown): boolean => RETRIED.includes(codeOf(error));

/** Runs work, and again after a deadlock or a serialization failure. */
export async function retried<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (tries === MAX_TRIES || !isRetried(error)) throw error;
    }
  }
}

/** The size of work: `bulk` is over many rows and may take minutes, such as that of imports. */
export type Size = 'usual' | 'bulk';

/**
 * An idle connection of the bulk pool is kept for a second, so that the next step of the same work can use it, and no longer,
 * because it may have been lost silently.
 */
const BULK = { idleTimeoutMillis: 1_000, statementMs: 10 * 60_000, idleMs: 30_000 };

/** The transaction that is starting, and its connection. Set only during that call. */
const starting = new AsyncLocalStorage<{ size: Size; client?: pg.PoolClient } | undefined>();

/** Named texts: a connection keeps the plan of each, and the first ones of a process are those of its usual work. */
const MAX_NAMED = 500;

const names = new Map<string, string>();

/**
 * A name with which a connection plans a statement once, because planning costs more than running it. Not for statements
 * over many rows, whose best plan depends on their values.
 *
 * @returns empty, for no name, once there are too many
 */
function nameOf({ sql }: { sql: string }): string {
  const known = names.get(sql);
  if (known !== undefined || names.size >= MAX_NAMED) return known ?? '';
  const name = `${sql.trim().split(/\W/, 1)[0]}_${names.size}`; // traces show it
  names.set(sql, name);
  return name;
}

/**
 * Prisma over pools of `pg`, of which only transactions use the bulk one. Reads the connection of each new transaction, for
 * `PrismaService.sql`.
 */
class AdapterFactory implements SqlDriverAdapterFactory {
  readonly provider = 'postgres';
  readonly adapterName = '@prisma/adapter-pg';

  constructor(
    private readonly pools: Record<Size, pg.Pool>,
    private readonly schema: string,
  ) {}

  async connect(): Promise<SqlDriverAdapter> {
    const { schema, pools } = this;
    const options = { disposeExternalPool: false, schema };
    const adapter = await new PrismaPg(pools.usual, { ...options, statementNameGenerator: nameOf }).connect();
    const bulk = await new PrismaPg(pools.bulk, options).connect();
    const begin = adapter.startTransaction.bind(adapter);
    return Object.assign(adapter, {
      startTransaction: async (level?: IsolationLevel): Promise<Transaction> => {
        const client = joined.getStore();
        if (client) return borrowed(client);
        const started = starting.getStore();
        const transaction = await (started?.size === 'bulk' ? bulk.startTransaction(level) : begin(level));
        if (started) started.client = Reflect.get(transaction, 'client') as pg.PoolClient;
        return transaction;
      },
    });
  }
}

/** Copies a buffer for a `Bytes` column. Prisma needs arrays that own their memory, but a Buffer may be a view. */
export const toBytes = (buffer: Uint8Array): Uint8Array<ArrayBuffer> => new Uint8Array(buffer);

/**
 * PostgreSQL for the workers and the API: the pool, Prisma over it, and the transactions. A connection that is lost
 * silently fails its statement by TCP keep-alive, or at the latest by the timeout of its pool, and is not used again. The
 * server then ends its locks.
 */
@Injectable()
export class PrismaService extends PrismaClient implements OnApplicationShutdown {
  /** For the listed files that use `pg`. */
  readonly pool: pg.Pool;
  readonly bulkPool: pg.Pool;
  private readonly connections = new WeakMap<Tx, pg.PoolClient>();
  private readonly transactions = new WeakMap<pg.PoolClient, Tx>();
  private readonly leaves = new WeakMap<pg.PoolClient, () => Promise<void>>();

  /** @param url of the runtime role */
  constructor(
    readonly url: string,
    readonly shares: ConnectionShares,
  ) {
    const pool = poolOf(url, { max: shares.usual, ...USUAL });
    const bulk = poolOf(url, { max: shares.bulk, ...BULK });
    // Shorter messages. They may quote values in any format, so the log leaves them out (errors/error-trace.ts).
    super({ adapter: new AdapterFactory({ usual: pool, bulk }, schemaOf(url)), errorFormat: 'minimal' });
    this.pool = pool;
    this.bulkPool = bulk;
  }

  /**
   * Runs work in one READ COMMITTED transaction, and again after a deadlock or a serialization failure.
   *
   * @param work must make no HTTP calls, because a transaction is short, and may run more than once
   */
  transaction<T>(work: (tx: Tx) => Promise<T>, size: Size = 'usual'): Promise<T> {
    return retried(() => this.once(size, work));
  }

  private async once<T>(size: Size, work: (tx: Tx) => Promise<T>): Promise<T> {
    const started: { size: Size; client?: pg.PoolClient } = { size };
    let sql: pg.PoolClient | undefined;
    const inside = async (tx: Tx): Promise<T> => {
      let isOpen = true;
      sql = whileOpen(started.client as pg.PoolClient, () => isOpen);
      this.connections.set(tx, sql);
      this.transactions.set(sql, tx);
      return work(tx).finally(() => {
        isOpen = false;
      });
    };
    const result = await starting.run(started, () =>
      this.$transaction((tx) => starting.run(undefined, inside, tx), limits()),
    );
    for (const run of takeCollected(sql as unknown as pg.PoolClient)) run();
    return result;
  }

  /**
   * Runs `run` once the transaction has committed, and never after a rollback. A lost answer to COMMIT or a crash may
   * prevent the run, so use it for notifications only.
   *
   * @param run must not throw; the same function runs only once per transaction
   */
  afterCommit(tx: Tx, run: () => void): void {
    collect(this.sql(tx), run);
  }

  /** The connection of a transaction, for the listed files that use `pg`. @throws {Error} outside a transaction */
  sql(tx: Tx): pg.PoolClient {
    const sql = this.connections.get(tx);
    if (!sql) throw new Error('sql(tx) needs a client of transaction() or in().');
    return sql;
  }

  /** The transaction of Prisma on a connection: that of `sql`, or one that joins a transaction of `Database` at its first call. */
  async in(sql: pg.PoolClient): Promise<Tx> {
    const known = this.transactions.get(sql);
    if (known) return known;
    const { tx, leave } = joinAtFirstCall(sql, (work) => this.$transaction(work, limits()));
    this.connections.set(tx, sql);
    this.transactions.set(sql, tx);
    this.leaves.set(sql, leave);
    return tx;
  }

  /** A client that joins the transaction of `sql`, if it has one. */
  async of(sql: pg.Pool | pg.PoolClient): Promise<Tx> {
    return 'release' in sql ? this.in(sql) : this;
  }

  /** Ends what `in` has joined, before its transaction of `Database` ends. */
  async leave(sql: pg.PoolClient): Promise<void> {
    const leave = this.leaves.get(sql);
    this.leaves.delete(sql);
    this.transactions.delete(sql);
    await leave?.();
  }

  /** Waits for transactions before $disconnect(), which would roll back those of Prisma, but not their later SQL. */
  async onApplicationShutdown(): Promise<void> {
    await Promise.all([this.pool.end(), this.bulkPool.end()]);
    await this.$disconnect();
  }
}

/** A connection that refuses statements after the end of its transaction, because it may serve another one then. */
function whileOpen(client: pg.PoolClient, isOpen: () => boolean): pg.PoolClient {
  const query = (...args: Parameters<typeof client.query>) => {
    if (isOpen()) return client.query(...args);
    return Promise.reject(new Error('The transaction of this statement has ended.'));
  };
  return Object.assign(Object.create(client) as pg.PoolClient, { query });
}
