import type { SessionEvent, SessionEventType, SessionState } from '../../platform/contract/wire-types.js';

/** What the events of one session say, apart from anything that was fetched. */
export interface EventView {
  event_state: SessionState | null;
  event_provider_user_id: string | null;
  event_appointment_id: string | null;
  ai_notes_enabled: boolean | null;
  /** True once an event said so that comes after the creation: the user may toggle AI in between. */
  ai_notes_started: boolean;
  /** True once an event said so whose value is authoritative (spec, aiNotesEnabled rules 2). */
  ai_notes_final: boolean;
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

const FINAL: ReadonlySet<SessionEventType> = new Set([
  'SESSION_PROCESSING_NOTES_COMPLETED',
  'SESSION_PROCESSING_COMPLETED',
]);

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
    ai_notes_final: said && FINAL.has(event.eventType),
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

/** Of two states that a session was said to have, the one that it reaches later. */
export function laterState(left: SessionState, right: SessionState): SessionState {
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
