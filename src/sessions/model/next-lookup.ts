import { isBehind } from './apply-event.js';
import { hasEnded, type SessionRow } from './session-row.js';

/** Minimum time between two fetches of a session whose events come in a burst. */
export const BURST_MS = 1_000;

/** Waits before the next fetch while announced notes are missing: replicas of the platform may lag. */
export const RECHECK_MS = [2_000, 10_000, 60_000, 10 * 60_000, 60 * 60_000] as const;

/** Minimum delay before a session is fetched again whose end is expected. */
const SOON_MS = 3_000;

const DAY_MS = 24 * 3_600_000;

/** Maximum interval between two fetches of a session that has not ended. */
const MAX_INTERVAL_MS = DAY_MS;

/** How long a session is fetched that the platform does not find, and one that does not end. */
export const NOT_FOUND_MS = 7 * DAY_MS;
export const UNENDED_MS = 30 * DAY_MS;

/** Failed calls in a row, about a day of them, after which a session without a change for thirty days is given up. */
const MAX_FAILURES = 100;

/** The age at which an unfinished session is first fetched without an event, and the interval then. Milliseconds. */
export interface LookupPolicy {
  afterMs: number;
  everyMs: number;
}

/** What is due next about a session of the platform, and when. Null: nothing, until something changes. */
export interface Lookup {
  at: Date | null;
  why: string;
  /** `publish`: its end is published as the events said; nothing is fetched. */
  what: 'fetch' | 'publish' | 'none';
}

/**
 * The notes that were announced: one by each event that says so, and one by COMPLETED unless AI notes are off. The events of
 * both APIs are about the same notes.
 */
export function announcedNotes({ notesEvents, processingNotes, eventState, aiNotesEnabled }: SessionRow): number {
  return Math.max(notesEvents, processingNotes, eventState === 'Done' && aiNotesEnabled !== false ? 1 : 0);
}

/** Announced notes that no answer has brought. After a failure, none will come. */
export function missingNotes(row: SessionRow): number {
  return row.state === 'Error' ? 0 : Math.max(0, announcedNotes(row) - row.notesFound);
}

/**
 * The next lookup of a session of the platform: the earliest of these. Pure.
 *
 * | stored fact                                     | it is fetched                                                    |
 * |-------------------------------------------------|------------------------------------------------------------------|
 * | `changes` above `fetchedChanges`                | at once; in a burst, a second after the last answer              |
 * | `updateUntil`                                   | then: an update without an answer can no longer take effect      |
 * | announced notes are missing                     | 2 s, 10 s, 1 min, 10 min and 1 h after the last answers          |
 * | it ended, or events say so; the answer does not | after 3 s, then half the time since readers saw it change        |
 * | it has not ended                                | by the policy's age, then its interval, or a quarter of its age  |
 * | the platform does not find it                   | at `retryAt`, for seven days                                     |
 * | `publishEndBy`                                  | not fetched: its end is published                                |
 *
 * After another fault, nothing is fetched before `retryAt`. A session that does not end, or whose calls fail, for thirty days
 * since readers saw it change is given up, until an event or a refresh raises `changes`. A time that was decided never moves on
 * by itself, so that a row that is due stays due until its lookup.
 */
export function nextLookup(row: SessionRow, now: Date, policy: LookupPolicy): Lookup {
  const { publishEndBy } = row;
  const fetch = nextFetch(row, now, policy);
  const fetchAt = fetch?.at ?? null;
  if (publishEndBy !== null && (publishEndBy <= now || fetchAt === null || publishEndBy <= fetchAt))
    return { at: publishEndBy, why: 'its end waits for an answer', what: 'publish' };
  return fetch ?? { at: null, why: whyNone(row), what: 'none' };
}

/** The next fetch, also if an end is published before; undefined if none is due until something changes. */
export function nextFetch(row: SessionRow, now: Date, policy: LookupPolicy): Lookup | undefined {
  const { notFoundAt, retryAt } = row;
  if (isFailing(row)) return undefined;
  const wanted = notFoundAt !== null && row.changes <= row.fetchedChanges ? again(row) : reasons(row, now, policy);
  const [first] = wanted.sort((left, right) => left.at.getTime() - right.at.getTime());
  if (!first) return undefined;
  if (retryAt === null || retryAt <= first.at) return { ...first, what: 'fetch' };
  return { at: retryAt, why: notFoundAt === null ? whyFailed(row) : first.why, what: 'fetch' };
}

interface Reason {
  at: Date;
  why: string;
}

function reasons(row: SessionRow, now: Date, policy: LookupPolicy): Reason[] {
  const { fetchedAt, updateUntil, rechecks } = row;
  const found: Reason[] = [];
  if (row.changes > row.fetchedChanges) {
    const isBurst = fetchedAt !== null && now.getTime() - fetchedAt.getTime() < BURST_MS;
    const at = isBurst ? after(fetchedAt, BURST_MS) : now;
    found.push({ at, why: 'an event, an update or a refresh asked for it' });
  }
  if (updateUntil !== null) found.push({ at: updateUntil, why: 'an update may take effect until then' });
  const recheckMs = RECHECK_MS[rechecks - 1];
  if (fetchedAt !== null && recheckMs !== undefined && missingNotes(row) > 0)
    found.push({ at: after(fetchedAt, recheckMs), why: 'notes that an event announced were not in the last answer' });
  if (isOpen(row)) {
    const reason = byAge(row, policy);
    if (reason.at < givenUpAt(row)) found.push(reason);
  }
  return found;
}

/** True unless an answer showed the end, and no event a later one for which it still waits. */
function isOpen(row: SessionRow): boolean {
  const isShown = hasEnded(row.state) && row.stateFrom === 'platform';
  return !isShown || (row.publishEndBy !== null && isBehind(row));
}

/** A session that has not ended. */
function byAge(
  { createdAt, updatedAt, fetchedAt, eventState, publishedEnd }: SessionRow,
  policy: LookupPolicy,
): Reason {
  const last = fetchedAt ?? createdAt;
  const since = (moment: Date) => Math.max(0, last.getTime() - moment.getTime());
  if (hasEnded(eventState) || publishedEnd !== null) {
    const waitMs = Math.max(SOON_MS, since(updatedAt) / 2);
    return { at: after(last, Math.min(MAX_INTERVAL_MS, waitMs)), why: 'its end is expected' };
  }
  const interval = after(last, Math.min(MAX_INTERVAL_MS, Math.max(policy.everyMs, since(createdAt) / 4)));
  const first = after(createdAt, policy.afterMs);
  return { at: fetchedAt === null || interval < first ? first : interval, why: 'it has not ended' };
}

/** A session that the platform does not find; without `retryAt` it was given up. */
function again({ retryAt }: SessionRow): Reason[] {
  return retryAt === null ? [] : [{ at: retryAt, why: 'the platform did not find it' }];
}

function givenUpAt({ updatedAt }: SessionRow): Date {
  return after(updatedAt, UNENDED_MS);
}

function isFailing(row: SessionRow): boolean {
  return row.failures >= MAX_FAILURES && row.retryAt !== null && row.retryAt >= givenUpAt(row);
}

/** Why a call waits after faults. */
export function whyFailed({ fault, failures }: SessionRow): string {
  return `the last call failed (${fault ?? 'unknown cause'})${failures > 1 ? `, ${failures} in a row` : ''}`;
}

function whyNone(row: SessionRow): string {
  if (isFailing(row)) return `given up: ${whyFailed(row)}; an event or a refresh fetches it again`;
  if (row.notFoundAt !== null)
    return 'given up: the platform has not found it for seven days; a refresh fetches it again';
  if (isOpen(row)) return 'given up: it has not ended for thirty days; an event or a refresh fetches it again';
  return 'everything announced was fetched';
}

function after(moment: Date, ms: number): Date {
  return new Date(moment.getTime() + ms);
}
