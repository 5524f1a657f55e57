import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Env } from '../../config/env.js';
import { isOfDeletedClient } from '../../people/store/person-users.js';
import { openIfReadable } from '../../vault/unreadable-value.js';
import type { FetchedInsights, FetchedNotes } from '../model/apply-fetch.js';
import { compareDocuments, type DocumentChanges, type KnownDocument } from '../model/note-documents.js';
import { SESSION_COLUMNS } from '../model/session-columns.js';
import { withoutMessage } from '../model/session-facts.js';
import type { SessionRow } from '../model/session-row.js';
import { INSIGHT_COLUMNS, INSIGHT_PARTS, SessionSeal } from '../model/session-seal.js';

/** Statements that remove the content of the sessions $1. */
const REMOVALS = [
  `UPDATE document_revisions SET notes = NULL, removed_at = now()
   WHERE notes IS NOT NULL AND document IN (SELECT id FROM session_documents WHERE session = ANY ($1::uuid[]))`,
  `UPDATE session_insights SET transcript = NULL, topics = NULL, named_entities = NULL, analytics = NULL,
     removed_at = now() WHERE removed_at IS NULL AND session = ANY ($1::uuid[])`,
  'UPDATE processing_sessions SET answer = NULL WHERE answer IS NOT NULL AND session = ANY ($1::uuid[])',
  // An open delivery brings its event first. The platform sends no names, but nothing keeps it from doing so.
  `DELETE FROM webhook_deliveries WHERE due_at IS NULL AND subject = ANY (ARRAY(
     SELECT session_id FROM sessions WHERE id = ANY ($1::uuid[])
     UNION SELECT processing_id FROM processing_sessions WHERE session = ANY ($1::uuid[])))`,
  // The stored answer for repeats of the session's request has the session's id.
  `UPDATE idempotency_records SET body = NULL WHERE body IS NOT NULL
     AND id = ANY (ARRAY(SELECT shown_id FROM sessions WHERE id = ANY ($1::uuid[])))`,
];

/** SQL condition that all of these platform users are clients deleted by the EHR. @param users an array */
export const areDeleted = (users: string): string => `NOT EXISTS (
  SELECT FROM unnest(${users}) AS member (user_id) WHERE (${isOfDeletedClient('user_id')}) IS NOT TRUE)`;

const KNOWN_DOCUMENTS = `
  SELECT id, note_template_id AS "noteTemplateId", ordinal, session_document_id AS "sessionDocumentId", position, revision,
    fingerprint, incomplete, superseded_at IS NOT NULL AS superseded
  FROM session_documents WHERE session = $1`;

/** Stores documents of session $1, and the revisions that have notes ($10). */
const STORE_DOCUMENTS = `
  WITH documents AS (
    INSERT INTO session_documents (session, id, note_template_id, ordinal, session_document_id, position, revision,
      fingerprint, incomplete)
    SELECT $1, * FROM unnest($2::uuid[], $3::text[], $4::int[], $5::text[], $6::int[], $7::int[], $8::bytea[], $9::bool[])
    ON CONFLICT (id) DO UPDATE SET session_document_id = excluded.session_document_id, position = excluded.position,
      revision = excluded.revision, fingerprint = excluded.fingerprint, incomplete = excluded.incomplete,
      superseded_at = NULL)
  INSERT INTO document_revisions (document, revision, session_document_id, notes, fetched_at, event_at)
  SELECT revised.*, $11, $12
  FROM unnest($2::uuid[], $7::int[], $5::text[], $10::bytea[]) AS revised (document, revision, session_document_id, notes)
  WHERE notes IS NOT NULL`;

type StoredNotes = Pick<DocumentChanges, 'readable' | 'newRevisions'>;

/** Stores the encrypted content of sessions, whose rows must be locked. */
@Injectable()
export class SessionContentRepository {
  constructor(
    private readonly seal: SessionSeal,
    private readonly env: Env,
  ) {}

  /**
   * Replaces the stored documents by those of an answer, and keeps every version.
   *
   * @param at now, and when the event arrived that the fetch answers, if any
   * @returns if readers see other notes than before (`readable`), and the number of new revisions
   */
  async storeNotes(
    tx: PoolClient,
    ourSessionId: string,
    fetched: FetchedNotes,
    { now, eventAt }: { now: Date; eventAt: Date | null },
  ): Promise<StoredNotes> {
    const { rows: known } = await tx.query<KnownDocument>(KNOWN_DOCUMENTS, [ourSessionId]);
    const changes = compareDocuments(known, fetched, (notes, stored) => this.seal.fingerprintNotes(notes, stored));
    const writes = changes.writes.map((write) => ({ ...write, id: write.id ?? randomUUID() }));
    if (writes.length > 0) {
      await tx.query(STORE_DOCUMENTS, [
        ourSessionId,
        writes.map(({ id }) => id),
        writes.map(({ noteTemplateId }) => noteTemplateId),
        writes.map(({ ordinal }) => ordinal),
        writes.map(({ sessionDocumentId }) => sessionDocumentId),
        writes.map(({ position }) => position),
        writes.map(({ revision }) => revision),
        writes.map(({ fingerprint }) => fingerprint),
        writes.map(({ incomplete }) => incomplete),
        writes.map(({ id: document, revision, notes }) =>
          notes === null ? null : this.seal.sealNotes({ session: ourSessionId, document, revision }, notes),
        ),
        now,
        eventAt,
      ]);
    }
    if (changes.superseded.length > 0) {
      const supersede = 'UPDATE session_documents SET superseded_at = $2 WHERE id = ANY ($1::uuid[])';
      await tx.query(supersede, [changes.superseded, now]);
    }
    return changes;
  }

  /** Stores the insights in an answer. */
  async storeInsights(tx: PoolClient, ourSessionId: string, insights: FetchedInsights, fetchedAt: Date): Promise<void> {
    const parts = INSIGHT_PARTS.filter((part) => insights[part] !== undefined);
    if (parts.length === 0) return;
    const select = 'SELECT fingerprint FROM session_insights WHERE session = $1';
    const stored = (await tx.query<{ fingerprint: Buffer }>(select, [ourSessionId])).rows[0]?.fingerprint;
    const values = parts.map((part) => [part, insights[part]] as const);
    const fingerprint = this.seal.fingerprintInsights(values, stored);
    if (stored?.equals(fingerprint)) return;
    const columns = parts.map((part) => INSIGHT_COLUMNS[part]);
    const placeholders = parts.map((_, at) => `$${at + 4}`);
    await tx.query(
      `INSERT INTO session_insights (session, fingerprint, fetched_at, ${columns.join(', ')})
       VALUES ($1, $2, $3, ${placeholders.join(', ')})
       ON CONFLICT (session) DO UPDATE SET fingerprint = excluded.fingerprint, fetched_at = excluded.fetched_at,
         removed_at = NULL, ${columns.map((column) => `${column} = excluded.${column}`).join(', ')}`,
      [
        ourSessionId,
        fingerprint,
        fetchedAt,
        ...parts.map((part) => this.seal.insights[part].sealNullable(ourSessionId, insights[part])),
      ],
    );
  }

  /**
   * Removes the content of sessions. Fingerprints stay, so that a later fetch does not restore unchanged content.
   *
   * @returns the number of removed versions of notes, transcripts and answers
   */
  async remove(tx: PoolClient, ids: readonly string[]): Promise<number> {
    let removed = 0;
    for (const statement of REMOVALS) removed += (await tx.query(statement, [ids])).rowCount ?? 0;
    return removed + (await this.removeMessages(tx, ids));
  }

  /** True if content of these platform users must not be stored, because all of them were deleted. */
  async isErased(tx: PoolClient, clientUserIds: readonly string[]): Promise<boolean> {
    if (this.env.ERASE_NOTES_OF_DELETED_CLIENTS === 'keep' || clientUserIds.length === 0) return false;
    const { rows } = await tx.query<{ erased: boolean }>(`SELECT ${areDeleted('$1::text[]')} AS erased`, [
      clientUserIds,
    ]);
    return rows[0]?.erased ?? false;
  }

  /** Removes the platform's error messages. @returns the number of sessions */
  private async removeMessages(tx: PoolClient, ids: readonly string[]): Promise<number> {
    const { rows } = await tx.query<SessionRow>(
      `SELECT ${SESSION_COLUMNS} FROM sessions t WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE`,
      [ids],
    );
    const removed = rows.flatMap((row) => {
      const facts = openIfReadable(() => this.seal.openFacts(row));
      return facts?.error ? [[row.id, this.seal.sealFacts(row.id, withoutMessage(facts))] as const] : [];
    });
    await tx.query(
      `UPDATE sessions SET facts = erased.facts
       FROM unnest($1::uuid[], $2::bytea[]) AS erased(id, facts) WHERE sessions.id = erased.id`,
      [removed.map(([id]) => id), removed.map(([, facts]) => facts)],
    );
    return removed.length;
  }
}
