import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import pg from 'pg';

/** Milliseconds to wait for a free connection before a request fails instead of hanging. */
const CONNECT_TIMEOUT_MS = 5_000;

/** A process keeps this many connections for its API and workers; the receiver has its own few. */
const POOL_SIZE = 16;

/**
 * Options of every pool: times are stored and read in UTC whatever the server's zone is; no statement is compiled to
 * machine code, which for statements as short as these costs more than it saves (PostgreSQL manual, "When to JIT?").
 */
export const SESSION_OPTIONS = '-c TimeZone=UTC -c jit=off';

/** SQLSTATE 40P01, deadlock_detected: the transaction did nothing and may be run again. */
const DEADLOCK = '40P01';
const DEADLOCK_TRIES = 4;

/** PostgreSQL for the workers and the API: plain SQL where exact statements count. */
@Injectable()
export class Database implements OnApplicationShutdown {
  readonly pool: pg.Pool;
  private readonly log = new Logger(Database.name);

  /** @param url of the runtime role */
  constructor(readonly url: string) {
    this.pool = new pg.Pool({
      connectionString: url,
      max: POOL_SIZE,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      options: SESSION_OPTIONS,
      application_name: 'notebridge',
    });
    this.pool.on('error', (error) => this.log.warn(`an idle database connection was lost: ${error.message}`));
    // A connection that dies between two statements of a transaction tells nobody but this listener; without one the
    // process would end. The next statement fails, and the transaction with it.
    this.pool.on('connect', (client) => client.on('error', () => undefined));
  }

  /**
   * Runs work in one READ COMMITTED transaction; it is rolled back when the work throws, and run again when PostgreSQL
   * chose it as the victim of a deadlock.
   *
   * @param work must not make HTTP calls (a transaction is short) and must bear to be run again
   */
  async transaction<T>(work: (tx: pg.PoolClient) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.once(work);
      } catch (error) {
        if (tries === DEADLOCK_TRIES || (error as { code?: string }).code !== DEADLOCK) throw error;
      }
    }
  }

  private async once<T>(work: (tx: pg.PoolClient) => Promise<T>): Promise<T> {
    const tx = await this.pool.connect();
    let broken = false;
    try {
      await tx.query('BEGIN');
      const result = await work(tx);
      await tx.query('COMMIT');
      return result;
    } catch (error) {
      await tx.query('ROLLBACK').catch(() => {
        broken = true;
      });
      throw error;
    } finally {
      tx.release(broken);
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.end();
  }
}
