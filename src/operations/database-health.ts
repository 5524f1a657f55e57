import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { isDatabaseUnavailable } from '../http/database-fault.js';
import { type Health, HealthIndicator } from '../http/health-indicator.js';

const READ_ONLY: Health = {
  status: 'down',
  reason: 'PostgreSQL takes no writes: default_transaction_read_only is on for the role or database of DATABASE_URL.',
};

/** Whether the database commits: what it can't commit, the service may not acknowledge. */
@Injectable()
export class DatabaseHealth {
  constructor(private readonly database: Database) {}

  @HealthIndicator('database', { vital: true })
  async health(): Promise<Health> {
    try {
      // A commit that reaches the write-ahead log, without a table: it fails on a standby and on a full disk, but not
      // in a read-only transaction.
      const { rows } = await this.database.pool.query<{ readOnly: boolean }>(
        `SELECT current_setting('transaction_read_only')::boolean AS "readOnly",
           pg_logical_emit_message(true, 'notebridge-health', '')`,
      );
      return rows[0]?.readOnly ? READ_ONLY : { status: 'ok' };
    } catch (error) {
      if (!isDatabaseUnavailable(error)) throw error;
      return {
        status: 'down',
        reason: 'PostgreSQL can not be reached or can not write; check DATABASE_URL and the disk.',
      };
    }
  }
}
