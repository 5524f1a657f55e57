import { createHash } from 'node:crypto';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import pg from 'pg';
import { codeOf } from '../errors/error-code.js';
import type { ConnectionShares } from './connect/connection-shares.js';
import { newPool } from './connect/pools.js';

/** How long a request waits for a free connection before it fails. */
const CONNECT_TIMEOUT_MS = 5_000;

/** PostgreSQL's timeouts of statements and idle transactions. */
const USUAL = { statementMs: 10_000, idleMs: 10_000 };
/**
 * For statements over many rows. An idle connection is kept for a second, so that the next step of the same work can use it,
 * and no longer, because it may have been lost silently.
 */
const BULK = { idleTimeoutMillis: 1_000, statementMs: 10 * 60_000, idleMs: 30_000 };

/** How long after its timeout a statement without an answer shows that the connection is lost, as after a failover. */
const SILENT_AFTER_MS = 2_000;

/** Timeout for the answer to a statement of the usual pool. */
export const ANSWER_TIMEOUT_MS = USUAL.statementMs + SILENT_AFTER_MS;

/** Idle time before the first TCP keep-alive probe. */
const KEEP_ALIVE_MS = 5_000;

/** SQLSTATEs of transactions that had no effect and can run again: serialization_failure, deadlock_detected. */
const RETRIED = ['40001', '40P01'];
const MAX_TRIES = 4;

/** True for an error after which `Database.transaction` runs its work again. */
export const isRetried = (error: unknown): boolean => RETRIED.includes(codeOf(error));

/**
 * PostgreSQL for the workers and the API. A connection that is lost silently fails its statement by TCP keep-alive, or at
 * the latest by the timeout of its pool, and is not used again. The server then ends its locks.
 */
@Injectable()
export class Database implements OnApplicationShutdown {
  readonly pool: pg.Pool;
  /** For statements over many rows, which may take minutes, such as those of imports. */
  readonly bulkPool: pg.Pool;
  private readonly beforeEnds = new WeakMap<pg.PoolClient, () => Promise<void>>();
  private readonly afterCommits = new WeakMap<pg.PoolClient, Set<() => void>>();

  /** @param url of the runtime role */
  constructor(
    readonly url: string,
    readonly shares: ConnectionShares,
  ) {
    this.pool = poolOf(url, { max: shares.usual, ...USUAL });
    this.bulkPool = poolOf(url, { max: shares.bulk, ...BULK });
  }

  /**
   * Runs work in one READ COMMITTED transaction, and again after a deadlock or a serialization failure.
   *
   * @param work must make no HTTP calls, because a transaction is short, and may run more than once
   * @param size bulk for work over many rows, which may take minutes
   */
  async transaction<T>(work: (tx: pg.PoolClient) => Promise<T>, size: 'usual' | 'bulk' = 'usual'): Promise<T> {
    const pool = size === 'bulk' ? this.bulkPool : this.pool;
    for (let tries = 1; ; tries++) {
      try {
        return await this.once(pool, work);
      } catch (error) {
        if (tries === MAX_TRIES || !isRetried(error)) throw error;
      }
    }
  }

  private async once<T>(pool: pg.Pool, work: (tx: pg.PoolClient) => Promise<T>): Promise<T> {
    const tx = await pool.connect();
    let broken = false;
    try {
      await tx.query('BEGIN');
      const result = await work(tx).finally(() => this.leave(tx));
      await tx.query('COMMIT');
      for (const run of this.afterCommits.get(tx) ?? []) run();
      return result;
    } catch (error) {
      broken = isStale(error) || !(await rolledBack(tx));
      throw error;
    } finally {
      this.afterCommits.delete(tx);
      tx.release(broken);
    }
  }

  /** Runs `leave` before the transaction of `tx` ends. A later call replaces it. */
  beforeEnd(tx: pg.PoolClient, leave: () => Promise<void>): void {
    this.beforeEnds.set(tx, leave);
  }

  /**
   * Runs `run` once the transaction of `tx` has committed, and never after a rollback. A lost answer to COMMIT or a crash
   * may prevent the run, so use it for notifications only.
   *
   * @param run must not throw; the same function runs only once per transaction
   */
  afterCommit(tx: pg.PoolClient, run: () => void): void {
    this.afterCommits.set(tx, (this.afterCommits.get(tx) ?? new Set()).add(run));
  }

  private async leave(tx: pg.PoolClient): Promise<void> {
    const leave = this.beforeEnds.get(tx);
    this.beforeEnds.delete(tx);
    await leave?.();
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all([this.pool.end(), this.bulkPool.end()]);
  }
}

function poolOf(url: string, { statementMs, idleMs, ...sizes }: pg.PoolConfig & typeof USUAL): pg.Pool {
  return newPool({
    ...sizes,
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: statementMs + SILENT_AFTER_MS,
    statement_timeout: statementMs,
    // Ends the locks of a lost client.
    idle_in_transaction_session_timeout: idleMs,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    application_name: 'notebridge',
  });
}

/** True if the last statement got no answer, so that the connection is unusable. The message is node-postgres'. */
const isStale = (error: unknown): boolean => error instanceof Error && error.message === 'Query read timeout';

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
