import { AsyncLocalStorage } from 'node:async_hooks';
import { PrismaPg } from '@prisma/adapter-pg';
import type { SqlDriverAdapter, Transaction } from '@prisma/driver-adapter-utils';
import pg from 'pg';
import type { Prisma } from '../generated/prisma/client.js';

// Goes with `Database`, when the last folder is converted.

/** The connection of a transaction of `pg` that Prisma joins while it starts one of its own. */
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

/**
 * A client that joins a transaction of `pg` when it is called first, because most users need only its connection.
 *
 * @param begin starts a transaction of Prisma, which lasts as long as its work
 * @returns the client, and what ends it, before the transaction of `pg` ends. Calls after that are refused
 */
export function joinAtFirstCall(
  sql: pg.PoolClient,
  begin: (work: (tx: Client) => Promise<void>) => Promise<void>,
): { tx: Client; leave: () => Promise<void> } {
  let isOver = false;
  let client: Promise<Client> | undefined;
  let ended = Promise.resolve();
  let letGo = () => {};
  const join = (): Promise<Client> => {
    if (isOver) throw new Error('The transaction of this call has ended.');
    client ??= new Promise((resolve, reject) => {
      const left = new Promise<void>((done) => {
        letGo = done;
      });
      const work = (tx: Client) => {
        resolve(tx);
        return left;
      };
      ended = joined.run(sql, () => begin((tx) => joined.run(undefined, work, tx)));
      ended.catch(reject);
    });
    return client;
  };
  const leave = () => {
    isOver = true;
    letGo();
    return ended;
  };
  return { tx: atFirstCall(join), leave };
}

/** A client that asks for the real one when a method of it or of a model is called. */
function atFirstCall(client: () => Promise<Client>): Client {
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
