import type { Reason } from '../../monitoring/health-indicator.js';
import { REFUSALS, type Refusal, type RefusalCause, refusalText } from '../../words/refusal-words.js';

/** The refusals for one cause. `lastAt` is in milliseconds since the Unix epoch. */
export type Refused = Omit<Refusal, 'cause'> & { count: number; lastAt: number };

/** The last genuine delivery, null if there was none, and the refusals since then. */
export interface ReceiverState {
  genuineAt: Date | null;
  refusals: Partial<Record<RefusalCause, Refused>>;
}

export const NOTHING: ReceiverState = { genuineAt: null, refusals: {} };

/** Refusals that degrade health, unless a signature is right. Strangers may send a few. */
const MIN_SUSPICIOUS = 3;

/** How long a refusal counts for health. */
const COUNTED_MS = 60 * 60_000;

/** Adds what was written later. A genuine delivery clears the refusals that were written before it. */
export function added(earlier: ReceiverState, later: ReceiverState): ReceiverState {
  if (later.genuineAt) {
    const isOlder = earlier.genuineAt && earlier.genuineAt > later.genuineAt; // a slow write of another process
    return isOlder ? { ...later, genuineAt: earlier.genuineAt } : later;
  }
  const refusals = { ...earlier.refusals };
  for (const [cause, refused] of refusalsOf(later))
    refusals[cause] = { ...refused, count: refused.count + (refusals[cause]?.count ?? 0) };
  return { genuineAt: earlier.genuineAt, refusals };
}

/** The refusals, the most frequent cause first. */
function refusalsOf({ refusals }: ReceiverState): [RefusalCause, Refused][] {
  const entries = Object.entries(refusals) as [RefusalCause, Refused][];
  return entries.sort(([, one], [, other]) => other.count - one.count);
}

/** Why the receiver is degraded: one reason for each code, with its most frequent cause. */
export function reasonsOf(state: ReceiverState, now: number): Reason[] {
  const recent = refusalsOf(state).filter(([, { lastAt }]) => now - lastAt < COUNTED_MS);
  const isProven = ([cause]: [RefusalCause, Refused]) => REFUSALS[cause].code === 'webhook-clock';
  const sum = (refusals: typeof recent) => refusals.reduce((total, [, { count }]) => total + count, 0);
  const isSuspicious = sum(recent.filter((each) => !isProven(each))) >= MIN_SUSPICIOUS;
  const counted = recent.filter((each) => isSuspicious || isProven(each));
  return [...new Set(counted.map(([cause]) => REFUSALS[cause].code))].map((code) => {
    const [first, ...others] = counted.filter(([cause]) => REFUSALS[cause].code === code);
    const [cause, refused] = first as [RefusalCause, Refused];
    return { code, values: { count: refused.count + sum(others), ...refusalText({ cause, ...refused }) } };
  });
}
