import type { Columns } from '../../database/columns.js';
import type { SessionEvent, SessionEventType, SessionState } from '../../platform/contract/wire-types.js';

/** The state that is shown: the platform's, or a word of ours before the platform has one. */
export type ShownState = SessionState | 'Requested' | 'Unknown' | 'Rejected';

const OWN_STATES: ReadonlySet<ShownState> = new Set(['Requested', 'Unknown', 'Rejected']);

/** A session's row; `schema.prisma` says what each column is. */
export type SessionRow = Columns<'Session'> & { state: ShownState; event_state: SessionState | null };

/** What the events of one session say, apart from anything that was fetched. */
export type EventView = Pick<
  SessionRow,
  | 'event_state'
  | 'event_provider_user_id'
  | 'event_appointment_id'
  | 'ai_notes_enabled'
  | 'ai_notes_started'
  | 'ai_notes_final'
>;

/** What decides whether an answer of the platform may be stored in a session's row. */
export interface Freshness extends Pick<SessionRow, 'wanted_generation' | 'fetched_generation' | 'answers'> {
  /**
   * Until when an update that is on its way may take effect at the platform; it raised the wanted generation by one
   * before it left. Null: none is on its way.
   */
  update_until?: Date | null;
}

/** Where the state of a session's row comes from: the newest answer, or events alone; null while it is a word of ours. */
export function stateSource(
  row: Pick<SessionRow, 'state' | 'fetched_at' | 'state_from_events'>,
): 'platform' | 'events' | null {
  if (OWN_STATES.has(row.state)) return null;
  return row.fetched_at !== null && !row.state_from_events ? 'platform' : 'events';
}

/** The state that an event by itself stands for (spec, Meaning of event types); notes come before the end. */
const STATE_OF: Record<SessionEventType, SessionState> = {
  SESSION_CREATED: 'InProgress',
  SESSION_PROCESSING_STARTED: 'Processing',
  SESSION_PROCESSING_NOTES_COMPLETED: 'Processing',
  SESSION_PROCESSING_COMPLETED: 'Done',
  SESSION_PROCESSING_FAILED: 'Error',
};

/** COMPLETED fires at most once and after any failed attempt before it, so Done stands above Error. */
const STATE_RANK: Record<SessionState, number> = { InProgress: 1, Processing: 2, Error: 3, Done: 4 };

/** Events whose aiNotesEnabled is authoritative. */
const FINAL: readonly SessionEventType[] = ['SESSION_PROCESSING_NOTES_COMPLETED', 'SESSION_PROCESSING_COMPLETED'];

/** Events that end the processing, or the making of some notes. */
const ENDINGS: readonly SessionEventType[] = [...FINAL, 'SESSION_PROCESSING_FAILED'];

/**
 * Merges an event into what the events said before. It takes the greater of both in every field (a join), so that any
 * order, repetition and delay of the same events ends in the same view.
 */
export function applyEvent(view: EventView, event: SessionEvent): EventView {
  const state = STATE_OF[event.eventType];
  const said = event.aiNotesEnabled !== null;
  const aiNotes = {
    ai_notes_enabled: event.aiNotesEnabled,
    ai_notes_started: said && event.eventType !== 'SESSION_CREATED',
    ai_notes_final: said && FINAL.includes(event.eventType),
  };
  const { ai_notes_enabled, ai_notes_started, ai_notes_final } = rank(view) >= rank(aiNotes) ? view : aiNotes;
  return {
    event_state: view.event_state === null ? state : laterState(view.event_state, state),
    event_provider_user_id: greaterText(view.event_provider_user_id, event.providerUserId),
    event_appointment_id: greaterText(view.event_appointment_id, event.partnerAppointmentId ?? null),
    ai_notes_enabled,
    ai_notes_started,
    ai_notes_final,
  };
}

function laterState(left: SessionState, right: SessionState): SessionState {
  return STATE_RANK[left] >= STATE_RANK[right] ? left : right;
}

/** Null < false < true; whatever is final stands above whatever is provisional, and the start above the creation. */
function rank(view: Pick<EventView, 'ai_notes_enabled' | 'ai_notes_started' | 'ai_notes_final'>): number {
  if (view.ai_notes_enabled === null) return 0;
  return 1 + 2 * (Number(view.ai_notes_started) + Number(view.ai_notes_final)) + Number(view.ai_notes_enabled);
}

/** An event of a session always names the same provider and appointment; should it not, the order still must not matter. */
function greaterText(left: string | null, right: string | null): string | null {
  if (left === null || right === null) return left ?? right;
  return left >= right ? left : right;
}

/**
 * What is shown of a session after an event. The newest answer of the platform stands, for a fetch follows; where
 * sessions can't be fetched none follows, so that a state in which an update left the session ends by an event.
 *
 * @param events with the event merged in
 */
export function shownAfterEvent(
  row: SessionRow,
  events: EventView,
  { eventType, canFetch }: { eventType: SessionEventType | undefined; canFetch: boolean },
): Pick<SessionRow, 'state' | 'provider_user_id' | 'partner_appointment_id'> {
  if (row.fetched_at === null) {
    return {
      // Only the processing API named it so far, and that speaks of sessions that are being processed.
      state: events.event_state ?? 'Processing',
      provider_user_id: events.event_provider_user_id ?? row.provider_user_id,
      partner_appointment_id: shownAppointment(events.event_appointment_id) ?? row.partner_appointment_id,
    };
  }
  const isEnding = eventType !== undefined && ENDINGS.includes(eventType);
  if (canFetch || !isEnding || events.event_state === null || OWN_STATES.has(row.state)) return row;
  return { ...row, state: laterState(row.state as SessionState, events.event_state) };
}

/** Begins the correlation ids that this service makes; an appointment id of the EHR must not begin so. */
export const OWN_CORRELATION = 'notebridge:';

/** The EHR's appointment id in what the platform gives back; one of ours is shown as absent. */
export function shownAppointment(partnerAppointmentId: string | null | undefined): string | null {
  return partnerAppointmentId?.startsWith(OWN_CORRELATION) ? null : (partnerAppointmentId ?? null);
}
