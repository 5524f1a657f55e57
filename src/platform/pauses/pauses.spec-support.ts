import { USER_MANAGEMENT } from './apis.js';
import type { Pause } from './pause-row.js';
import { type Ending, pauseAfter, type Verdict } from './pause-rule.js';

export const NOW = new Date('2026-11-21T05:00:00Z');

export const at = (ms: number, from = NOW): Date => new Date(from.getTime() + ms);

/** The pause of a key that nothing has happened to. */
export function open(key = USER_MANAGEMENT): Pause {
  return {
    ...{ key, limitedUntil: null, limitedTimes: 0, pausedUntil: null, reason: null, status: null, failingSince: null },
    ...{ failures: 0, failing: [], succeededAt: null, succeededUrl: null, succeededBase: null, refusals: 0 },
  };
}

/** An answer to a call. The times are milliseconds after `NOW`. */
export interface Heard {
  verdict: Verdict;
  subject?: string;
  beganMs?: number;
  atMs?: number;
  isProbe?: boolean;
  retryAfterMs?: number;
  status?: number | null;
}

/** The pause after an answer. The call began when it was answered, unless `beganMs` is given. */
export function hear(pause: Pause, heard: Heard): Pause {
  const { verdict, subject = 'p', atMs = 0, beganMs = atMs, isProbe = false, retryAfterMs, status = null } = heard;
  const ending: Ending = { kind: 'ok', status, retryAfterMs };
  return pauseAfter(
    pause,
    verdict,
    { subject, beganAt: at(beganMs), probes: isProbe ? [pause.key] : [] },
    ending,
    at(atMs),
  );
}

export const hearAll = (pause: Pause, heard: readonly Heard[]): Pause => heard.reduce(hear, pause);

/** Answers without a result about different subjects, one each millisecond. */
export const lostSubjects = (count: number, fromMs = 0): Heard[] =>
  Array.from({ length: count }, (_, n) => ({ verdict: 'lost', subject: `p${n}`, atMs: fromMs + n }));
