import { isDeepStrictEqual } from 'node:util';
import type { FetchedNotes } from './apply-fetch.js';
import type { NoteResponse } from './session-view.js';

/** A stored document. */
export interface KnownDocument {
  id: string;
  noteTemplateId: string;
  ordinal: number;
  sessionDocumentId: string;
  position: number;
  revision: number;
  /** Keyed fingerprint of the current notes. */
  fingerprint: Buffer;
  incomplete: boolean;
  superseded: boolean;
}

/** A document to store; without an `id` it is new. */
interface DocumentWrite extends Omit<KnownDocument, 'id' | 'superseded'> {
  id: string | null;
  /** The notes of this revision; null if the revision is already stored. */
  notes: NoteResponse[] | null;
}

/** The changes by a fetched list of documents. */
export interface DocumentChanges {
  writes: DocumentWrite[];
  /** Ids of current documents that are missing from the answer. */
  superseded: string[];
  /** True if readers see other notes than before. */
  readable: boolean;
  newRevisions: number;
}

/**
 * Compares a fetched list of documents with the stored ones. Documents are chained by template, not by
 * `sessionDocumentId`, which may change. Other content creates a new revision. A document that is missing from the answer
 * is superseded, not erased, and becomes current again when a later answer contains it.
 *
 * @param known all documents of the session, including superseded ones
 * @param fetched the answer's documents; if they are incomplete, none is superseded or moved
 * @param fingerprintOf fingerprint of notes in a fixed order of fields
 */
export function compareDocuments(
  known: readonly KnownDocument[],
  { documents, complete }: FetchedNotes,
  fingerprintOf: (notes: NoteResponse[]) => Buffer,
): DocumentChanges {
  const placeOf = (noteTemplateId: string, ordinal: number) => `${ordinal} ${noteTemplateId}`;
  const places = new Map(known.map((document) => [placeOf(document.noteTemplateId, document.ordinal), document]));
  const seen = new Map<string, number>();
  const writes: DocumentWrite[] = [];
  let readable = false;
  for (const [index, document] of documents.entries()) {
    const { noteTemplateId, sessionDocumentId, incomplete = false } = document;
    const ordinal = seen.get(noteTemplateId) ?? 0;
    seen.set(noteTemplateId, ordinal + 1);
    const place = placeOf(noteTemplateId, ordinal);
    const before = places.get(place);
    places.delete(place);
    const notes = document.notes.map(({ category, categoryName = null, text, formatting }) => {
      return { category, categoryName, text, nestingLevel: formatting?.nestingLevel ?? 0 };
    });
    const fingerprint = fingerprintOf(notes);
    const isNew = !before?.fingerprint.equals(fingerprint);
    const revision = (before?.revision ?? 0) + (isNew ? 1 : 0);
    // Positions in an incomplete answer are meaningless, so known documents keep theirs.
    const position = complete ? index : (before?.position ?? known.length + index);
    const facts = { noteTemplateId, ordinal, sessionDocumentId, position, revision, fingerprint, incomplete };
    const isStored = before?.superseded === false && isDeepStrictEqual({ ...before, ...facts }, { ...before });
    if (!isStored) writes.push({ id: before?.id ?? null, ...facts, notes: isNew ? notes : null });
    readable ||= isNew || (before?.superseded ?? false);
  }
  const missing = complete ? [...places.values()] : [];
  const superseded = missing.filter((document) => !document.superseded).map((document) => document.id);
  const newRevisions = writes.filter((write) => write.notes !== null).length;
  return { writes, superseded, readable: readable || superseded.length > 0, newRevisions };
}
