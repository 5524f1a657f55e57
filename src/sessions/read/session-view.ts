import { ApiProperty } from '@nestjs/swagger';
import { factsOf, type SessionColumns, type ShownState, type StateSource, stateSource } from '../model/session-row.js';
import type { SessionSeal } from '../model/session-seal.js';

/** A session's row with what the EHR calls its people. */
export interface ReadSession extends SessionColumns {
  provider: string | null;
  clients: string[];
  client_user_ids: string[];
  note_template_ids: string[];
  notes_revision: number;
  updated_at: Date;
}

export class SessionErrorView {
  @ApiProperty({ type: String, example: 'low-content-transcript' })
  code!: string;

  @ApiProperty({ type: String })
  message!: string;
}

/** A session as the EHR sees it. */
export class SessionView {
  @ApiProperty({ type: String, format: 'uuid', description: 'Ours; it never changes' })
  id!: string;

  @ApiProperty({ type: String, nullable: true, description: "The platform's" })
  sessionId!: string | null;

  @ApiProperty({ type: String, nullable: true })
  partnerAppointmentId!: string | null;

  @ApiProperty({ type: String, nullable: true, description: 'External id; null when the EHR never named the provider' })
  provider!: string | null;

  @ApiProperty({ type: [String], description: 'External ids of the clients that the EHR named' })
  clients!: string[];

  @ApiProperty({ type: String, nullable: true })
  providerUserId!: string | null;

  @ApiProperty({ type: [String] })
  clientUserIds!: string[];

  @ApiProperty({ type: [String] })
  noteTemplateIds!: string[];

  @ApiProperty({ enum: ['InProgress', 'Processing', 'Done', 'Error', 'Requested', 'Unknown', 'Rejected'] })
  state!: ShownState;

  @ApiProperty({
    enum: ['platform', 'events'],
    nullable: true,
    description: "Whether the state is that of the platform's newest answer, or what its events say; else null",
  })
  stateFrom!: StateSource | null;

  @ApiProperty({ type: Boolean, nullable: true })
  aiNotesEnabled!: boolean | null;

  @ApiProperty({ type: Boolean, description: 'False while the platform may still change aiNotesEnabled' })
  aiNotesFinal!: boolean;

  @ApiProperty({ type: SessionErrorView, nullable: true })
  error!: SessionErrorView | null;

  @ApiProperty({ type: String, nullable: true })
  date!: string | null;

  @ApiProperty({ type: String, nullable: true })
  sessionCreatedAt!: string | null;

  @ApiProperty({ type: Number, nullable: true })
  recordingDurationMs!: number | null;

  @ApiProperty({ type: Number, nullable: true })
  sessionDurationMs!: number | null;

  @ApiProperty({ type: Number, description: 'Rises whenever the notes change' })
  notesRevision!: number;

  @ApiProperty({ type: String, format: 'date-time', nullable: true, description: 'When the platform last told of it' })
  lastEventAt!: string | null;

  @ApiProperty({ type: String, format: 'date-time', nullable: true, description: 'When it was last fetched' })
  fetchedAt!: string | null;

  @ApiProperty({ type: String, format: 'date-time', nullable: true, description: 'Since when the platform lacks it' })
  goneAt!: string | null;

  @ApiProperty({ type: String, format: 'date-time' })
  updatedAt!: string;
}

export function sessionView(row: ReadSession, seal: SessionSeal): SessionView {
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
        : { code: row.error_code, message: seal.openErrorMessage(row.id, row.error_message) ?? '' },
    ...factsOf(row),
    notesRevision: row.notes_revision,
    lastEventAt: row.last_event_at?.toISOString() ?? null,
    fetchedAt: row.fetched_at?.toISOString() ?? null,
    goneAt: row.not_found_at?.toISOString() ?? null,
    updatedAt: row.updated_at.toISOString(),
  };
}
