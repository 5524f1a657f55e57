import type { Note, SessionDocument } from '../../platform/contract/wire-types.js';
import type { FetchedNotes } from './answer-parts.js';

/** One note as it is kept and shown. */
export interface NoteLine {
  category: string;
  categoryName: string | null;
  text: string;
  /** Above 0: a bulleted list item within its category. */
  nestingLevel: number;
}

/** A document as it is on record. */
export interface KnownDocument {
  id: string;
  noteTemplateId: string;
  ordinal: number;
  sessionDocumentId: string;
  position: number;
  revision: number;
  /** Keyed fingerprint of the current notes, in hex. */
  fingerprint: string;
  superseded: boolean;
}

/** A document as it is to be on record; without an `id` it is new. */
export interface DocumentWrite extends Omit<KnownDocument, 'id' | 'superseded'> {
  id: string | null;
  /** The notes to keep as this revision; null when the revision is on record already. */
  notes: NoteLine[] | null;
}

/** What a fetched list of documents changes. */
export interface DocumentChanges {
  writes: DocumentWrite[];
  /** Ids of documents that the answer lacks and that were current until now. */
  superseded: string[];
  /** True when a reader would see other notes than before. */
  readable: boolean;
}

/** Reads a note of the wire (spec, Notes item). */
function noteLine(note: Note): NoteLine {
  return {
    category: note.category,
    categoryName: note.categoryName ?? null,
    text: note.text,
    nestingLevel: note.formatting?.nestingLevel ?? 0,
  };
}

/**
 * Compares a fetched list of documents with what is on record. Documents are chained by template, never by
 * `sessionDocumentId`, which may change: other content makes the next revision, the same content none. A document that
 * the answer lacks is superseded, not erased, and comes back when a later answer holds it again.
 *
 * @param known all documents of the session, superseded ones too
 * @param fetched the answer's documents; when they are not complete, nothing is superseded and nothing moves
 * @param fingerprintOf of notes in a fixed order of fields, in hex
 */
export function compareDocuments(
  known: readonly KnownDocument[],
  { documents, complete }: FetchedNotes,
  fingerprintOf: (notes: NoteLine[]) => string,
): DocumentChanges {
  const places = new Map(known.map((document) => [placeOf(document.noteTemplateId, document.ordinal), document]));
  const seen = new Map<string, number>();
  const writes: DocumentWrite[] = [];
  let readable = false;
  for (const [position, document] of documents.entries()) {
    const ordinal = seen.get(document.noteTemplateId) ?? 0;
    seen.set(document.noteTemplateId, ordinal + 1);
    const place = placeOf(document.noteTemplateId, ordinal);
    const before = places.get(place);
    places.delete(place);
    // Of an answer with gaps the order alone says nothing: who is known stays in its place.
    const inOrder = complete ? position : (before?.position ?? known.length + position);
    const write = writeOf(document, { before, ordinal, position: inOrder, fingerprintOf });
    if (!before || differs(before, write)) writes.push(write);
    readable ||= write.notes !== null || (before?.superseded ?? false);
  }
  const lacking = complete ? [...places.values()] : [];
  const superseded = lacking.filter((document) => !document.superseded).map((document) => document.id);
  return { writes, superseded, readable: readable || superseded.length > 0 };
}

function placeOf(noteTemplateId: string, ordinal: number): string {
  return `${ordinal} ${noteTemplateId}`;
}

function writeOf(
  document: SessionDocument,
  around: {
    before: KnownDocument | undefined;
    ordinal: number;
    position: number;
    fingerprintOf: (notes: NoteLine[]) => string;
  },
): DocumentWrite {
  const notes = document.notes.map(noteLine);
  const fingerprint = around.fingerprintOf(notes);
  const same = around.before?.fingerprint === fingerprint;
  return {
    id: around.before?.id ?? null,
    noteTemplateId: document.noteTemplateId,
    ordinal: around.ordinal,
    sessionDocumentId: document.sessionDocumentId,
    position: around.position,
    revision: (around.before?.revision ?? 0) + (same ? 0 : 1),
    fingerprint,
    notes: same ? null : notes,
  };
}

function differs(before: KnownDocument, write: DocumentWrite): boolean {
  return (
    write.notes !== null ||
    before.superseded ||
    before.position !== write.position ||
    before.sessionDocumentId !== write.sessionDocumentId
  );
}
