import { backoffMs } from '../../due-rows/backoff.js';
import type { STOPS } from '../../words/person-words.js';
import { OPERATIONS, type Operation } from './person.js';

/** The reasons why a breaker is open, as people and health show them. */
type BreakerCode = keyof typeof STOPS;

/** The outcome of a call, as far as it concerns everyone who needs the operation. */
export type Signal =
  /** `answered`: the platform knows the operation, but this answer proves nothing about its URL. */
  { kind: 'success' } | { kind: 'answered' } | { kind: 'not-sent' } | Failure;

type Failure =
  /** A 401 or 403, or an answer that is not the platform's. */
  | { kind: 'unauthorized' | 'wrong-url' }
  /** No readable answer. `sent` is false if nothing reached the platform. */
  | { kind: 'unanswered'; sent: boolean }
  | { kind: 'rejected'; status: number }
  | { kind: 'rate-limited'; retryAfterMs: number | undefined };

/** Calls in a row that failed in the same way, for different people, while the breaker is closed. */
interface Streak {
  code: BreakerCode;
  status: number | null;
  people: string[];
}

/** Why an open breaker blocks its operation. */
interface Block {
  code: BreakerCode;
  /** The HTTP status of a rejection. */
  status: number | null;
  /** Consecutive failures, which lengthen the block. */
  failures: number;
  /** When it opened; probes that fail do not change it. */
  openedAt: number;
  /** The operation is blocked until then; then one probe may go out. */
  until: number;
  /** The call id of the probe in flight, or of the latest one. */
  probe: string | null;
  /** The person of the latest probe. The next one goes to another person where there is one. */
  person: string | null;
}

/** The circuit breaker of one operation. Times are milliseconds since the epoch, by the database clock. */
export interface Breaker {
  block: Block | null;
  streak: Streak | null;
  /** When the call of the latest success was granted; 0 if none. */
  succeededAt: number;
  /** When the operation last failed; 0 if never. */
  failedAt: number;
  /** Digests of the URL of the latest success, and of its base URL. */
  url: string;
  base: string;
}

export type Breakers = Partial<Record<Operation, Breaker>>;

/** A call whose outcome is recorded. `url` and `base` are digests of where it was sent. */
export interface BreakerCall {
  id: string;
  person: string;
  grantedAt: number;
  url: string;
  base: string;
}

/** People in a row with the same failure that open a breaker. One person's own fault therefore stops no one else. */
const STREAK_PEOPLE = 3;

/** The first block of an operation, and the longest ones. */
const FIRST_BLOCK_MS = 5_000;
const LONG_BLOCK_MS = 600_000;
/** The longest block for a fault that may be of single people, so that it costs an interactive caller seconds. */
const SHORT_BLOCK_MS = 15_000;

/** How long a success proves that the platform answers at a base URL. */
const PROOF_MS = 60_000;

/** Updates `succeededAt` at most this often, because each success would otherwise write the breaker's row. */
const SUCCESS_STEP_MS = 1_000;

const CLOSED: Breaker = { block: null, streak: null, succeededAt: 0, failedAt: 0, url: '', base: '' };

export function breakerOf(breakers: Breakers, operation: Operation): Breaker {
  return breakers[operation] ?? CLOSED;
}

/** The blocked operations, with the reason of each. */
export function openBlocks(breakers: Breakers): (Block & { operation: Operation })[] {
  return OPERATIONS.flatMap((operation) => {
    const { block } = breakerOf(breakers, operation);
    return block ? { operation, ...block } : [];
  });
}

export type Phase = 'closed' | 'open' | 'half-open';

/**
 * The phase of an operation, which may be called for everyone (`closed`), for one probe (`half-open`) or for no one
 * (`open`).
 */
export function phaseOf({ block }: Breaker, now: number): Phase {
  if (!block) return 'closed';
  return now < block.until ? 'open' : 'half-open';
}

/** Marks a probe as sent: no other call of the operation starts until it is answered, or until `answerMs` have passed. */
export function afterProbe(
  breaker: Breaker,
  call: { id: string; person: string },
  now: number,
  answerMs: number,
): Breaker {
  const { block } = breaker;
  if (!block) return breaker;
  return { ...breaker, block: { ...block, until: now + answerMs, probe: call.id, person: call.person } };
}

/** The breaker after a call. */
interface AfterCall {
  breaker: Breaker;
  /** Set by a 429 that opened the breaker, because all operations share the limit; null if it named no wait. */
  retryAfterMs?: number | null;
}

/**
 * The breaker after the outcome of a call. Pure; returns the same object if nothing has to be stored.
 *
 * A success of the probe closes it. It opens on a 429, a 401 or 403, a wrong URL, and on `STREAK_PEOPLE` people in a row
 * without a readable answer or with the same other 4xx. While it is open, other calls than the probe were in flight
 * before: they only lengthen the block of a 429.
 *
 * @param fraction a random number in [0, 1), which spreads the probes
 */
export function afterCall(
  breaker: Breaker,
  operation: Operation,
  call: BreakerCall,
  signal: Signal,
  now: number,
  fraction: number,
): AfterCall {
  const { block } = breaker;
  const isProbe = block?.probe === call.id;
  if (signal.kind === 'not-sent') {
    return { breaker: block && isProbe ? { ...breaker, block: { ...block, until: now } } : breaker };
  }
  if (signal.kind === 'success') return { breaker: afterSuccess(breaker, call, isProbe) };
  if (signal.kind === 'answered') {
    return {
      breaker: isProbe || breaker.streak ? { ...breaker, block: isProbe ? null : block, streak: null } : breaker,
    };
  }
  const failed = { ...breaker, failedAt: now };
  if (block && !isProbe) {
    const until = signal.kind === 'rate-limited' ? now + (signal.retryAfterMs ?? 0) : 0;
    if (until <= block.until) return { breaker };
    return { breaker: { ...failed, block: { ...block, code: 'rate-limited', status: null, until } } };
  }
  const { code, status } = causeOf(signal);
  // A rejection may be one person's own. It therefore ends a block with another cause, and counts for a new one.
  const isBlocked = block !== null && (signal.kind !== 'rejected' || (block.code === code && block.status === status));
  if (!isBlocked) {
    const streak = extendStreak(breaker.streak, code, status, call.person);
    const isShared = signal.kind === 'unanswered' || signal.kind === 'rejected';
    if (isShared && streak.people.length < STREAK_PEOPLE) return { breaker: { ...failed, block: null, streak } };
  }
  const failures = block?.code === code ? block.failures + 1 : 1;
  const until = now + blockMs(operation, signal, failures, fraction);
  const { probe, person } = block ?? { probe: null, person: call.person };
  const openedAt = block?.openedAt ?? now;
  const next = { code, status, failures, openedAt, until, probe, person };
  const opened = { ...failed, streak: null, block: next };
  if (block || signal.kind !== 'rate-limited') return { breaker: opened };
  return { breaker: opened, retryAfterMs: signal.retryAfterMs ?? null };
}

/**
 * True if a refusal is only this person's: the operation succeeded for another person since this person's previous
 * refusal, and it is not blocked for everyone.
 *
 * @param before when this operation last refused this person; null if it did not
 */
export function isOwnRefusal({ block, succeededAt }: Breaker, before: number | null): boolean {
  return block === null && before !== null && before < succeededAt;
}

/**
 * The meaning of a 404 of a delete or a provider list: the user is `missing`, the URL is `wrong` because the operation
 * never succeeded there, or it is `doubtful` until another operation succeeds at the same base URL.
 */
export function meaningOf404(
  breakers: Breakers,
  operation: Operation,
  call: Pick<BreakerCall, 'url' | 'base'>,
  now: number,
): 'missing' | 'doubtful' | 'wrong' {
  if (breakerOf(breakers, operation).url !== call.url) return 'wrong';
  return isProven(breakers, operation, call.base, now) ? 'missing' : 'doubtful';
}

/** True if another operation succeeded at a base URL within the last minute. */
export function isProven(breakers: Breakers, operation: Operation, base: string, now: number): boolean {
  return Object.entries(breakers).some(
    ([other, { succeededAt, base: at }]) => other !== operation && at === base && now - succeededAt < PROOF_MS,
  );
}

/** True if an operation is blocked because its answers are unreadable, and no operation has succeeded since. */
export function isSilent(breakers: Breakers): boolean {
  const all = Object.values(breakers);
  const succeededAt = Math.max(0, ...all.map((breaker) => breaker.succeededAt));
  return all.some(({ block, failedAt }) => block?.code === 'platform-fault' && succeededAt <= failedAt);
}

function afterSuccess(breaker: Breaker, { grantedAt, url, base }: BreakerCall, isProbe: boolean): Breaker {
  const isNews = breaker.streak !== null || breaker.url !== url || breaker.failedAt >= breaker.succeededAt;
  if (!isProbe && !isNews && grantedAt - breaker.succeededAt < SUCCESS_STEP_MS) return breaker;
  const block = isProbe ? null : breaker.block;
  return { ...breaker, block, streak: null, succeededAt: grantedAt, url, base };
}

function causeOf(signal: Failure): { code: BreakerCode; status: number | null } {
  switch (signal.kind) {
    case 'rate-limited':
      return { code: 'rate-limited', status: null };
    case 'unauthorized':
      return { code: 'platform-unauthorized', status: null };
    case 'wrong-url':
      return { code: 'platform-address', status: null };
    case 'unanswered':
      return { code: 'platform-fault', status: null };
    case 'rejected':
      return { code: 'platform-rejects', status: signal.status };
  }
}

function extendStreak(before: Streak | null, code: BreakerCode, status: number | null, person: string): Streak {
  const isSame = before?.code === code && before.status === status;
  return { code, status, people: [...new Set([...(isSame ? before.people : []), person])] };
}

function blockMs(operation: Operation, signal: Failure, failures: number, fraction: number): number {
  if (signal.kind === 'rate-limited' && signal.retryAfterMs !== undefined) return signal.retryAfterMs;
  // A create without an answer may leave a person with an unknown outcome, so it is repeated rarely.
  const isRisky = signal.kind === 'unanswered' && signal.sent && operation.startsWith('create');
  const isShort = signal.kind === 'rejected' || (signal.kind === 'unanswered' && !isRisky);
  return backoffMs(failures, fraction, { baseMs: FIRST_BLOCK_MS, maxMs: isShort ? SHORT_BLOCK_MS : LONG_BLOCK_MS });
}
