import type { SessionEventType, SessionState } from '../../platform/contract/wire-types.js';
import type { FetchColumns } from '../../queue/due-rows/fetch-loop.js';
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
export function stateSource(row: Pick<SessionRow, 'state' | 'fetched_at' | 'state_from_events'>): StateSource | null {
  if (OWN_STATES.has(row.state)) return null;
  return row.fetched_at !== null && !row.state_from_events ? 'platform' : 'events';
}

/** A session's row. */
export interface SessionRow extends EventView, Freshness, FetchColumns {
  id: string;
  session_id: string | null;
  state: ShownState;
  provider_user_id: string | null;
  client_user_ids: string[];
  note_template_ids: string[];
  partner_appointment_id: string | null;
  error_code: string | null;
  error_message: Buffer | null;
  date: string | null;
  session_created_at: string | null;
  /** bigint, as the driver gives it. */
  session_duration_ms: string | null;
  recording_duration_ms: string | null;
  notes_revision: number;
  last_event_at: Date | null;
  fetched_at: Date | null;
  state_from_events: boolean;
  not_found_at: Date | null;
  update_until: Date | null;
  reopened_at: Date | null;
  created_at: Date;
  updated_at: Date;
}

/** The optional facts that a session's row holds. */
export function factsOf(row: SessionRow): OptionalFacts {
  return {
    date: row.date,
    sessionCreatedAt: row.session_created_at,
    sessionDurationMs: msOf(row.session_duration_ms),
    recordingDurationMs: msOf(row.recording_duration_ms),
  };
}

function msOf(text: string | null): number | null {
  return text === null ? null : Number(text);
}

/** What events may change of what is shown of a session. */
export type Shown = Pick<SessionRow, 'state' | 'provider_user_id' | 'partner_appointment_id'>;

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
  if (row.fetched_at === null) return shownFromEvents(events);
  const isEnding = eventType !== undefined && ENDINGS.has(eventType);
  if (canFetch || !isEnding || events.event_state === null || OWN_STATES.has(row.state)) return row;
  return { ...row, state: laterState(row.state as SessionState, events.event_state) };
}

/** What is shown of a session of which nothing was fetched: what its events say. */
function shownFromEvents(events: EventView): Shown {
  // Only the processing API named it so far, and that speaks of sessions that are being processed.
  const state = events.event_state ?? 'Processing';
  const appointment = shownAppointment(events.event_appointment_id);
  return { state, provider_user_id: events.event_provider_user_id, partner_appointment_id: appointment };
}
