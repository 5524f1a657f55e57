import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { type Health, HealthIndicator } from '../http/health-indicator.js';
import { Metrics } from '../http/metrics.js';
import { CallLogRepository } from './call-log.repository.js';
import { callsHealth, OUTAGE_CALLS } from './calls-health-rule.js';

/** Tells an operator how the platform takes the calls to user management, of all processes together. */
@Injectable()
export class CallsHealth {
  constructor(
    private readonly database: Database,
    private readonly calls: CallLogRepository,
    metrics: Metrics,
  ) {
    const standing = () => calls.standing(database.pool, 0);
    metrics.gauge('platform_window_limit', 'User-management calls that the platform takes in a minute', [], (gauge) =>
      gauge.set(calls.limit.calls),
    );
    metrics.gauge(
      'platform_window_calls',
      'User-management calls that occupy the minute now, of all processes',
      [],
      async (gauge) => gauge.set((await standing()).occupied),
    );
    metrics.gauge('platform_pause_seconds', 'Seconds until the pause after a 429 ends', [], async (gauge) => {
      const { blockedUntil, now } = await standing();
      gauge.set(Math.max(0, ((blockedUntil ?? now).getTime() - now.getTime()) / 1000));
    });
  }

  @HealthIndicator('platform')
  async health(): Promise<Health> {
    return callsHealth(await this.calls.standing(this.database.pool, OUTAGE_CALLS));
  }
}
