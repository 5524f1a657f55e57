import { Injectable } from '@nestjs/common';
import pg from 'pg';
import { Database, SESSION_OPTIONS } from '../../database/database.js';

/** Seconds for which a beat says that its process is alive; its leases hold as long. */
export const ALIVE_SECONDS = 8;

/** Milliseconds after which a beat counts as lost; the next one goes over a new connection. */
const BEAT_TIMEOUT_MS = 2_000;

/** Hours for which a process that has ended is remembered: the newest of them shows since when none is alive. */
const REMEMBERED_HOURS = 24;

/** Which processes are alive, by the database's clock. */
@Injectable()
export class WorkersRepository {
  /** A connection of its own: a beat that waits behind work would declare the busiest process dead. */
  private readonly own: pg.Pool;

  constructor(private readonly database: Database) {
    this.own = new pg.Pool({
      connectionString: database.url,
      max: 1,
      connectionTimeoutMillis: BEAT_TIMEOUT_MS,
      query_timeout: BEAT_TIMEOUT_MS,
      statement_timeout: BEAT_TIMEOUT_MS,
      keepAlive: true,
      options: SESSION_OPTIONS,
      application_name: 'notebridge-heartbeat',
    });
    this.own.on('error', () => undefined); // the next beat connects anew
    this.own.on('connect', (client) => client.on('error', () => undefined));
  }

  /** Makes a process known, and forgets those that ended long ago. */
  async enter(id: string): Promise<void> {
    await this.beat(id);
    await this.own.query(`DELETE FROM workers WHERE alive_until < now() - $1 * interval '1 hour'`, [REMEMBERED_HOURS]);
  }

  /** Says that a process is alive. What others said by a clock that has been set back since holds no longer than this. */
  async beat(id: string): Promise<void> {
    await this.own.query(
      `WITH clock_set_back AS (
         UPDATE workers SET alive_until = now() + $2 * interval '1 second'
         WHERE id <> $1 AND alive_until > now() + 2 * $2 * interval '1 second')
       INSERT INTO workers (id, alive_until) VALUES ($1, now() + $2 * interval '1 second')
       ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until`,
      [id, ALIVE_SECONDS],
    );
  }

  /** Frees what a process has leased: it ends, and works on nothing any more. */
  async leave(id: string): Promise<void> {
    await this.own.query('UPDATE workers SET alive_until = least(alive_until, now()) WHERE id = $1', [id]);
  }

  /** Seconds since any process was last alive; null when none was for a day. */
  async secondsSinceAny(): Promise<number | null> {
    const { rows } = await this.database.pool.query<{ seconds: number }>(
      `SELECT greatest(0, $1 - extract(epoch FROM alive_until - now()))::float8 AS seconds
       FROM workers ORDER BY alive_until DESC LIMIT 1`,
      [ALIVE_SECONDS],
    );
    return rows[0]?.seconds ?? null;
  }

  /** Ends the connection; after the last word of this process. */
  async close(): Promise<void> {
    await this.own.end();
  }
}
