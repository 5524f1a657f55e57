import type { SessionEvent, SessionEventType, SessionState } from '../../platform/contract/wire-types.js';
import { hasEnded, type SessionRow, shownAppointment } from './session-row.js';

/** When and how often the deliveries of an event arrived. */
export interface Heard {
  now: Date;
  /** Since when the delivery has waited. */
  since: Date;
  /** Receipts that no earlier run counted: 0 for a replay. */
  news: number;
  /** True if the contract lets sessions be fetched. */
  canFetch: boolean;
}

/** An event of either API. */
export type Mention = SessionEvent | { eventType: 'PROCESSING'; announcesNotes: boolean };

/** How long the end of a session waits for an answer that shows it, before it is published as the events said. */
export const PUBLISH_END_MS = 10 * 60_000;

/** How long after an answer an event may announce notes that it brought. Those that no event announced count no longer. */
const LATE_EVENT_MS = 10 * 60_000;

/** Notes that the repeats of one delivery announce at most. */
const MAX_ANNOUNCED = 20;

/** The state after each event (spec, Meaning of event types); notes are completed before the session. */
const STATE_OF: Record<SessionEventType, SessionState> = {
  SESSION_CREATED: 'InProgress',
  SESSION_PROCESSING_STARTED: 'Processing',
  SESSION_PROCESSING_NOTES_COMPLETED: 'Processing',
  SESSION_PROCESSING_COMPLETED: 'Done',
  SESSION_PROCESSING_FAILED: 'Error',
};

/** COMPLETED fires at most once, after any failed attempts, so Done overrides Error. */
const STATE_RANK: Record<string, number> = { InProgress: 1, Processing: 2, Error: 3, Done: 4 };

/** Final events tell aiNotesEnabled for good; STARTED overrides CREATED (spec, aiNotesEnabled rules). */
const AI_NOTES_RANK: Record<SessionEventType, number> = {
  SESSION_CREATED: 0,
  SESSION_PROCESSING_STARTED: 1,
  SESSION_PROCESSING_FAILED: 1,
  SESSION_PROCESSING_NOTES_COMPLETED: 2,
  SESSION_PROCESSING_COMPLETED: 2,
};

/** The rank at which aiNotesEnabled is final. */
export const FINAL_RANK = 2;

/**
 * Merges an event into a session. What events say is a lattice: each field takes the greater value, so that any order,
 * repetition and delay of the same events ends in the same row. Pure.
 *
 * | event           | state by events | announces             | its end is published                            |
 * |-----------------|-----------------|-----------------------|-------------------------------------------------|
 * | CREATED         | InProgress      | –                     | –                                               |
 * | STARTED         | Processing      | –                     | –                                               |
 * | NOTES_COMPLETED | Processing      | notes, one each time  | –                                               |
 * | COMPLETED       | Done            | (`announcedNotes`)    | by an answer, or after ten minutes as Done      |
 * | FAILED          | Error           | –                     | by an answer, or after ten minutes as Error     |
 * | Processing API  | –               | notes, if it says so  | –                                               |
 *
 * Each event raises `changes`, so that a fetch follows which began after it, and begins the rechecks again. A state that
 * was fetched stays until the next answer; where sessions cannot be fetched, the later state counts. Only the first
 * COMPLETED, or the first FAILED before it, waits for an answer.
 *
 * @param row before the event; a new row has no events
 * @returns the fields that change
 */
export function applyEvent(
  row: SessionRow,
  event: Mention,
  { now, since, news, canFetch }: Heard,
): Partial<SessionRow> {
  const isNotFound = row.fault === 'gone' || row.fault === 'maybe-gone';
  const heard = {
    changes: row.changes + Math.max(1, news),
    rechecks: 0,
    lastEventAt: row.lastEventAt !== null && row.lastEventAt > since ? row.lastEventAt : since,
    urgent: true,
    updatedAt: now,
    // What was not found may exist now. After another fault, the wait goes on.
    ...(isNotFound && { retryAt: null, failures: 0 }),
  };
  const count = Math.min(news, MAX_ANNOUNCED);
  const foundOf = (announced: number) => (isRecent(row, now) ? row.notesFound : Math.min(row.notesFound, announced));
  if (event.eventType === 'PROCESSING') {
    const notes = { notesFound: foundOf(row.processingNotes), processingNotes: row.processingNotes + count };
    return { ...heard, ...(event.announcesNotes && notes) };
  }
  const { eventType, providerUserId, partnerAppointmentId = null, aiNotesEnabled } = event;
  const eventState = laterState(row.eventState, STATE_OF[eventType]);
  const eventAppointmentId = greaterText(row.eventAppointmentId, partnerAppointmentId);
  const announcesNotes = eventType === 'SESSION_PROCESSING_NOTES_COMPLETED' && aiNotesEnabled !== false;
  // A repeat of an end says nothing new: since then, the session may have been processed again.
  const isNewEnd = hasEnded(eventState) && eventState !== row.eventState && eventState !== row.publishedEnd;
  return {
    ...heard,
    eventState,
    eventAppointmentId,
    ...aiNotesAfter(row, aiNotesEnabled, AI_NOTES_RANK[eventType]),
    ...(announcesNotes && { notesFound: foundOf(row.notesEvents), notesEvents: row.notesEvents + count }),
    ...(isNewEnd && { publishEndBy: row.publishEndBy ?? new Date(now.getTime() + PUBLISH_END_MS) }),
    ...stateAfter(row, eventState, canFetch),
    ...(row.fetchedAt === null && {
      providerUserId: greaterText(row.providerUserId, providerUserId),
      partnerAppointmentId: shownAppointment(eventAppointmentId) ?? row.partnerAppointmentId,
    }),
  };
}

/** True if notes of the last answer may be those that an event announces now. */
function isRecent({ fetchedAt }: SessionRow, now: Date): boolean {
  return fetchedAt !== null && now.getTime() - fetchedAt.getTime() <= LATE_EVENT_MS;
}

/** The shown state once the events said `eventState`. */
function stateAfter(row: SessionRow, eventState: string, canFetch: boolean): Pick<SessionRow, 'state' | 'stateFrom'> {
  const { state, stateFrom, fetchedAt } = row;
  if (fetchedAt !== null && (canFetch || STATE_RANK[state] === undefined)) return { state, stateFrom };
  const shown = fetchedAt === null ? eventState : laterState(state, eventState);
  return shown === state ? { state, stateFrom: stateFrom ?? 'events' } : { state: shown, stateFrom: 'events' };
}

/**
 * The session once its end has waited for an answer for ten minutes: the end that the events said is shown.
 *
 * @returns the fields that change
 */
export function endByEvents(row: SessionRow, now: Date): Partial<SessionRow> {
  return isBehind(row) ? { state: row.eventState as string, stateFrom: 'events', updatedAt: now } : {};
}

/** True if the shown state is before the end that the events said: the answer may be older than the event. */
export function isBehind({ state, eventState }: Pick<SessionRow, 'state' | 'eventState'>): boolean {
  return hasEnded(eventState) && laterState(state, eventState) !== state;
}

/** Null overrides nothing; of one rank, true overrides false. */
function aiNotesAfter(
  row: Pick<SessionRow, 'aiNotesEnabled' | 'aiNotesRank'>,
  told: boolean | null,
  rank: number,
): Pick<SessionRow, 'aiNotesEnabled' | 'aiNotesRank'> {
  const { aiNotesEnabled: known, aiNotesRank } = row;
  const isGreater = known === null || rank > aiNotesRank || (rank === aiNotesRank && told === true);
  return told !== null && isGreater
    ? { aiNotesEnabled: told, aiNotesRank: rank }
    : { aiNotesEnabled: known, aiNotesRank };
}

function laterState(left: string | null, right: string): string {
  return left !== null && (STATE_RANK[left] ?? 0) >= (STATE_RANK[right] ?? 0) ? left : right;
}

/** The greater text, so that the order of events does not matter even if they name different providers or appointments. */
function greaterText(left: string | null, right: string | null): string | null {
  if (left === null || right === null) return left ?? right;
  return left >= right ? left : right;
}
