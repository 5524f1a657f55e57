import { ApiProperty } from '@nestjs/swagger';
import { factsOf, type SessionRow, type ShownState, type StateSource, stateSource } from '../model/session-row.js';
import type { SessionSeal } from '../model/session-seal.js';

/** A session's row with what the EHR calls its people. */
export interface ReadSession extends SessionRow {
  provider: string | null;
  clients: string[];
}

export class SessionErrorResponse {
  /** @example low-content-transcript */
  code!: string;
  message!: string;
}

/** A session as the EHR sees it. */
export class SessionResponse {
  /** Ours; it never changes */
  @ApiProperty({ format: 'uuid' })
  id!: string;
  /** The platform's */
  sessionId!: string | null;
  partnerAppointmentId!: string | null;
  /** External id; null when the EHR never named the provider */
  provider!: string | null;
  /** External ids of the clients that the EHR named */
  clients!: string[];
  providerUserId!: string | null;
  clientUserIds!: string[];
  noteTemplateIds!: string[];
  state!: ShownState;
  /** Whether the state is that of the platform's newest answer, or what its events say; else null */
  stateFrom!: StateSource | null;
  aiNotesEnabled!: boolean | null;
  /** False while the platform may still change aiNotesEnabled */
  aiNotesFinal!: boolean;
  error!: SessionErrorResponse | null;
  date!: string | null;
  sessionCreatedAt!: string | null;
  recordingDurationMs!: number | null;
  sessionDurationMs!: number | null;
  /** Rises whenever the notes change */
  notesRevision!: number;
  /** When an event last reported it */
  lastEventAt!: Date | null;
  /** When it was last fetched */
  fetchedAt!: Date | null;
  /** Since when the platform lacks it */
  goneAt!: Date | null;
  updatedAt!: Date;
}

export function sessionView(row: ReadSession, seal: SessionSeal): SessionResponse {
  return {
    id: row.id,
    sessionId: row.session_id,
    partnerAppointmentId: row.partner_appointment_id,
    provider: row.provider,
    clients: row.clients,
    providerUserId: row.provider_user_id,
    clientUserIds: row.client_user_ids,
    noteTemplateIds: row.note_template_ids,
    state: row.state,
    stateFrom: stateSource(row),
    aiNotesEnabled: row.ai_notes_enabled,
    aiNotesFinal: row.ai_notes_final,
    error:
      row.error_code === null
        ? null
        : { code: row.error_code, message: seal.errorMessage.open(row.id, row.error_message) ?? '' },
    ...factsOf(row),
    notesRevision: row.notes_revision,
    lastEventAt: row.last_event_at,
    fetchedAt: row.fetched_at,
    goneAt: row.not_found_at,
    updatedAt: row.updated_at,
  };
}
