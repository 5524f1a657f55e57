import type { Fields } from '../../database/columns.js';
import type { SessionEvent, SessionEventType, SessionState } from '../../platform/contract/wire-types.js';
import type { CodeOf } from '../../words/words.js';

/** The state until the platform has one. */
const OWN_STATES: Exclude<ShownState, SessionState>[] = ['Requested', 'Unknown', 'Rejected'];

/** The shown states that the specification or this service names. The platform may have others. */
export type ShownState = CodeOf<'sessionState'>;

export const isOwnState = (state: string): boolean => OWN_STATES.some((own) => own === state);

/** A session's row; see `schema.prisma` for its columns. */
export type SessionRow = Fields<'Session'> & { eventState: SessionState | null };

/** The lanes of `sessions`: fetches because of an event, a reader or age; fetches of all since a given time; requests. */
export const LANES = { events: 0, bulk: 1, requests: 2 } as const;

/** The state of a session's request, which ended as `Settled`, `Rejected` or `Abandoned`. */
export function requestState({
  state,
  sessionId,
  abandoned,
}: Pick<SessionRow, 'state' | 'sessionId' | 'abandoned'>): string {
  if (abandoned) return 'Abandoned';
  return sessionId === null ? state : 'Settled';
}

/** The merged data of a session's events, independent of fetched answers. */
export type EventView = Pick<
  SessionRow,
  'eventState' | 'eventProviderUserId' | 'eventAppointmentId' | 'aiNotesEnabled' | 'aiNotesStarted' | 'aiNotesFinal'
>;

/** The fields of a row that determine whether an answer may be stored. */
export interface Freshness extends Pick<SessionRow, 'wantedGeneration' | 'fetchedGeneration' | 'answers'> {
  /**
   * Until when an update in flight may take effect on the platform; it raised the wanted generation by one before it was
   * sent. Null without an update in flight.
   */
  updateUntil?: Date | null;
}

/** The source of the state in a session's row: the newest answer, or only events; null for states of this service. */
export function stateSource(
  row: Pick<SessionRow, 'state' | 'fetchedAt' | 'stateFromEvents'>,
): 'platform' | 'events' | null {
  if (isOwnState(row.state)) return null;
  return row.fetchedAt !== null && !row.stateFromEvents ? 'platform' : 'events';
}

/** The state after each event (spec, Meaning of event types); notes are completed before the session. */
export const STATE_OF: Record<SessionEventType, SessionState> = {
  SESSION_CREATED: 'InProgress',
  SESSION_PROCESSING_STARTED: 'Processing',
  SESSION_PROCESSING_NOTES_COMPLETED: 'Processing',
  SESSION_PROCESSING_COMPLETED: 'Done',
  SESSION_PROCESSING_FAILED: 'Error',
};

/** COMPLETED fires at most once, after any failed attempts, so Done overrides Error. */
const STATE_RANK: Record<SessionState, number> = { InProgress: 1, Processing: 2, Error: 3, Done: 4 };

/** Events whose aiNotesEnabled is authoritative. */
const FINAL: readonly SessionEventType[] = ['SESSION_PROCESSING_NOTES_COMPLETED', 'SESSION_PROCESSING_COMPLETED'];

/** Maximum count of awaited notes. */
const MAX_AWAITED = 1_000;

/** Events that end the processing, or complete notes. */
const ENDINGS: readonly SessionEventType[] = [...FINAL, 'SESSION_PROCESSING_FAILED'];

/**
 * Merges an event into the view of earlier ones. Each field takes the greater value (a join), so that any order,
 * repetition and delay of the same events results in the same view.
 */
export function applyEvent(view: EventView, event: SessionEvent): EventView {
  const state = STATE_OF[event.eventType];
  const aiNotes = {
    aiNotesEnabled: event.aiNotesEnabled,
    aiNotesStarted: event.eventType !== 'SESSION_CREATED',
    aiNotesFinal: FINAL.includes(event.eventType),
  };
  const { aiNotesEnabled, aiNotesStarted, aiNotesFinal } = rank(view) >= rank(aiNotes) ? view : aiNotes;
  return {
    eventState: view.eventState === null ? state : laterState(view.eventState, state),
    eventProviderUserId: greaterText(view.eventProviderUserId, event.providerUserId),
    eventAppointmentId: greaterText(view.eventAppointmentId, event.partnerAppointmentId ?? null),
    aiNotesEnabled,
    aiNotesStarted,
    aiNotesFinal,
  };
}

function isPlatformState(state: string): state is SessionState {
  return Object.hasOwn(STATE_RANK, state);
}

function laterState(left: SessionState, right: SessionState): SessionState {
  return STATE_RANK[left] >= STATE_RANK[right] ? left : right;
}

/**
 * How many notes are awaited after an event, because it announced them or did not rule them out. Notes finish once for
 * each template.
 */
export function awaitedAfterEvent(awaited: number, { eventType, aiNotesEnabled }: SessionEvent): number {
  if (eventType === 'SESSION_PROCESSING_FAILED') return 0;
  if (!FINAL.includes(eventType)) return awaited;
  if (aiNotesEnabled === false) return 0;
  return eventType === 'SESSION_PROCESSING_NOTES_COMPLETED' ? Math.min(awaited + 1, MAX_AWAITED) : Math.max(awaited, 1);
}

/** Null overrides nothing. False < true; a final value overrides a provisional one, and STARTED overrides CREATED. */
function rank(view: Pick<EventView, 'aiNotesEnabled' | 'aiNotesStarted' | 'aiNotesFinal'>): number {
  if (view.aiNotesEnabled === null) return 0;
  return 1 + 2 * (Number(view.aiNotesStarted) + Number(view.aiNotesFinal)) + Number(view.aiNotesEnabled);
}

/** The greater text, so that the order of events does not matter even if they name different providers or appointments. */
function greaterText(left: string | null, right: string | null): string | null {
  if (left === null || right === null) return left ?? right;
  return left >= right ? left : right;
}

/**
 * The shown fields of a session after an event. A fetched state stays until the next fetch. If sessions cannot be fetched,
 * an event ends the state in which an update left the session.
 *
 * @param events the merged events, including this one
 */
export function shownAfterEvent(
  row: SessionRow,
  events: EventView,
  { eventType, canFetch }: { eventType: SessionEventType | undefined; canFetch: boolean },
): Pick<SessionRow, 'state' | 'providerUserId' | 'partnerAppointmentId'> {
  if (row.fetchedAt === null) {
    return {
      // Only the processing API has named it, which reports sessions that are being processed.
      state: events.eventState ?? 'Processing',
      providerUserId: events.eventProviderUserId ?? row.providerUserId,
      partnerAppointmentId: shownAppointment(events.eventAppointmentId) ?? row.partnerAppointmentId,
    };
  }
  const isEnding = eventType !== undefined && ENDINGS.includes(eventType);
  const { state, providerUserId, partnerAppointmentId } = row;
  const { eventState } = events;
  const isEnded = !canFetch && isEnding && eventState !== null && isPlatformState(state);
  return { state: isEnded ? laterState(state, eventState) : state, providerUserId, partnerAppointmentId };
}

/** Prefix of generated correlation ids; an appointment id of the EHR must not start with it. */
export const OWN_CORRELATION = 'notebridge:';

/** The EHR's appointment id from the platform's; a generated one is shown as absent. */
export function shownAppointment(partnerAppointmentId: string | null | undefined): string | null {
  return partnerAppointmentId?.startsWith(OWN_CORRELATION) ? null : (partnerAppointmentId ?? null);
}
