import { ApiProperty } from '@nestjs/swagger';
import { PageResponse } from '../../http/request/page.js';
import { plainCode } from './session-facts.js';
import type { ShownState } from './session-row.js';

export class SessionErrorResponse {
  /**
   * One that the platform made up is `platform-error` for a key without `notes:read`, and in the feed
   *
   * @example low-content-transcript
   */
  code!: string;

  /** The platform's words; null for a key without `notes:read` */
  @ApiProperty({ type: String, nullable: true })
  message!: string | null;
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
    does: 'Takes the given session of the platform for this request. Its notes are fetched; nothing is sent.',
  },
  {
    action: 'create',
    does: 'Sends the request once more. If the platform has made the session after all, there will be two.',
  },
  {
    action: 'abandon',
    does: 'Sends nothing more. The session counts as rejected, code abandoned, and the EHR may ask for it again.',
  },
];

/** A session without the platform's words. */
export function sessionWithoutText(session: SessionResponse): SessionResponse {
  const { error } = session;
  return { ...session, error: error && { code: plainCode(error.code), message: null } };
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
  stateFrom!: 'platform' | 'events' | null;
  /** Of an `Unknown` session: the partnerAppointmentId that was sent; look for it on the platform. Else null */
  correlationId!: string | null;
  /** Of an `Unknown` session: the ways to resolve it; else empty */
  choices!: RequestChoiceResponse[];
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
  /** Fields that are empty because what is stored of them was changed or moved, and does not open; absent: none */
  unreadable?: string[];
}

export class SessionPageResponse extends PageResponse {
  items!: SessionResponse[];
}

/** A note as it is kept and shown. */
export class NoteResponse {
  /** @example ClientPresentation */
  category!: string;
  /** @example "Client presentation" */
  categoryName!: string | null;
  text!: string;
  /** Above 0: a bulleted list item within its category */
  nestingLevel!: number;
}

/** The notes of a session by one template. */
export class DocumentResponse {
  /** Ours; it stays when the platform changes its own id */
  @ApiProperty({ format: 'uuid' })
  documentId!: string;
  /** The platform's, as seen last */
  sessionDocumentId!: string;
  noteTemplateId!: string;
  /** Counts the versions of this document that were fetched */
  revision!: number;
  /** When this revision was first fetched */
  fetchedAt!: Date;
  /** Since when the platform lacks it */
  supersededAt!: Date | null;
  /** Since when this revision's notes are no longer kept here, by retention or with their client */
  removedAt!: Date | null;
  /** Empty once they were removed */
  notes!: NoteResponse[];
  /** Fields that are empty because what is stored of them was changed or moved, and does not open; absent: none */
  unreadable?: string[];
}

/** All notes of a session. */
export class NotesResponse {
  /** The platform's */
  sessionId!: string | null;
  notesRevision!: number;
  documents!: DocumentResponse[];
}

/** One earlier or current version of a document. */
export class RevisionResponse {
  revision!: number;
  sessionDocumentId!: string;
  fetchedAt!: Date;
  /** Since when its notes are no longer kept here */
  removedAt!: Date | null;
  /** Empty once they were removed */
  notes!: NoteResponse[];
  /** Fields that are empty because what is stored of them was changed or moved, and does not open; absent: none */
  unreadable?: string[];
}

export class RevisionsResponse extends PageResponse {
  @ApiProperty({ format: 'uuid' })
  documentId!: string;
  noteTemplateId!: string;
  /** The newest first */
  items!: RevisionResponse[];
}

/** How many sessions were made due. */
export class RefreshesResponse {
  sessions!: number;
}

/** How many sessions wait to be fetched. */
export class PendingRefreshesResponse {
  /** Due, and not failed since */
  pending!: number;
  /** Their last fetch failed; they are retried */
  failing!: number;
}

/** Where a recording can be played for a limited time. */
export class RecordingUrlResponse {
  url!: string;
}

/** What the platform answered about a processing id of its own. */
export class ProcessingSessionResponse {
  /** The platform's */
  processingId!: string;

  /** Our id of the session that it belongs to */
  @ApiProperty({ type: String, format: 'uuid', nullable: true })
  session!: string | null;
  /** The platform's id of that session */
  sessionId!: string | null;

  /** What it answered when it was looked up, as it came; null until then */
  @ApiProperty({ nullable: true, type: 'object', additionalProperties: true })
  answer!: unknown;
  /** Why the last look-up failed, e.g. gone */
  fault!: string | null;
  updatedAt!: Date;
}
