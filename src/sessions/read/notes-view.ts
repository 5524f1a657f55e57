import { ApiProperty } from '@nestjs/swagger';

export class NoteView {
  @ApiProperty({ type: String, example: 'ClientPresentation' })
  category!: string;

  @ApiProperty({ type: String, nullable: true, example: 'Client presentation' })
  categoryName!: string | null;

  @ApiProperty({ type: String })
  text!: string;

  @ApiProperty({ type: Number, description: 'Above 0: a bulleted list item within its category' })
  nestingLevel!: number;
}

/** The notes of a session by one template. */
export class DocumentView {
  @ApiProperty({ type: String, format: 'uuid', description: 'Ours; it stays when the platform changes its own id' })
  documentId!: string;

  @ApiProperty({ type: String, description: "The platform's, as seen last" })
  sessionDocumentId!: string;

  @ApiProperty({ type: String })
  noteTemplateId!: string;

  @ApiProperty({ type: Number, description: 'Counts the versions of this document that were fetched' })
  revision!: number;

  @ApiProperty({ type: String, format: 'date-time', description: 'When this revision was first fetched' })
  fetchedAt!: string;

  @ApiProperty({ type: String, format: 'date-time', nullable: true, description: 'Since when the platform lacks it' })
  supersededAt!: string | null;

  @ApiProperty({ type: [NoteView] })
  notes!: NoteView[];
}

/** All notes of a session. */
export class NotesView {
  @ApiProperty({ type: String, description: "The platform's" })
  sessionId!: string | null;

  @ApiProperty({ type: Number })
  notesRevision!: number;

  @ApiProperty({ type: [DocumentView] })
  documents!: DocumentView[];
}

/** One earlier or current version of a document. */
export class RevisionView {
  @ApiProperty({ type: Number })
  revision!: number;

  @ApiProperty({ type: String })
  sessionDocumentId!: string;

  @ApiProperty({ type: String, format: 'date-time' })
  fetchedAt!: string;

  @ApiProperty({ type: [NoteView] })
  notes!: NoteView[];
}

export class RevisionsView {
  @ApiProperty({ type: String, format: 'uuid' })
  documentId!: string;

  @ApiProperty({ type: String })
  noteTemplateId!: string;

  @ApiProperty({ type: [RevisionView], description: 'The newest first' })
  items!: RevisionView[];
}
