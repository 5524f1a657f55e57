import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { Metrics } from '../../http/server/metrics.js';
import { UnreadableAnswers } from '../http/unreadable-answers.repository.js';
import type { CallWindow } from './pacing.js';
import { type EndedCall, RateLimiterRepository } from './rate-limiter.repository.js';

/** Consecutive failed calls that count as an outage. Single failures are normal. */
const OUTAGE_CALLS = 3;

const TEST_CONTRACT =
  'Compare operations.NAME.response in PLATFORM_CONTRACT with an answer: npx notebridge contract check --sample FILE --operation NAME.';

/** The latest calls to user management, newest first. */
type RecentCalls = Pick<CallWindow, 'now' | 'blockedUntil'> & { ended: EndedCall[] };

/** The outcomes (`PlatformErrorKind`) caused by the platform or the network, not by the call. */
const FAILURES: Record<string, string> = {
  unreachable: 'could not be reached',
  'unknown-outcome': 'gave no readable answer',
};

/**
 * Judges the health of user management by its calls. It is degraded by a pause after a 429, and by an outage (the last
 * three calls unreachable or without a readable answer). The circuit breakers report a 403.
 */
export function callsHealth({ ended, blockedUntil, now }: RecentCalls): Health {
  if (blockedUntil && blockedUntil > now) {
    const until = blockedUntil.toISOString();
    const reason = `The platform answered 429, so calls to user management pause until ${until} and then resume automatically. If this happens often, check what else uses PLATFORM_API_KEY.`;
    return { status: 'degraded', reason, facts: { pausedUntil: until } };
  }
  const newest = ended.slice(0, OUTAGE_CALLS);
  const [last] = newest;
  if (!last || newest.length < OUTAGE_CALLS || !newest.every(({ outcome }) => outcome in FAILURES))
    return { status: 'ok' };
  const cause = last.reason === null ? '' : ` (${last.reason})`;
  const what = last.status === null ? FAILURES[last.outcome] + cause : `answered with ${last.status}${cause}`;
  return {
    status: 'degraded',
    reason: `The platform ${what} at the last ${OUTAGE_CALLS} calls to user management; work is kept and retried. Run npx notebridge doctor to find the cause.`,
    facts: { lastOutcome: last.outcome, lastStatus: last.status },
  };
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

  @HealthIndicator('platform')
  async health(): Promise<Health> {
    const ended = await this.calls.newest(this.database.pool, OUTAGE_CALLS);
    const health = callsHealth({ ...(await this.calls.readWindow(this.database.pool)), ended });
    const unreadable = (await this.unreadable.list()).map(({ operation, reason }) => `${operation}, ${reason}`);
    if (unreadable.length === 0) return health;
    const which = `Answers of the platform are unreadable: ${unreadable.join('; ')}. ${TEST_CONTRACT}`;
    return { ...health, status: 'degraded', reason: [health.reason, which].filter(Boolean).join(' ') };
  }
}
