import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';

/** Requests of one minute that were refused for one cause. */
export interface RejectionCount {
  /** The minute's beginning. */
  minute: Date;
  cause: string;
  count: number;
}

/** Days that the ledger reaches back; with a dozen causes it never holds more than a few hundred thousand rows. */
const RETENTION_DAYS = 14;

/** The ledger of refused requests: counters only. */
@Injectable()
export class RejectionsRepository {
  constructor(private readonly database: Database) {}

  async add(counts: readonly RejectionCount[]): Promise<void> {
    await this.database.pool.query(
      `INSERT INTO webhook_rejections AS ledger (minute, cause, count)
       SELECT * FROM unnest($1::timestamptz[], $2::text[], $3::bigint[]) ORDER BY 1, 2
       ON CONFLICT (minute, cause) DO UPDATE SET count = ledger.count + excluded.count`,
      [counts.map((row) => row.minute), counts.map((row) => row.cause), counts.map((row) => row.count)],
    );
  }

  /** The newest counts first. @param before where the page before ended */
  async list(limit: number, before?: readonly [minute: string, cause: string]): Promise<RejectionCount[]> {
    const { rows } = await this.database.pool.query<RejectionCount>(
      `SELECT minute, cause, count::float8 AS count FROM webhook_rejections
       WHERE $2::timestamptz IS NULL OR (minute, cause) < ($2, $3)
       ORDER BY minute DESC, cause DESC LIMIT $1`,
      [limit, before?.[0] ?? null, before?.[1] ?? null],
    );
    return rows;
  }

  /** Requests of the last hour whose signature was wrong, in the minutes that began after the last genuine delivery. */
  async wrongSinceGenuine(): Promise<number> {
    const { rows } = await this.database.pool.query<{ count: number }>(
      `SELECT coalesce(sum(count), 0)::float8 AS count FROM webhook_rejections
       WHERE cause = 'wrong-signature' AND minute > now() - interval '1 hour'
         AND minute > coalesce((SELECT received_at FROM webhook_deliveries ORDER BY id DESC LIMIT 1), '-infinity')`,
    );
    return rows[0]?.count ?? 0;
  }

  async deleteExpired(): Promise<void> {
    await this.database.pool.query(
      'DELETE FROM webhook_rejections WHERE minute < now() - make_interval(days => $1::int)',
      [RETENTION_DAYS],
    );
  }
}
