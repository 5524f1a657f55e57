import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { codeOf } from '../../http/problem/database-fault.js';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { Metrics } from '../../http/server/metrics.js';
import { type BudgetHolder, callsHealth, heldBudget, OUTAGE_CALLS } from './calls-health-rule.js';
import { RateLimiterRepository } from './rate-limiter.repository.js';

/** SQLSTATE of a lock that was not had in time. */
const LOCK_NOT_AVAILABLE = '55P03';

/** Tells an operator how the platform takes the calls to user management, of all processes together. */
@Injectable()
export class CallsHealth {
  constructor(
    private readonly database: Database,
    private readonly calls: RateLimiterRepository,
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
    const holder = await this.budgetHolder();
    if (holder) return heldBudget(holder);
    return callsHealth(await this.calls.standing(this.database.pool, OUTAGE_CALLS));
  }

  /** Who keeps the budget's row, so that no process gets a slot. */
  private async budgetHolder(): Promise<BudgetHolder | undefined> {
    try {
      await this.database.transaction((tx) => this.calls.touchBudget(tx));
      return undefined;
    } catch (error) {
      if (codeOf(error) !== LOCK_NOT_AVAILABLE) throw error;
      return this.calls.budgetHolder(this.database.pool);
    }
  }
}
