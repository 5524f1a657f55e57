import type { SessionEventType, SessionState } from '../../platform/contract/wire-types.js';
import type { OptionalFacts } from './answer-parts.js';
import { type EventView, laterState } from './apply-event.js';
import type { Freshness } from './apply-fetch.js';
import { shownAppointment } from './correlation-id.js';

/** The state that is shown: the platform's, or a word of ours before the platform has one. */
export type ShownState = SessionState | 'Requested' | 'Unknown' | 'Rejected';

/** Where a shown state comes from: the platform's newest answer, or events alone. */
export type StateSource = 'platform' | 'events';

const OWN_STATES: ReadonlySet<ShownState> = new Set(['Requested', 'Unknown', 'Rejected']);

/** Where the state of a session's row comes from; null while it is a word of ours. */
export function stateSource(
  row: Pick<SessionColumns, 'state' | 'fetched_at' | 'state_from_events'>,
): StateSource | null {
  if (OWN_STATES.has(row.state)) return null;
  return row.fetched_at !== null && !row.state_from_events ? 'platform' : 'events';
}

/** What a session's row holds that decides on its further life. */
export interface SessionRow extends Freshness {
  id: string;
  sessionId: string | null;
  state: ShownState;
  providerUserId: string | null;
  partnerAppointmentId: string | null;
  events: EventView;
  lastEventAt: Date | null;
  fetchedAt: Date | null;
  notFoundAt: Date | null;
  failures: number;
  refusedAt: Date | null;
  updateUntil: Date | null;
  reopenedAt: Date | null;
  createdAt: Date;
}

/** The columns of `SessionRow`, as SQL names them. */
export interface SessionColumns {
  id: string;
  session_id: string | null;
  state: ShownState;
  provider_user_id: string | null;
  partner_appointment_id: string | null;
  event_state: SessionState | null;
  event_provider_user_id: string | null;
  event_appointment_id: string | null;
  ai_notes_enabled: boolean | null;
  ai_notes_started: boolean;
  ai_notes_final: boolean;
  last_event_at: Date | null;
  wanted_generation: number;
  fetched_generation: number;
  answers: number;
  fetched_at: Date | null;
  state_from_events: boolean;
  not_found_at: Date | null;
  failures: number;
  refused_at: Date | null;
  update_until: Date | null;
  reopened_at: Date | null;
  created_at: Date;
  error_code: string | null;
  error_message: Buffer | null;
  date: string | null;
  session_created_at: string | null;
  /** bigint, as the driver gives it. */
  session_duration_ms: string | null;
  recording_duration_ms: string | null;
}

export function toSessionRow(columns: SessionColumns): SessionRow {
  return {
    id: columns.id,
    sessionId: columns.session_id,
    state: columns.state,
    providerUserId: columns.provider_user_id,
    partnerAppointmentId: columns.partner_appointment_id,
    events: {
      state: columns.event_state,
      providerUserId: columns.event_provider_user_id,
      partnerAppointmentId: columns.event_appointment_id,
      aiNotesEnabled: columns.ai_notes_enabled,
      aiNotesStarted: columns.ai_notes_started,
      aiNotesFinal: columns.ai_notes_final,
    },
    lastEventAt: columns.last_event_at,
    wantedGeneration: columns.wanted_generation,
    fetchedGeneration: columns.fetched_generation,
    answers: columns.answers,
    fetchedAt: columns.fetched_at,
    notFoundAt: columns.not_found_at,
    failures: columns.failures,
    refusedAt: columns.refused_at,
    updateUntil: columns.update_until,
    reopenedAt: columns.reopened_at,
    createdAt: columns.created_at,
  };
}

/** The optional facts that a session's row holds. */
export function factsOf(columns: SessionColumns): OptionalFacts {
  return {
    date: columns.date,
    sessionCreatedAt: columns.session_created_at,
    sessionDurationMs: msOf(columns.session_duration_ms),
    recordingDurationMs: msOf(columns.recording_duration_ms),
  };
}

function msOf(text: string | null): number | null {
  return text === null ? null : Number(text);
}

/** What events may change of what is shown of a session. */
export type Shown = Pick<SessionRow, 'state' | 'providerUserId' | 'partnerAppointmentId'>;

/** Events that end the processing, or the making of some notes. */
const ENDINGS: ReadonlySet<SessionEventType> = new Set([
  'SESSION_PROCESSING_NOTES_COMPLETED',
  'SESSION_PROCESSING_COMPLETED',
  'SESSION_PROCESSING_FAILED',
]);

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
): Shown {
  if (row.fetchedAt === null) return shownFromEvents(events);
  const isEnding = eventType !== undefined && ENDINGS.has(eventType);
  if (canFetch || !isEnding || events.state === null || OWN_STATES.has(row.state)) return row;
  return { ...row, state: laterState(row.state as SessionState, events.state) };
}

/** What is shown of a session of which nothing was fetched: what its events say. */
function shownFromEvents(events: EventView): Shown {
  // Only the processing API named it so far, and that speaks of sessions that are being processed.
  const state = events.state ?? 'Processing';
  const partnerAppointmentId = shownAppointment(events.partnerAppointmentId);
  return { state, providerUserId: events.providerUserId, partnerAppointmentId };
}
