import type { Health } from '../../http/server/health-indicator.js';

/** Answers in a row that are no answers before it is called an outage: single ones happen. */
export const OUTAGE_CALLS = 3;

/** What the log of calls tells of the platform, as it is now. */
export interface CallsLately {
  /** The newest calls that ended, the newest first: what became of each, and its HTTP status. */
  ended: { outcome: string; status: number | null }[];
  /** A 429 stopped the calls until then; null or past: they go on. */
  blockedUntil: Date | null;
  now: Date;
}

/**
 * How the platform's user management is, judged by what became of our calls: a pause after a 429 and an outage (the
 * last three calls unreachable, or without a readable answer) degrade it. A 403 is the circuits' to tell.
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

/** Nothing can be sent while one session holds the budget: a person has to end it. */
export function heldBudget({ pid, state, seconds }: BudgetHolder): Health {
  const reason = `A session of PostgreSQL (pid ${pid}, ${state ?? 'state unknown'}) has held the call budget for ${Math.round(seconds)} s: nothing is sent to user management until it ends; pg_terminate_backend(${pid}) ends it.`;
  return { status: 'down', reason, facts: { heldByPid: pid } };
}

type Failure = keyof typeof FAILURES;

/** The outcomes (`PlatformErrorKind`) that tell of the platform or of the way to it, not of the call. */
const FAILURES = {
  unreachable: 'could not be reached',
  'unknown-outcome': 'gave no readable answer',
} as const;
