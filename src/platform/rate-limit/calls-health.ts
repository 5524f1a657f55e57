import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { codeOf } from '../../http/problem/fault.js';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { Metrics } from '../../http/server/metrics.js';
import { RateLimiterRepository } from './rate-limiter.repository.js';

/** Answers in a row that are no answers before it is called an outage: single ones happen. */
const OUTAGE_CALLS = 3;

/** The latest calls to the platform's user management. */
export interface CallsLately {
  /** The newest calls that ended, the newest first: what became of each, and its HTTP status. */
  ended: { outcome: string; status: number | null }[];
  /** A 429 stopped the calls until then; null or past: they go on. */
  blockedUntil: Date | null;
  now: Date;
}

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
  const isOutage = newest.length === OUTAGE_CALLS && newest.every(({ outcome }) => outcome in FAILURES);
  if (!isOutage) return { status: 'ok' };
  const { outcome, status } = newest[0] as CallsLately['ended'][number];
  const what = status === null ? FAILURES[outcome as Failure] : `answered with ${status}`;
  return {
    status: 'degraded',
    reason: `The platform ${what} at the last ${OUTAGE_CALLS} calls to user management; work is kept and tried again. npx notebridge doctor looks for the cause.`,
    facts: { lastOutcome: outcome, lastStatus: status },
  };
}

/** A session that keeps the row from which every process takes its slots. */
export interface BudgetHolder {
  pid: number;
  /** As PostgreSQL says it, such as `idle in transaction`. */
  state: string | null;
  seconds: number;
}

type Failure = keyof typeof FAILURES;

/** The outcomes (`PlatformErrorKind`) that are caused by the platform or the way to it, not by the call. */
const FAILURES = {
  unreachable: 'could not be reached',
  'unknown-outcome': 'gave no readable answer',
} as const;

/** SQLSTATE of a lock that was not had in time. */
const LOCK_NOT_AVAILABLE = '55P03';

/** Health and metrics of the calls to user management, of all processes together. */
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
    if (!holder) return callsHealth(await this.calls.standing(this.database.pool, OUTAGE_CALLS));
    // Nothing can be sent while one session holds the budget: an operator has to end it.
    const { pid, state, seconds } = holder;
    const reason = `A session of PostgreSQL (pid ${pid}, ${state ?? 'state unknown'}) has held the call budget for ${Math.round(seconds)} s: nothing is sent to user management until it ends; pg_terminate_backend(${pid}) ends it.`;
    return { status: 'down', reason, facts: { heldByPid: pid } };
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
