import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { type Health, HealthIndicator, healthOf } from '../monitoring/health-indicator.js';
import { requestsHealth } from '../platform/send/requests-health.js';
import { LANES } from './job.js';

const SUBMISSIONS = { table: 'compliance_jobs', since: 'created_at', operation: 'submitComplianceJob' } as const;

/** Reports compliance jobs that cannot be submitted or looked up. */
@Injectable()
export class ComplianceHealth {
  constructor(private readonly database: Database) {}

  @HealthIndicator({ name: 'compliance', needs: ['worker'] })
  async health(): Promise<Health> {
    const { pool } = this.database;
    const { rows } = await pool.query<Record<'refused' | 'elsewhere', boolean>>(
      `SELECT bool_or(fault = 'platform-unauthorized') AS refused, bool_or(fault = 'platform-address') AS elsewhere
       FROM compliance_jobs WHERE lane = ${LANES.lookups} AND due_at IS NOT NULL`,
    );
    const { refused, elsewhere } = rows[0] ?? {};
    const values = { operations: 'getComplianceJob' };
    return healthOf([
      ...(await requestsHealth(pool, SUBMISSIONS)),
      refused && { code: 'platform-unauthorized', values },
      elsewhere && { code: 'platform-address', values },
    ]);
  }
}
