import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import type { FetchedNotes } from '../model/answer-parts.js';
import { compareDocuments, type DocumentWrite, type KnownDocument } from '../model/note-documents.js';
import { SessionSeal } from '../model/session-seal.js';

const KNOWN = `
  SELECT id, note_template_id AS "noteTemplateId", ordinal, session_document_id AS "sessionDocumentId", position, revision,
    encode(fingerprint, 'hex') AS fingerprint, superseded_at IS NOT NULL AS superseded
  FROM session_documents WHERE session = $1`;

/** Stores fetched notes: current documents, and every version that differed. */
@Injectable()
export class NotesRepository {
  constructor(private readonly seal: SessionSeal) {}

  /**
   * Makes the stored documents those of the answer; the session's row must be locked.
   *
   * @param session our id
   * @returns true when a reader sees other notes than before
   */
  async store(tx: PoolClient, session: string, fetched: FetchedNotes, now: Date): Promise<boolean> {
    const { rows: known } = await tx.query<KnownDocument>(KNOWN, [session]);
    const changes = compareDocuments(known, fetched, (notes) => this.seal.fingerprintNotes(notes));
    for (const write of changes.writes) await this.write(tx, session, write, now);
    if (changes.superseded.length > 0) {
      await tx.query('UPDATE session_documents SET superseded_at = $2 WHERE id = ANY($1::uuid[])', [
        changes.superseded,
        now,
      ]);
    }
    return changes.readable;
  }

  private async write(tx: PoolClient, session: string, write: DocumentWrite, now: Date): Promise<void> {
    const { rows } = await tx.query<{ id: string }>(
      `INSERT INTO session_documents
         (id, session, note_template_id, ordinal, session_document_id, position, revision, fingerprint)
       VALUES (gen_random_uuid(), $1, $2, $3, $4, $5, $6, decode($7, 'hex'))
       ON CONFLICT (session, note_template_id, ordinal) DO UPDATE SET
         session_document_id = excluded.session_document_id, position = excluded.position,
         revision = excluded.revision, fingerprint = excluded.fingerprint, superseded_at = NULL
       RETURNING id`,
      [
        session,
        write.noteTemplateId,
        write.ordinal,
        write.sessionDocumentId,
        write.position,
        write.revision,
        write.fingerprint,
      ],
    );
    const document = rows[0]?.id;
    if (write.notes === null || document === undefined) return;
    await tx.query(
      `INSERT INTO document_revisions (document, revision, session_document_id, notes, fetched_at)
       VALUES ($1, $2, $3, $4, $5)`,
      [
        document,
        write.revision,
        write.sessionDocumentId,
        this.seal.sealNotes(document, write.revision, write.notes),
        now,
      ],
    );
  }
}
