import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';

/** When any worker was last alive, by the database's clock: one row for all of them. */
@Injectable()
export class HeartbeatRepository {
  constructor(private readonly database: Database) {}

  async beat(): Promise<void> {
    await this.database.pool.query(
      `INSERT INTO heartbeats (role, at) VALUES ('worker', clock_timestamp())
       ON CONFLICT (role) DO UPDATE SET at = excluded.at`,
    );
  }

  /** Seconds since the last beat; null when there never was one. */
  async age(): Promise<number | null> {
    const { rows } = await this.database.pool.query<{ seconds: number }>(
      `SELECT extract(epoch FROM clock_timestamp() - at)::float8 AS seconds FROM heartbeats WHERE role = 'worker'`,
    );
    return rows[0]?.seconds ?? null;
  }
}
