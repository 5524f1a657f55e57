import { ApiProperty } from '@nestjs/swagger';

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
  notes!: NoteResponse[];
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
  notes!: NoteResponse[];
}

export class RevisionsResponse {
  @ApiProperty({ format: 'uuid' })
  documentId!: string;
  noteTemplateId!: string;
  /** The newest first */
  items!: RevisionResponse[];
}
