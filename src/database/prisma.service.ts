import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type pg from 'pg';
import { type Prisma, PrismaClient } from '../generated/prisma/client.js';
import { Database } from './database.js';
import { JoiningAdapterFactory, joinTransaction } from './joined-transactions.js';

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
      const ended = joinTransaction(this as PrismaClient, tx, (client) => {
        resolve(client);
        return new Promise<void>((left) => {
          leave = left;
        });
      });
      ended.catch(reject);
      this.database.beforeEnd(tx, () => {
        this.clients.delete(tx);
        leave();
        return ended;
      });
    });
  }
}
