import type { SessionEvent, SessionEventType, SessionState } from '../../platform/contract/wire-types.js';

/** What the events of one session say, apart from anything that was fetched. */
export interface EventView {
  state: SessionState | null;
  providerUserId: string | null;
  partnerAppointmentId: string | null;
  aiNotesEnabled: boolean | null;
  /** True once an event said so that comes after the creation: the user may toggle AI in between. */
  aiNotesStarted: boolean;
  /** True once an event said so whose value is authoritative (spec, aiNotesEnabled rules 2). */
  aiNotesFinal: boolean;
}

/** A session of which nothing was heard. */
export const NOTHING_HEARD: EventView = {
  state: null,
  providerUserId: null,
  partnerAppointmentId: null,
  aiNotesEnabled: null,
  aiNotesStarted: false,
  aiNotesFinal: false,
};

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
  const aiNotes = greaterAiNotes(
    { enabled: view.aiNotesEnabled, started: view.aiNotesStarted, final: view.aiNotesFinal },
    {
      enabled: event.aiNotesEnabled,
      started: said && event.eventType !== 'SESSION_CREATED',
      final: said && FINAL.has(event.eventType),
    },
  );
  return {
    state: view.state === null ? state : laterState(view.state, state),
    providerUserId: greaterText(view.providerUserId, event.providerUserId),
    partnerAppointmentId: greaterText(view.partnerAppointmentId, event.partnerAppointmentId ?? null),
    aiNotesEnabled: aiNotes.enabled,
    aiNotesStarted: aiNotes.started,
    aiNotesFinal: aiNotes.final,
  };
}

/** Of two states that a session was said to have, the one that it reaches later. */
export function laterState(left: SessionState, right: SessionState): SessionState {
  return STATE_RANK[left] >= STATE_RANK[right] ? left : right;
}

interface AiNotes {
  enabled: boolean | null;
  started: boolean;
  final: boolean;
}

/** Null < false < true; whatever is final stands above whatever is provisional, and the start above the creation. */
function rank({ enabled, started, final }: AiNotes): number {
  if (enabled === null) return 0;
  return 1 + 2 * (Number(started) + Number(final)) + Number(enabled);
}

function greaterAiNotes(left: AiNotes, right: AiNotes): AiNotes {
  return rank(left) >= rank(right) ? left : right;
}

/** An event of a session always names the same provider and appointment; should it not, the order still must not matter. */
function greaterText(left: string | null, right: string | null): string | null {
  if (left === null || right === null) return left ?? right;
  return left >= right ? left : right;
}
