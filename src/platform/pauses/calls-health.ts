import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { type Health, HealthIndicator, healthOf, type Reason } from '../../monitoring/health-indicator.js';
import { Metrics } from '../../monitoring/metrics.js';
import { UnreadableAnswers } from '../http/unreadable-answers.repository.js';
import { CallLog } from './call-log.repository.js';
import { PausesRepository } from './pauses.repository.js';
import { callsReasons } from './stop.js';

/** The health of calls to the platform and the metrics of those to user management, over all processes. */
@Injectable()
export class CallsHealth {
  constructor(
    env: Env,
    private readonly pauses: PausesRepository,
    private readonly unreadable: UnreadableAnswers,
    log: CallLog,
    metrics: Metrics,
  ) {
    const limit = env.USER_MANAGEMENT_CALLS_PER_MINUTE;
    metrics.gauge('platform_window_limit', 'Maximum user-management calls per minute', [], (gauge) => gauge.set(limit));
    const calls = 'User-management calls of the last minute, over all processes';
    metrics.gauge('platform_window_calls', calls, [], async (gauge) => gauge.set(await log.inLastMinute()));
  }

  /** Degraded while calls pause, or while the platform refuses an operation or answers it in another form. */
  @HealthIndicator({ name: 'platform', needs: ['worker'] })
  async health(): Promise<Health> {
    const { now, pauses } = await this.pauses.readNow();
    const unreadable = (await this.unreadable.list()).map(({ operation, reason }): Reason => {
      return { code: 'unreadable-answers', values: { operations: `${operation}, ${reason}` } };
    });
    return healthOf([...callsReasons([...pauses.values()], now), ...unreadable]);
  }
}
