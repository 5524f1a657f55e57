import type { PlatformErrorKind } from '../contract/platform-errors.js';
import type { Pause } from './pause-row.js';

export type { Pause };

/** The key of the pause of all user-management calls. Operations have pauses of their own, under their names. */
export const USER_MANAGEMENT = 'user-management';

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
  /** The operation names a user in its path, so that a 404 may mean this user. */
  namesUser: boolean;
  /** The operation has succeeded at this URL, or its path is built in and a call to the base URL succeeded a moment ago. */
  addressWorks: boolean;
  /** The path comes from this program and not from the contract file. */
  isBuiltIn: boolean;
  /** The same answer came for this person before, and the operation has succeeded for others since, or the person has failed. */
  isRepeated: boolean;
}

/**
 * What an answer means.
 *
 * - `gone`: the platform does not know the user that the path names
 * - `doubtful`: so it says, but another server may say so; a check shows which. `unconfirmed`: no check can
 * - `refused`: the platform refuses this person. `personal`: also this person, after an answer that stopped the others
 * - `elsewhere`: a refusal for everyone, or another server's answer. `unauthorized`: the API key
 * - `lost`: it may have taken effect. `unreachable`: no connection. `unsent`: this process did not send it;
 *   `unreadable`: nor can it
 */
export type Verdict =
  | ('ok' | 'gone' | 'doubtful' | 'unconfirmed' | 'refused' | 'personal')
  | ('limited' | 'unauthorized' | 'elsewhere' | 'lost' | 'unreachable' | 'unsent' | 'unreadable');

/** Names what an answer means. Pure. */
export function judge({ kind, status, isWrongAddress }: Ending, facts: JudgeFacts): Verdict {
  const { namesUser, addressWorks, isBuiltIn, isRepeated } = facts;
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
      if (!namesUser) return addressWorks ? 'refused' : shared('elsewhere');
      return addressWorks ? 'gone' : isBuiltIn ? 'doubtful' : 'unconfirmed';
    case 'rejected':
      return isWrongAddress ? shared('elsewhere') : 'refused';
    case 'unknown-outcome':
      return isWrongAddress ? shared('elsewhere') : 'lost';
  }
}

/** The call that was answered. */
export interface PausingCall {
  /** The person that it is about. */
  person: string;
  beganAt: Date;
  /** It went out alone while this API or operation was paused. */
  isProbe: boolean;
}

/** Different people in a row without a readable answer that pause an API or an operation. */
const LOST_PEOPLE = 5;

const FIRST_PAUSE_MS = 5_000;

/** The longest pause. Its probes lose nothing, or at most one create each. */
const LONGEST_PAUSE_MS = 30_000;

/** The longest pause after answers that prove that nothing happened: longer ones would hold up the people behind. */
const PROVEN_PAUSE_MS = 5_000;

const LONGEST_LIMIT_MS = 60_000;

/**
 * Returns the pause of an API or of an operation after an answer. Pure.
 *
 * | answer                              | the API                                            | its operation           |
 * |-------------------------------------|----------------------------------------------------|-------------------------|
 * | `ok`, `gone`, `refused`             | ends, if the call began after the trouble          | the same                |
 * | `limited` (429)                     | limited: Retry-After, or 5 s doubling to a minute  | –                       |
 * | `unauthorized` (401)                | pauses 5 s, doubling to 30 s                       | –                       |
 * | `elsewhere` (403, 405, 3xx, HTML, 404 of the address) | –                                | pauses 5 s              |
 * | `lost`, `unreachable`, five people in a row           | pauses 5 s, doubling to 30 s     | the same                |
 * | `personal`, `doubtful`, `unconfirmed`, `unsent`, `unreadable` | –                                | –                       |
 *
 * The end of a 429's pause (`limitedUntil`) is never moved forward: it ends only by time. 429s of calls that were in flight
 * together count once. While paused, only the probe's answer changes the pause, because the other calls were in flight when
 * it began. An answer to the probe that says nothing about it lets the next probe go at once.
 */
export function pauseAfter(pause: Pause, verdict: Verdict, call: PausingCall, ending: Ending, now: Date): Pause {
  const isApi = pause.key === USER_MANAGEMENT;
  switch (verdict) {
    case 'ok':
    case 'gone':
    case 'refused':
      return afterAnswer(pause, call);
    case 'limited':
      return isApi ? limited(pause, call, ending.retryAfterMs, now) : untold(pause, call, now);
    case 'unauthorized':
      return isApi ? paused(pause, verdict, call, ending, now) : untold(pause, call, now);
    case 'elsewhere':
      return isApi ? untold(pause, call, now) : paused(pause, verdict, call, ending, now);
    case 'lost':
    case 'unreachable': {
      const failingPeople = [...new Set([...pause.failingPeople, call.person])].slice(0, LOST_PEOPLE);
      const failing = { ...pause, failingSince: pause.failingSince ?? now, failingPeople };
      const isPaused = pause.pausedUntil !== null;
      return isPaused || failingPeople.length >= LOST_PEOPLE ? paused(failing, verdict, call, ending, now) : failing;
    }
    default:
      return untold(pause, call, now);
  }
}

/** An answer of a call that began after the trouble ends what is over: a pause, and the row of 429s, but never its time. */
function afterAnswer(pause: Pause, { beganAt }: PausingCall): Pause {
  const isTroubled = pause.failingSince !== null || pause.pausedUntil !== null || pause.failingPeople.length > 0;
  const endsPause = isTroubled && (pause.failingSince === null || beganAt > pause.failingSince);
  const endsRow = pause.limitedTimes > 0 && (pause.limitedUntil === null || beganAt >= pause.limitedUntil);
  if (!endsPause && !endsRow) return pause;
  const none = { pausedUntil: null, reason: null, status: null, failingSince: null, failures: 0, failingPeople: [] };
  return { ...pause, ...(endsPause && none), ...(endsRow && { limitedTimes: 0 }) };
}

function untold(pause: Pause, call: PausingCall, now: Date): Pause {
  return call.isProbe && pause.pausedUntil !== null ? { ...pause, pausedUntil: now } : pause;
}

function paused(pause: Pause, reason: Verdict, call: PausingCall, { status }: Ending, now: Date): Pause {
  if (pause.pausedUntil !== null && !call.isProbe) return pause;
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

/** The pause while a probe is in flight. @param answerMs after which it has surely ended */
export const probing = (pause: Pause, now: Date, answerMs: number): Pause =>
  isProbed(pause) ? { ...pause, pausedUntil: new Date(now.getTime() + answerMs) } : pause;
