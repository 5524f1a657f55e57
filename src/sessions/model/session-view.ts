import { ApiProperty } from '@nestjs/swagger';
import { VisibleTo } from '../../access/guard/visible-to.js';
import { PageResponse } from '../../http/request/page.js';
import { NextStepResponse } from '../../people/api/trace.dto.js';

export class SessionErrorResponse {
  /**
   * `platform-error` for a code that may be a sentence of the platform
   *
   * @example low-content-transcript
   */
  code!: string;

  /** The platform's message, or its code if that may be a sentence */
  @VisibleTo('notes:read')
  message!: string | null;
}

export class NoteTemplateResponse {
  /** The platform's id */
  id!: string;
  /** By `noteTemplates` of the contract file; null if it has none */
  name!: string | null;
}

/** A way to resolve a request whose outcome is unknown. */
export class RequestChoiceResponse {
  action!: 'link' | 'create' | 'abandon';
  /** The effect of the action */
  does!: string;
}

/** Every way to resolve an `Unknown` session. */
export const UNKNOWN_CHOICES: readonly RequestChoiceResponse[] = [
  {
    action: 'link',
    does: 'Links this request to the given session of the platform and fetches its notes. Nothing is sent.',
  },
  {
    action: 'create',
    does: 'Sends the request again. If the platform did create the session, there will be two.',
  },
  {
    action: 'abandon',
    does: 'Sends nothing again. The session is rejected with the code abandoned, and the EHR may request it again.',
  },
];

/** A session as the EHR sees it. */
export class SessionResponse {
  /** Our id; never changes */
  @ApiProperty({ format: 'uuid' })
  id!: string;
  /** The platform's id */
  sessionId!: string | null;
  @VisibleTo('sessions:read')
  partnerAppointmentId!: string | null;
  /** External id; null if the EHR has not sent this provider */
  @VisibleTo('sessions:read')
  provider!: string | null;
  /** External ids of the clients that the EHR has sent */
  @VisibleTo('sessions:read')
  clients!: string[];
  @VisibleTo('sessions:read')
  providerUserId!: string | null;
  @VisibleTo('sessions:read')
  clientUserIds!: string[];
  @VisibleTo('sessions:read')
  noteTemplateIds!: string[];
  /** The same with their names */
  @VisibleTo('sessions:read')
  noteTemplates!: NoteTemplateResponse[];
  /** InProgress, Processing, Done or Error, or another text if the platform has further states; Requested, Unknown or Rejected until the platform has a state */
  state!: string;
  /** Source of the state: the platform's newest answer or its events; null for Requested, Unknown and Rejected */
  stateFrom!: 'platform' | 'events' | null;
  /** For an `Unknown` session: the partnerAppointmentId that was sent, to look for on the platform. Otherwise null */
  correlationId!: string | null;
  /** For an `Unknown` session: the ways to resolve it; otherwise empty */
  choices!: RequestChoiceResponse[];
  /** The next action of this service (`createSession`, `getSession` or `none`), and its reason */
  nextStep!: NextStepResponse;
  aiNotesEnabled!: boolean | null;
  /** False while the platform may still change aiNotesEnabled */
  aiNotesFinal!: boolean;
  error!: SessionErrorResponse | null;
  @VisibleTo('sessions:read')
  date!: string | null;
  @VisibleTo('sessions:read')
  sessionCreatedAt!: string | null;
  @VisibleTo('sessions:read')
  recordingDurationMs!: number | null;
  @VisibleTo('sessions:read')
  sessionDurationMs!: number | null;
  /** Increases with every change of the notes */
  notesRevision!: number;
  /**
   * Parts of the platform's newest answer that could not be read completely; empty: none
   *
   * @example ["notes"]
   */
  incomplete!: string[];
  /** When the last event arrived */
  lastEventAt!: Date | null;
  /** When it was last fetched */
  fetchedAt!: Date | null;
  /** Since when the platform no longer has it */
  goneAt!: Date | null;
  updatedAt!: Date;
  /** Fields that are empty because their stored value was changed or moved and cannot be decrypted; absent: none */
  unreadable?: string[];
}

export class SessionPageResponse extends PageResponse {
  items!: SessionResponse[];
}

/** A note as it is stored and shown. */
export class NoteResponse {
  /** @example ClientPresentation */
  category!: string;
  /** @example "Client presentation" */
  categoryName!: string | null;
  text!: string;
  /** Above 0: a bulleted list item within its category */
  nestingLevel!: number;
}

/** A fetched version of a document. */
export class RevisionResponse {
  /** Counts the fetched versions of the document */
  revision!: number;
  /** The platform's id of the document, which may change */
  sessionDocumentId!: string;
  /** When this version was first fetched */
  fetchedAt!: Date;
  /** When the notes of this version were removed, by retention or with their client */
  removedAt!: Date | null;
  /** Empty once removed */
  notes!: NoteResponse[];
  /** Fields that are empty because their stored value was changed or moved and cannot be decrypted; absent: none */
  unreadable?: string[];
}

/** The notes of a session by one template, in their newest version. */
export class DocumentResponse extends RevisionResponse {
  /** Our id; it stays the same if the platform changes its own id */
  @ApiProperty({ format: 'uuid' })
  documentId!: string;
  noteTemplateId!: string;
  /** By `noteTemplates` of the contract file; null if it has none */
  noteTemplateName!: string | null;
  /** True if a line, its category or its formatting could not be read */
  incomplete!: boolean;
  /** Since when the platform no longer has it */
  supersededAt!: Date | null;
}

/** All notes of a session. */
export class NotesResponse {
  /** The platform's id */
  sessionId!: string | null;
  notesRevision!: number;
  documents!: DocumentResponse[];
}

export class RevisionsResponse extends PageResponse {
  @ApiProperty({ format: 'uuid' })
  documentId!: string;
  noteTemplateId!: string;
  /** By `noteTemplates` of the contract file; null if it has none */
  noteTemplateName!: string | null;
  /** Newest first */
  items!: RevisionResponse[];
}

/** The number of sessions that will be fetched. */
export class RefreshesResponse {
  sessions!: number;
}

/** The numbers of sessions to be fetched. */
export class PendingRefreshesResponse {
  /** Due, without a failed fetch */
  pending!: number;
  /** Their last fetch failed; they are retried */
  failing!: number;
}

/** A URL of a recording that is valid for a limited time. */
export class RecordingUrlResponse {
  url!: string;
}

/** The platform's answer about one of its processing ids. */
export class ProcessingSessionResponse {
  /** The platform's id */
  processingId!: string;

  /** Our id of the session that it belongs to */
  @ApiProperty({ type: String, format: 'uuid', nullable: true })
  session!: string | null;
  /** The platform's id of that session */
  sessionId!: string | null;

  /** The unchanged answer to the last lookup; null until then */
  @ApiProperty({ nullable: true, type: 'object', additionalProperties: true })
  answer!: unknown;
  /** Why the last lookup failed, e.g. gone */
  fault!: string | null;
  updatedAt!: Date;
}
