import { AsyncLocalStorage } from 'node:async_hooks';
import { PrismaPg } from '@prisma/adapter-pg';
import type { SqlDriverAdapter, Transaction } from '@prisma/driver-adapter-utils';
import pg from 'pg';
import type { Prisma } from '../generated/prisma/client.js';

/**
 * The connection of a transaction of `pg` that Prisma joins while it starts one of its own. Goes with `Database`, when the
 * last folder is converted.
 */
export const joined = new AsyncLocalStorage<pg.PoolClient | undefined>();

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
export async function borrowed(client: pg.PoolClient): Promise<Transaction> {
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

type Client = Prisma.TransactionClient;
type Methods = Record<string, (...args: unknown[]) => unknown>;

/** A client that asks for the real one when a method of it or of a model is called. */
export function atFirstCall(client: () => Promise<Client>): Client {
  const methodsOf = (of: (client: Client) => unknown) =>
    new Proxy({} as Methods, {
      get:
        (_, name: string) =>
        async (...args: unknown[]) => {
          const methods = of(await client()) as Methods;
          return methods[name]?.(...args);
        },
    });
  const own = methodsOf((real) => real);
  return new Proxy({} as Client, {
    get(_, name) {
      if (typeof name === 'symbol' || name === 'then') return undefined; // it is no promise
      return name.startsWith('$') ? own[name] : methodsOf((real) => Reflect.get(real, name));
    },
  });
}
