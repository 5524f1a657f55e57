import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { type Health, HealthIndicator, healthOf, type Reason } from '../../monitoring/health-indicator.js';
import { utc } from '../../monitoring/health-texts.js';
import { Metrics } from '../../monitoring/metrics.js';
import { UnreadableAnswers } from '../http/unreadable-answers.repository.js';
import type { CallWindow } from './pacing.js';
import { type EndedCall, RateLimiterRepository } from './rate-limiter.repository.js';

/** Consecutive failed calls that count as an outage. Single failures are normal. */
const OUTAGE_CALLS = 3;

/** The latest calls to user management, newest first. */
type RecentCalls = Pick<CallWindow, 'now' | 'blockedUntil'> & { ended: EndedCall[] };

/** The outcomes (`PlatformErrorKind`) caused by the platform or the network, not by the call. */
const FAILURES: readonly string[] = ['unreachable', 'unknown-outcome'];

/**
 * Judges the health of user management by its calls. It is degraded by a pause after a 429, and by an outage (the last
 * three calls unreachable or without a readable answer). The circuit breakers report a 403.
 */
export function callsHealth({ ended, blockedUntil, now }: RecentCalls): Health {
  if (blockedUntil && blockedUntil > now) {
    const values = { operations: 'user management', detail: `until ${utc(blockedUntil)}` };
    return healthOf([{ code: 'rate-limited', values }]);
  }
  const newest = ended.slice(0, OUTAGE_CALLS);
  const [last] = newest;
  const isOutage = newest.length === OUTAGE_CALLS && newest.every(({ outcome }) => FAILURES.includes(outcome));
  if (!last || !isOutage) return { status: 'ok' };
  const answer = [last.status, last.reason].filter((known) => known !== null).join(', ');
  return healthOf([{ code: 'platform-fault', values: { operations: last.operation, detail: answer } }]);
}

/** The health and the metrics of calls to user management, over all processes. */
@Injectable()
export class CallsHealth {
  constructor(
    private readonly database: Database,
    private readonly calls: RateLimiterRepository,
    private readonly unreadable: UnreadableAnswers,
    metrics: Metrics,
  ) {
    const declare = (name: string, help: string, read: () => number | Promise<number>) =>
      metrics.gauge(name, help, [], async (gauge) => gauge.set(await read()));
    const occupied = async () => (await calls.readWindow(database.pool)).occupied;
    const pauseSeconds = async () => (await calls.pauseMs(database.pool)) / 1000;
    declare('platform_window_limit', 'Maximum user-management calls per minute', () => calls.limit.calls);
    declare('platform_window_calls', 'Occupied permits for user-management calls, over all processes', occupied);
    declare('platform_pause_seconds', 'Seconds until the pause after a 429 ends', pauseSeconds);
  }

  @HealthIndicator({ name: 'platform', needs: ['worker'] })
  async health(): Promise<Health> {
    const ended = await this.calls.newest(this.database.pool, OUTAGE_CALLS);
    const health = callsHealth({ ...(await this.calls.readWindow(this.database.pool)), ended });
    const unreadable = (await this.unreadable.list()).map(({ operation, reason }): Reason => {
      return { code: 'unreadable-answers', values: { operations: `${operation}, ${reason}` } };
    });
    return healthOf([...(health.reasons ?? []), ...unreadable]);
  }
}
