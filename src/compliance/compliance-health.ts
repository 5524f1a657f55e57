import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { type Health, HealthIndicator, healthOf } from '../http/server/health-indicator.js';
import { requestsHealth } from '../platform/send/requests-health.js';
import { LANES } from './job.js';

const SUBMISSIONS = { table: 'compliance_jobs', since: 'created_at', operation: 'submitComplianceJob' } as const;

/** Reports compliance jobs that cannot be submitted, and those that await a decision. */
@Injectable()
export class ComplianceHealth {
  constructor(private readonly database: Database) {}

  @HealthIndicator('compliance')
  async health(): Promise<Health> {
    const { facts, reasons } = await requestsHealth(this.database.pool, SUBMISSIONS);
    const { rows } = await this.database.pool.query<{ unreadableResults: number; elsewhere: boolean }>(
      `SELECT (SELECT count(*)::int FROM compliance_jobs WHERE review = 'result-unreadable') AS "unreadableResults",
         EXISTS (SELECT FROM compliance_jobs WHERE lane = ${LANES.lookups} AND due_at IS NOT NULL
           AND fault = 'platform-address') AS elsewhere`,
    );
    const { unreadableResults = 0, elsewhere } = rows[0] ?? {};
    return healthOf(
      { unknownSubmissions: facts.unknown, unreadableResults },
      {
        ...reasons,
        'Another server than the platform answers getComplianceJob. Check PLATFORM_BASE_URL and its path in PLATFORM_CONTRACT.':
          elsewhere,
      },
    );
  }
}
