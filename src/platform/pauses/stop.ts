import type { Reason } from '../../monitoring/health-indicator.js';
import { type ReasonCode, utc } from '../../monitoring/health-texts.js';
import { COMPLIANCE, SESSIONS, USER_MANAGEMENT } from './apis.js';
import type { Pause } from './pause-row.js';

type StopCode = Extract<ReasonCode, 'rate-limited' | 'platform-unauthorized' | 'platform-address' | 'platform-fault'>;

/** How long nobody probes a pause before it counts as over: longer than the longest backoff, an hour. */
const FORGOTTEN_MS = 65 * 60_000;

/** The APIs as health names them. */
const NAMES: Record<string, string> = {
  [USER_MANAGEMENT]: 'user management',
  [SESSIONS]: 'sessions',
  [COMPLIANCE]: 'compliance',
};

/** Why a pause stops calls, for health. A 429 comes first, because no probe goes out before its end. Pure. */
export function stopOf(pause: Pause, now: Date): (Reason & { code: StopCode }) | undefined {
  const { key, limitedUntil, pausedUntil, status, failingSince } = pause;
  const operations = NAMES[key] ?? key;
  if (limitedUntil !== null && limitedUntil > now) {
    return { code: 'rate-limited', values: { operations, detail: `until ${utc(limitedUntil)}` } };
  }
  // After the longest backoff without a probe, no one needs these calls any more.
  if (pausedUntil === null || now.getTime() - pausedUntil.getTime() > FORGOTTEN_MS) return undefined;
  const detail = `${status === null ? '' : `${status}, `}next probe at ${utc(pausedUntil)}`;
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
