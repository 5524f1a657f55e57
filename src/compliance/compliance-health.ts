import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { type Health, HealthIndicator, healthOf } from '../http/server/health-indicator.js';
import { requestsHealth } from '../platform/send/requests-health.js';

const SUBMISSIONS = { table: 'compliance_jobs', since: 'created_at', operation: 'submitComplianceJob' } as const;

/** Reports compliance jobs that cannot be submitted, and those that await a decision. */
@Injectable()
export class ComplianceHealth {
  constructor(private readonly database: Database) {}

  @HealthIndicator('compliance')
  async health(): Promise<Health> {
    const { facts, reasons } = await requestsHealth(this.database.pool, SUBMISSIONS);
    const { rows } = await this.database.pool.query<{ count: number }>(
      `SELECT count(*)::int FROM compliance_jobs WHERE review = 'result-unreadable'`,
    );
    return healthOf({ unknownSubmissions: facts.unknown, unreadableResults: rows[0]?.count ?? 0 }, reasons);
  }
}
