import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { type Health, HealthIndicator, healthOf, type Reason } from '../../monitoring/health-indicator.js';
import { type ReasonCode, utc } from '../../monitoring/health-texts.js';
import { Metrics } from '../../monitoring/metrics.js';
import { UnreadableAnswers } from '../http/unreadable-answers.repository.js';
import { type Api, keysOf } from './apis.js';
import { CallLog } from './call-log.repository.js';
import type { Pause } from './pause-row.js';
import { PausesRepository } from './pauses.repository.js';

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

  /** Why calls of an API do not go out: all of them, or else those of its first operation that pauses; undefined if none does. */
  async stopped(api: Api): Promise<ReturnType<typeof stopOf>> {
    const { now, pauses } = await this.pauses.readNow();
    return keysOf(api).flatMap((key) => stopOf(pauses.get(key) as Pause, now) ?? [])[0];
  }
}

type StopCode = Extract<ReasonCode, 'rate-limited' | 'platform-unauthorized' | 'platform-address' | 'platform-fault'>;

/** How long nobody probes a pause before it counts as over: longer than the longest backoff, an hour. */
const FORGOTTEN_MS = 65 * 60_000;

/** Why a pause stops calls, for health. A 429 comes first, because no probe goes out before its end. Pure. */
export function stopOf(pause: Pause, now: Date): (Reason & { code: StopCode }) | undefined {
  const { key, limitedUntil, pausedUntil, status, failingSince } = pause;
  const operations = key.replace('-', ' ');
  if (limitedUntil !== null && limitedUntil > now) {
    return { code: 'rate-limited', values: { operations, detail: `until ${utc(limitedUntil)}` } };
  }
  // After the longest backoff without a probe, no one needs these calls any more.
  if (pausedUntil === null || now.getTime() - pausedUntil.getTime() > FORGOTTEN_MS) return undefined;
  // No call is due, for example because only callers use the operation.
  const probe = pausedUntil > now ? `next probe at ${utc(pausedUntil)}` : 'the next call is a probe';
  const detail = `${status === null ? '' : `${status}, `}${probe}`;
  return { code: causeOf(pause), values: { operations, detail }, ...(failingSince && { since: failingSince }) };
}

function causeOf({ reason, status }: Pause): StopCode {
  if (reason === 'unauthorized' || status === 401 || status === 403) return 'platform-unauthorized';
  return reason === 'elsewhere' ? 'platform-address' : 'platform-fault';
}

/** Refusals in a row of one operation before they are a cause: single ones are about single people or sessions. */
const REFUSED_IN_A_ROW = 20;

/** Why calls do not go out, or are refused. Pure. */
export function callsReasons(pauses: readonly Pause[], now: Date): Reason[] {
  const refused = pauses.filter(({ refusals }) => refusals >= REFUSED_IN_A_ROW);
  return [
    ...pauses.flatMap((pause) => stopOf(pause, now) ?? []),
    ...refused.map(({ key }): Reason => ({ code: 'platform-rejects', values: { operations: key } })),
  ];
}
