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
import { Database } from './database.js';

/** Milliseconds after which Prisma would end a joined transaction by itself: never, its owner ends it. */
const NEVER_MS = 2 ** 31 - 1;

/** The connection whose transaction the one that is being started joins; set for that call alone. */
const joined = new AsyncLocalStorage<pg.PoolClient | undefined>();

/** One connection in the shape of a pool, which is all that `PrismaPg` takes. */
class OneConnectionPool extends pg.Pool {
  constructor(client: pg.PoolClient) {
    super({ max: 1 });
    this.query = ((...args: Parameters<typeof client.query>) => client.query(...args)) as typeof this.query;
  }
}

/** Connections outlive transactions, so each keeps its adapter. */
const adapters = new WeakMap<pg.PoolClient, SqlDriverAdapter>();

/** A transaction that `Database` began and will end, in the shape of one of Prisma's. */
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
 * Prisma over a pool of `pg`. A transaction that is started while `joined` holds a connection is the one which that is
 * in already; every other is a new one. Rests on `SqlDriverAdapterFactory` of Prisma 7 alone.
 */
class JoiningAdapterFactory implements SqlDriverAdapterFactory {
  readonly provider = 'postgres';
  readonly adapterName = '@prisma/adapter-pg';

  constructor(private readonly pool: pg.Pool) {}

  async connect(): Promise<SqlDriverAdapter> {
    const adapter = await new PrismaPg(this.pool, { disposeExternalPool: false }).connect();
    const begin = adapter.startTransaction.bind(adapter);
    return Object.assign(adapter, {
      startTransaction: (level?: IsolationLevel): Promise<Transaction> => {
        const client = joined.getStore();
        return client ? borrowed(client) : begin(level);
      },
    });
  }
}

/** A value for a `Bytes` column: Prisma takes arrays that own their memory, and a Buffer may be a view of a larger one. */
export const toBytes = (buffer: Buffer): Uint8Array<ArrayBuffer> => new Uint8Array(buffer);

/**
 * Prisma over the pool of `Database`: for mappings, notes, keys and plain reads. Its own model calls are each a
 * transaction by themselves; within a transaction of `Database`, `in(tx)` gives a client that takes part in it.
 */
@Injectable()
export class PrismaService extends PrismaClient implements OnApplicationShutdown {
  private readonly clients = new WeakMap<pg.PoolClient, Promise<Prisma.TransactionClient>>();

  constructor(private readonly database: Database) {
    // The usual format of errors quotes the arguments of a call, personal data among them.
    super({ adapter: new JoiningAdapterFactory(database.pool), errorFormat: 'minimal' });
  }

  /**
   * A client whose calls are statements of a transaction of `Database`, which alone ends it. One call at a time: they
   * share one connection.
   */
  in(tx: pg.PoolClient): Promise<Prisma.TransactionClient> {
    const known = this.clients.get(tx);
    if (known) return known;
    const client = this.join(tx);
    this.clients.set(tx, client);
    return client;
  }

  /** The client that reads and writes where the statements of `sql` do: in its transaction, or in none. */
  async of(sql: pg.Pool | pg.PoolClient): Promise<Prisma.TransactionClient> {
    return 'release' in sql ? this.in(sql) : this;
  }

  // Workers close in onModuleDestroy, before this: a query after $disconnect() would reconnect and leak.
  async onApplicationShutdown(): Promise<void> {
    await this.$disconnect();
  }

  /** Keeps a transaction of Prisma's open on the connection until that of `Database` is about to end. */
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
