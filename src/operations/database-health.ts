import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { isDatabaseUnavailable } from '../http/problem/database-fault.js';
import { type Health, HealthIndicator } from '../http/server/health-indicator.js';

const READ_ONLY: Health = {
  status: 'down',
  reason: 'PostgreSQL takes no writes: default_transaction_read_only is on for the role or database of DATABASE_URL.',
};

/**
 * Whether the database answers and takes writes. It is not vital: while every connection of the API waits, the inbox,
 * which has connections of its own and is vital, may still commit.
 */
@Injectable()
export class DatabaseHealth {
  constructor(private readonly database: Database) {}

  @HealthIndicator('database')
  async health(): Promise<Health> {
    try {
      const { rows } = await this.database.pool.query<{ readOnly: boolean }>(
        `SELECT current_setting('transaction_read_only')::boolean AS "readOnly"`,
      );
      return rows[0]?.readOnly ? READ_ONLY : { status: 'ok' };
    } catch (error) {
      if (!isDatabaseUnavailable(error)) throw error;
      return {
        status: 'down',
        reason:
          'PostgreSQL can not be reached, or gives no free connection; check DATABASE_URL and what keeps it busy.',
      };
    }
  }
}
