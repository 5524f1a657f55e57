import { AsyncLocalStorage } from 'node:async_hooks';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { PrismaPg } from '@prisma/adapter-pg';
import type {
  IsolationLevel,
  SqlDriverAdapter,
  SqlDriverAdapterFactory,
  Transaction,
} from '@prisma/driver-adapter-utils';
import pg from 'pg';
import { type Prisma, PrismaClient } from '../generated/prisma/client.js';
import { schemaOf } from './connect/session.js';
import { Database } from './database.js';

/** Disables Prisma's timeouts for joined transactions, which their owner ends. */
const NEVER_MS = 2 ** 31 - 1;

/** The connection whose transaction the starting one joins. Set only during that call. */
const joined = new AsyncLocalStorage<pg.PoolClient | undefined>();

/** A pool of one existing connection, because `PrismaPg` accepts only pools. */
class OneConnectionPool extends pg.Pool {
  constructor(client: pg.PoolClient) {
    super({ max: 1 });
    this.query = ((...args: Parameters<typeof client.query>) => client.query(...args)) as typeof this.query;
  }
}

/** The adapter of each connection, which outlives its transactions. */
const adapters = new WeakMap<pg.PoolClient, SqlDriverAdapter>();

/** A transaction of `Database` as one of Prisma's. */
async function borrowed(client: pg.PoolClient): Promise<Transaction> {
  const adapter = adapters.get(client) ?? (await new PrismaPg(new OneConnectionPool(client)).connect());
  adapters.set(client, adapter);
  const run = (sql: string) => adapter.executeRaw({ sql, args: [], argTypes: [] }).then(() => undefined);
  return {
    provider: adapter.provider,
    adapterName: adapter.adapterName,
    options: { usePhantomQuery: true }, // makes Prisma call commit() and rollback() instead of sending the statements
    queryRaw: (query) => adapter.queryRaw(query),
    executeRaw: (query) => adapter.executeRaw(query),
    commit: async () => {},
    rollback: async () => {},
    createSavepoint: (name) => run(`SAVEPOINT ${name}`),
    rollbackToSavepoint: (name) => run(`ROLLBACK TO SAVEPOINT ${name}`),
    releaseSavepoint: (name) => run(`RELEASE SAVEPOINT ${name}`),
  };
}

/**
 * Prisma over a pool of `pg`. A transaction that starts while `joined` has a connection joins that connection's
 * transaction. Depends only on `SqlDriverAdapterFactory` of Prisma 7.
 */
class JoiningAdapterFactory implements SqlDriverAdapterFactory {
  readonly provider = 'postgres';
  readonly adapterName = '@prisma/adapter-pg';

  constructor(private readonly database: Database) {}

  async connect(): Promise<SqlDriverAdapter> {
    const { pool, url } = this.database;
    const options = { disposeExternalPool: false, schema: schemaOf(url) };
    const adapter = await new PrismaPg(pool, options).connect();
    const begin = adapter.startTransaction.bind(adapter);
    return Object.assign(adapter, {
      startTransaction: (level?: IsolationLevel): Promise<Transaction> => {
        const client = joined.getStore();
        return client ? borrowed(client) : begin(level);
      },
    });
  }
}

/** Copies a buffer for a `Bytes` column. Prisma needs arrays that own their memory, but a Buffer may be a view. */
export const toBytes = (buffer: Buffer): Uint8Array<ArrayBuffer> => new Uint8Array(buffer);

/**
 * Prisma over the pool of `Database`, for mappings, notes, keys and plain reads. Each call is a transaction; `in(tx)`
 * returns a client that joins a transaction of `Database`.
 */
@Injectable()
export class PrismaService extends PrismaClient implements OnApplicationShutdown {
  private readonly clients = new WeakMap<pg.PoolClient, Promise<Prisma.TransactionClient>>();

  constructor(private readonly database: Database) {
    // The default format quotes the arguments of a call, which may contain personal data.
    super({ adapter: new JoiningAdapterFactory(database), errorFormat: 'minimal' });
  }

  /**
   * A client that joins a transaction of `Database`. Make one call at a time, because they share a connection.
   */
  in(tx: pg.PoolClient): Promise<Prisma.TransactionClient> {
    const known = this.clients.get(tx);
    if (known) return known;
    const client = this.join(tx);
    this.clients.set(tx, client);
    return client;
  }

  /** A client that joins the transaction of `sql`, if it has one. */
  async of(sql: pg.Pool | pg.PoolClient): Promise<Prisma.TransactionClient> {
    return 'release' in sql ? this.in(sql) : this;
  }

  // Workers close earlier, in onModuleDestroy. A query after $disconnect() would reconnect and leak.
  async onApplicationShutdown(): Promise<void> {
    await this.$disconnect();
  }

  /** Keeps a transaction of Prisma open until the transaction of `Database` is about to end. */
  private join(tx: pg.PoolClient): Promise<Prisma.TransactionClient> {
    return new Promise((resolve, reject) => {
      let leave = () => {};
      const use = (client: Prisma.TransactionClient) => {
        resolve(client);
        return new Promise<void>((left) => {
          leave = left;
        });
      };
      const limits = { maxWait: NEVER_MS, timeout: NEVER_MS };
      const ended = joined.run(tx, () => this.$transaction((client) => joined.run(undefined, use, client), limits));
      ended.catch(reject);
      this.database.beforeEnd(tx, () => {
        this.clients.delete(tx);
        leave();
        return ended;
      });
    });
  }
}
