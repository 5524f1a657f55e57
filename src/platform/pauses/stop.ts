import type { ReasonCode } from '../../monitoring/health-texts.js';
import { type Pause, USER_MANAGEMENT } from './pause-rule.js';

/** Why calls of an API or of an operation do not go out, in the codes of health. */
export interface Stop {
  code: StopCode;
  /** The operation, or `user management` for all of them. */
  operation: string;
  /** The HTTP status of the newest answer that paused; null without one. */
  status: number | null;
  /** Since when; null if it is not known. */
  since: Date | null;
  /** When calls go out again, or a probe does. */
  until: Date;
}

type StopCode = Extract<ReasonCode, 'rate-limited' | 'platform-unauthorized' | 'platform-address' | 'platform-fault'>;

/** How long nobody probes a pause before it counts as over: longer than the longest backoff, an hour. */
const FORGOTTEN_MS = 65 * 60_000;

/** Why a pause stops calls. A 429 comes first, because no probe goes out before its end. Pure. */
export function stopOf(pause: Pause, now: Date): Stop | undefined {
  const { key, limitedUntil, pausedUntil, status, failingSince } = pause;
  const operation = key === USER_MANAGEMENT ? 'user management' : key;
  if (limitedUntil !== null && limitedUntil > now) {
    return { code: 'rate-limited', operation, status: 429, since: null, until: limitedUntil };
  }
  // After the longest backoff without a probe, no one needs these calls any more.
  if (pausedUntil === null || now.getTime() - pausedUntil.getTime() > FORGOTTEN_MS) return undefined;
  return { code: causeOf(pause), operation, status, since: failingSince, until: pausedUntil };
}

function causeOf({ reason, status }: Pause): StopCode {
  if (reason === 'unauthorized' || status === 401 || status === 403) return 'platform-unauthorized';
  return reason === 'elsewhere' ? 'platform-address' : 'platform-fault';
}
