import { AsyncLocalStorage } from 'node:async_hooks';
import { PrismaPg } from '@prisma/adapter-pg';
import type {
  IsolationLevel,
  SqlDriverAdapter,
  SqlDriverAdapterFactory,
  Transaction,
} from '@prisma/driver-adapter-utils';
import pg from 'pg';

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
const adapters = new WeakMap<pg.PoolClient, Promise<SqlDriverAdapter>>();

function adapterOf(client: pg.PoolClient): Promise<SqlDriverAdapter> {
  const adapter = adapters.get(client) ?? new PrismaPg(new OneConnectionPool(client)).connect();
  adapters.set(client, adapter);
  return adapter;
}

/** A transaction that `Database` began and will end, in the shape of one of Prisma's. */
async function borrowed(client: pg.PoolClient): Promise<Transaction> {
  const adapter = await adapterOf(client);
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
 * Prisma over a pool of `pg`. A transaction that is started within `joinTransaction` is the one that its connection is
 * in already; every other is a new one. Rests on `SqlDriverAdapterFactory` of Prisma 7 alone.
 */
export class JoiningAdapterFactory implements SqlDriverAdapterFactory {
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

interface Joinable<Client> {
  $transaction<T>(work: (client: Client) => Promise<T>, options: { maxWait: number; timeout: number }): Promise<T>;
}

/** Runs work with a Prisma client whose calls are statements of the transaction that `tx` is in. */
export function joinTransaction<Client, T>(
  prisma: Joinable<Client>,
  tx: pg.PoolClient,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  return joined.run(tx, () =>
    prisma.$transaction((client) => joined.run(undefined, () => work(client)), {
      maxWait: NEVER_MS,
      timeout: NEVER_MS,
    }),
  );
}
