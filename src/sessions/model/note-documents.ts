import type { FetchedNotes } from './apply-fetch.js';
import type { NoteResponse } from './session-view.js';

/** A document as it is on record. */
interface KnownDocument {
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
interface DocumentWrite extends Omit<KnownDocument, 'id' | 'superseded'> {
  id: string | null;
  /** The notes to keep as this revision; null when the revision is on record already. */
  notes: NoteResponse[] | null;
}

/** What a fetched list of documents changes. */
interface DocumentChanges {
  writes: DocumentWrite[];
  /** Ids of documents that the answer lacks and that were current until now. */
  superseded: string[];
  /** True when a reader would see other notes than before. */
  readable: boolean;
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
  fingerprintOf: (notes: NoteResponse[]) => string,
): DocumentChanges {
  const placeOf = (noteTemplateId: string, ordinal: number) => `${ordinal} ${noteTemplateId}`;
  const places = new Map(known.map((document) => [placeOf(document.noteTemplateId, document.ordinal), document]));
  const seen = new Map<string, number>();
  const writes: DocumentWrite[] = [];
  let readable = false;
  for (const [position, { noteTemplateId, sessionDocumentId, notes: fetched }] of documents.entries()) {
    const ordinal = seen.get(noteTemplateId) ?? 0;
    seen.set(noteTemplateId, ordinal + 1);
    const place = placeOf(noteTemplateId, ordinal);
    const before = places.get(place);
    places.delete(place);
    const notes = fetched.map(({ category, categoryName = null, text, formatting }) => {
      return { category, categoryName, text, nestingLevel: formatting?.nestingLevel ?? 0 };
    });
    const fingerprint = fingerprintOf(notes);
    const isNew = before?.fingerprint !== fingerprint;
    const write: DocumentWrite = {
      id: before?.id ?? null,
      noteTemplateId,
      ordinal,
      sessionDocumentId,
      // Of an answer with gaps the order alone says nothing: who is known stays in its place.
      position: complete ? position : (before?.position ?? known.length + position),
      revision: (before?.revision ?? 0) + (isNew ? 1 : 0),
      fingerprint,
      notes: isNew ? notes : null,
    };
    if (!before || differs(before, write)) writes.push(write);
    readable ||= isNew || (before?.superseded ?? false);
  }
  const lacking = complete ? [...places.values()] : [];
  const superseded = lacking.filter((document) => !document.superseded).map((document) => document.id);
  return { writes, superseded, readable: readable || superseded.length > 0 };
}

function differs(before: KnownDocument, write: DocumentWrite): boolean {
  return (
    write.notes !== null ||
    before.superseded ||
    before.position !== write.position ||
    before.sessionDocumentId !== write.sessionDocumentId
  );
}
