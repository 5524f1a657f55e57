import type { OperationName } from '../contract/operations.js';
import type { PlatformErrorKind } from '../contract/platform-errors.js';
import { apiOf, isApi } from './apis.js';
import type { Pause, Pauses } from './pause-row.js';

/** How an attempt ended: with a readable 2xx, or as a `PlatformError`; `unreadable`: what it would send could not be decrypted. */
export interface Ending {
  kind: 'ok' | 'unreadable' | PlatformErrorKind;
  /** The HTTP status; null without an answer. */
  status: number | null;
  /** A redirect, a 405 or a page of HTML: this URL is not that of the operation. */
  isWrongAddress?: boolean;
  retryAfterMs?: number | undefined;
}

/** What is known besides the answer. */
export interface JudgeFacts {
  /** The operation names a user or a session in its path, so that a 404 may mean this one. */
  namesSubject: boolean;
  /** The operation has succeeded at this URL, or its path is built in and a call to the base URL succeeded a moment ago. */
  addressWorks: boolean;
  /** The path comes from this program and not from the contract file. */
  isBuiltIn: boolean;
  /** The same answer came for this subject before, and the operation has succeeded for others since, or the subject has failed. */
  isRepeated: boolean;
}

/**
 * What an answer means.
 *
 * - `gone`: the platform does not know the user or the session that the path names
 * - `doubtful`: so it says, but another server may say so; a check shows which. `unconfirmed`: no check can
 * - `refused`: the platform refuses this subject. `personal`: also this subject, after an answer that stopped the others
 * - `elsewhere`: a refusal for everyone, or another server's answer. `unauthorized`: the API key
 * - `lost`: it may have taken effect. `unreachable`: no connection. `unsent`: this process did not send it;
 *   `unreadable`: nor can it
 */
export type Verdict =
  | ('ok' | 'gone' | 'doubtful' | 'unconfirmed' | 'refused' | 'personal')
  | ('limited' | 'unauthorized' | 'elsewhere' | 'lost' | 'unreachable' | 'unsent' | 'unreadable');

/** Names what an answer means. Pure. */
export function judge({ kind, status, isWrongAddress }: Ending, facts: JudgeFacts): Verdict {
  const { namesSubject, addressWorks, isBuiltIn, isRepeated } = facts;
  const shared = (verdict: Verdict): Verdict => (isRepeated ? 'personal' : verdict);
  switch (kind) {
    case 'ok':
    case 'unreadable':
      return kind;
    case 'rate-limited':
      return 'limited';
    case 'held':
    case 'not-configured':
      return 'unsent';
    case 'unreachable':
      return 'unreachable';
    case 'unauthorized':
      return shared(status === 401 ? 'unauthorized' : 'elsewhere');
    case 'not-found':
      if (isWrongAddress) return shared('elsewhere');
      if (!namesSubject) return addressWorks ? 'refused' : shared('elsewhere');
      return addressWorks ? 'gone' : isBuiltIn ? 'doubtful' : 'unconfirmed';
    case 'rejected':
      return isWrongAddress ? shared('elsewhere') : 'refused';
    case 'unknown-outcome':
      return isWrongAddress ? shared('elsewhere') : 'lost';
  }
}

/** The call that was answered. */
export interface PausingCall {
  /** The id of the row that it is about: a person or a session. */
  subject: string;
  beganAt: Date;
  /** The keys of the pauses that it probes: it went out alone while this API or operation was paused. */
  probes: readonly string[];
}

/** Different subjects in a row without a readable answer that pause an API or an operation. */
const LOST_SUBJECTS = 5;

const FIRST_PAUSE_MS = 5_000;

/** The longest pause. Its probes lose nothing, or at most one create each. */
const LONGEST_PAUSE_MS = 30_000;

/** The longest pause after answers that prove that nothing happened: longer ones would hold up the subjects behind. */
const PROVEN_PAUSE_MS = 5_000;

const LONGEST_LIMIT_MS = 60_000;

/** How long after the end of a pause a probe would have come, if one were due. */
const UNPROBED_MS = 60_000;

/**
 * Returns the pause of an API or of an operation after an answer. Pure.
 *
 * | answer                              | the API                                            | its operation           |
 * |-------------------------------------|----------------------------------------------------|-------------------------|
 * | `ok`, `gone`, `refused`             | ends, if the call began after the trouble          | the same                |
 * | `limited` (429)                     | limited: Retry-After, or 5 s doubling to a minute  | –                       |
 * | `unauthorized` (401)                | pauses 5 s, doubling to 30 s                       | –                       |
 * | `elsewhere` (403, 405, 3xx, HTML, 404 of the address) | –                                | pauses 5 s              |
 * | `lost`, `unreachable`, five subjects in a row         | pauses 5 s, doubling to 30 s     | the same                |
 * | `personal`, `doubtful`, `unconfirmed`, `unsent`, `unreadable` | –                                | –                       |
 *
 * The end of a 429's pause (`limitedUntil`) is never moved forward: it ends only by time. 429s of calls that were in flight
 * together count once. While paused, only the probe's answer changes the pause, because the other calls were in flight when
 * it began, or callers wait for them. If no probe comes, the failure of such a call lengthens the pause. An answer to the probe
 * that says nothing about it lets the next probe go at once.
 */
export function pauseAfter(pause: Pause, verdict: Verdict, call: PausingCall, ending: Ending, now: Date): Pause {
  const isOfApi = isApi(pause.key);
  switch (verdict) {
    case 'ok':
    case 'gone':
    case 'refused':
      return afterAnswer(pause, call);
    case 'limited':
      return isOfApi ? limited(pause, call, ending.retryAfterMs, now) : untold(pause, call, now);
    case 'unauthorized':
      return isOfApi ? paused(pause, verdict, call, ending, now) : untold(pause, call, now);
    case 'elsewhere':
      return isOfApi ? untold(pause, call, now) : paused(pause, verdict, call, ending, now);
    case 'lost':
    case 'unreachable': {
      const failing = [...new Set([...pause.failing, call.subject])].slice(0, LOST_SUBJECTS);
      const troubled = { ...pause, failingSince: pause.failingSince ?? now, failing };
      const isPaused = pause.pausedUntil !== null;
      return isPaused || failing.length >= LOST_SUBJECTS ? paused(troubled, verdict, call, ending, now) : troubled;
    }
    default:
      return untold(pause, call, now);
  }
}

/** An answer of a call that began after the trouble ends what is over: a pause, and the row of 429s, but never its time. */
function afterAnswer(pause: Pause, { beganAt }: PausingCall): Pause {
  const isTroubled = pause.failingSince !== null || pause.pausedUntil !== null || pause.failing.length > 0;
  const endsPause = isTroubled && (pause.failingSince === null || beganAt > pause.failingSince);
  const endsRow = pause.limitedTimes > 0 && (pause.limitedUntil === null || beganAt >= pause.limitedUntil);
  if (!endsPause && !endsRow) return pause;
  const none = { pausedUntil: null, reason: null, status: null, failingSince: null, failures: 0, failing: [] };
  return { ...pause, ...(endsPause && none), ...(endsRow && { limitedTimes: 0 }) };
}

function untold(pause: Pause, call: PausingCall, now: Date): Pause {
  return call.probes.includes(pause.key) && pause.pausedUntil !== null ? { ...pause, pausedUntil: now } : pause;
}

function paused(pause: Pause, reason: Verdict, call: PausingCall, { status }: Ending, now: Date): Pause {
  const isUnprobed = pause.pausedUntil === null || call.beganAt.getTime() - pause.pausedUntil.getTime() >= UNPROBED_MS;
  if (!isUnprobed && !call.probes.includes(pause.key)) return pause;
  const longest = reason === 'elsewhere' ? PROVEN_PAUSE_MS : LONGEST_PAUSE_MS;
  const waitMs = Math.min(FIRST_PAUSE_MS * 2 ** pause.failures, longest);
  const failures = Math.min(pause.failures + 1, 10);
  const until = new Date(now.getTime() + waitMs);
  return { ...pause, reason, status, failures, failingSince: pause.failingSince ?? now, pausedUntil: until };
}

/** @param retryAfterMs at most an hour */
function limited(pause: Pause, call: PausingCall, retryAfterMs: number | undefined, now: Date): Pause {
  const isNew = pause.limitedUntil === null || call.beganAt >= pause.limitedUntil;
  const limitedTimes = Math.min(pause.limitedTimes + (isNew ? 1 : 0), 10);
  const waitMs = retryAfterMs ?? Math.min(FIRST_PAUSE_MS * 2 ** Math.max(0, limitedTimes - 1), LONGEST_LIMIT_MS);
  const until = new Date(now.getTime() + waitMs);
  const limitedUntil = pause.limitedUntil !== null && pause.limitedUntil > until ? pause.limitedUntil : until;
  return { ...untold(pause, call, now), limitedUntil, limitedTimes };
}

/** True while no call may go out, not even a probe. */
export const isClosed = ({ limitedUntil, pausedUntil }: Pause, now: Date): boolean =>
  (limitedUntil !== null && limitedUntil > now) || (pausedUntil !== null && pausedUntil > now);

/** True while calls go out one at a time, as probes. */
export const isProbed = ({ pausedUntil }: Pause): boolean => pausedUntil !== null;

/** Whether calls of an operation may go out. `probe`: one at a time, because its API or the operation pauses. */
export type Gate = 'closed' | 'probe' | 'open';

/** Returns whether calls of an operation may go out, by its pause and that of its API. Pure. */
export function gateOf(pauses: Pauses, operation: OperationName, now: Date): Gate {
  const both = [apiOf(operation), operation].map((key) => pauses.get(key) as Pause);
  if (both.some((pause) => isClosed(pause, now))) return 'closed';
  return both.some(isProbed) ? 'probe' : 'open';
}

/** The pause while a probe is in flight. @param answerMs after which it has surely ended */
export const probing = (pause: Pause, now: Date, answerMs: number): Pause =>
  isProbed(pause) ? { ...pause, pausedUntil: new Date(now.getTime() + answerMs) } : pause;
