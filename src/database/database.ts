import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { collect, takeCollected } from './after-commit.js';
import { PrismaService, retried, type Size } from './prisma.service.js';

/**
 * Transactions of `pg`, for the folders that are not converted yet (ARCHITECTURE.md lists them). To code that takes a
 * transaction of Prisma, they pass `await prisma.in(tx)`.
 */
@Injectable()
export class Database {
  readonly pool: pg.Pool;
  /** For statements over many rows, which may take minutes, such as those of imports. */
  readonly bulkPool: pg.Pool;

  constructor(private readonly prisma: PrismaService) {
    this.pool = prisma.pool;
    this.bulkPool = prisma.bulkPool;
  }

  /** As `PrismaService.transaction`. */
  transaction<T>(work: (tx: pg.PoolClient) => Promise<T>, size: Size = 'usual'): Promise<T> {
    return retried(() => this.once(size === 'bulk' ? this.bulkPool : this.pool, work));
  }

  private async once<T>(pool: pg.Pool, work: (tx: pg.PoolClient) => Promise<T>): Promise<T> {
    const tx = await pool.connect();
    let isLost = false;
    try {
      await tx.query('BEGIN');
      const result = await work(tx).finally(() => this.prisma.leave(tx));
      await tx.query('COMMIT');
      for (const run of takeCollected(tx)) run();
      return result;
    } catch (error) {
      isLost = !(await rolledBack(tx));
      throw error;
    } finally {
      takeCollected(tx);
      tx.release(isLost);
    }
  }

  /** As `PrismaService.afterCommit`. */
  afterCommit(tx: pg.PoolClient, run: () => void): void {
    collect(tx, run);
  }
}

async function rolledBack(tx: pg.PoolClient): Promise<boolean> {
  const done = await tx.query('ROLLBACK').catch(() => undefined);
  return done !== undefined;
}

const statementNames = new Map<string, string>();

/**
 * A statement that each connection plans once, because planning costs more than running it.
 *
 * @param text one of a bounded number of texts, because a connection keeps the plan of each; its best plan must not depend
 *   on its values
 */
export function prepared(text: string, values: unknown[]): { name: string; text: string; values: unknown[] } {
  let name = statementNames.get(text);
  if (name === undefined) {
    name = createHash('sha256').update(text).digest('hex').slice(0, 16);
    statementNames.set(text, name);
  }
  return { name, text, values };
}
