import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { Metrics } from '../../http/server/metrics.js';
import { RateLimiterRepository } from './rate-limiter.repository.js';

/** Answers in a row that are no answers before it is called an outage: single ones happen. */
const OUTAGE_CALLS = 3;

/** The latest calls to the platform's user management. */
interface CallsLately {
  /** The newest calls that ended, the newest first: what became of each, and its HTTP status. */
  ended: { outcome: string; status: number | null }[];
  /** A 429 stopped the calls until then; null or past: they go on. */
  blockedUntil: Date | null;
  now: Date;
}

/** The outcomes (`PlatformErrorKind`) that are caused by the platform or the way to it, not by the call. */
const FAILURES: Record<string, string> = {
  unreachable: 'could not be reached',
  'unknown-outcome': 'gave no readable answer',
};

/**
 * How the platform's user management is, judged by what became of our calls: a pause after a 429 and an outage (the
 * last three calls unreachable, or without a readable answer) degrade it. A 403 is reported by the circuits.
 */
export function callsHealth({ ended, blockedUntil, now }: CallsLately): Health {
  if (blockedUntil && blockedUntil > now) {
    const until = blockedUntil.toISOString();
    const reason = `The platform answered 429: no call to user management before ${until}, then it goes on by itself; if this happens often, see what else uses PLATFORM_API_KEY.`;
    return { status: 'degraded', reason, facts: { pausedUntil: until } };
  }
  const newest = ended.slice(0, OUTAGE_CALLS);
  const [last] = newest;
  if (!last || newest.length < OUTAGE_CALLS || !newest.every(({ outcome }) => outcome in FAILURES))
    return { status: 'ok' };
  const what = last.status === null ? FAILURES[last.outcome] : `answered with ${last.status}`;
  return {
    status: 'degraded',
    reason: `The platform ${what} at the last ${OUTAGE_CALLS} calls to user management; work is kept and tried again. npx notebridge doctor looks for the cause.`,
    facts: { lastOutcome: last.outcome, lastStatus: last.status },
  };
}

/** Health and metrics of the calls to user management, of all processes together. */
@Injectable()
export class CallsHealth {
  constructor(
    private readonly database: Database,
    private readonly calls: RateLimiterRepository,
    metrics: Metrics,
  ) {
    metrics.gauge('platform_window_limit', 'User-management calls that the platform takes in a minute', [], (gauge) =>
      gauge.set(calls.limit.calls),
    );
    metrics.gauge(
      'platform_window_calls',
      'User-management calls that occupy the minute now, of all processes',
      [],
      async (gauge) => gauge.set((await calls.readWindow(database.pool)).occupied),
    );
    metrics.gauge('platform_pause_seconds', 'Seconds until the pause after a 429 ends', [], async (gauge) =>
      gauge.set((await calls.bulkPace(database.pool)).blockedMs / 1000),
    );
  }

  @HealthIndicator('platform')
  async health(): Promise<Health> {
    const { pool } = this.database;
    const ended = await this.calls.newest(pool, OUTAGE_CALLS);
    return callsHealth({ ...(await this.calls.readWindow(pool)), ended });
  }
}
