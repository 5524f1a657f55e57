import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Env } from '../../config/env.js';
import { PrismaService, toBytes } from '../../database/prisma.service.js';
import { isOfDeletedClient } from '../../people/store/person-users.js';
import { ifReadable } from '../../vault/unreadable-value.js';
import type { FetchedInsights, FetchedNotes } from '../model/apply-fetch.js';
import { compareDocuments, type DocumentChanges } from '../model/note-documents.js';
import { withoutMessage } from '../model/session-facts.js';
import type { SessionRow } from '../model/session-row.js';
import { INSIGHT_PARTS, type InsightPart, SessionSeal } from '../model/session-seal.js';

/** Statements that remove the content of the sessions $1. */
const REMOVALS = [
  `UPDATE document_revisions SET notes = NULL, removed_at = now()
   WHERE notes IS NOT NULL AND document IN (SELECT id FROM session_documents WHERE session = ANY ($1::uuid[]))`,
  `UPDATE session_insights SET transcript = NULL, topics = NULL, named_entities = NULL, analytics = NULL,
     removed_at = now() WHERE removed_at IS NULL AND session = ANY ($1::uuid[])`,
  'UPDATE processing_sessions SET answer = NULL WHERE answer IS NOT NULL AND session = ANY ($1::uuid[])',
  // The stored answer for repeats of the session's request has the session's id.
  'UPDATE idempotency_records SET body = NULL WHERE body IS NOT NULL AND id = ANY ($1::uuid[])',
];

/** SQL condition that all of these platform users are clients deleted by the EHR. @param users an array */
export const areDeleted = (users: string): string => `NOT EXISTS (
  SELECT FROM unnest(${users}) AS member (user_id) WHERE (${isOfDeletedClient('user_id')}) IS NOT TRUE)`;

type StoredNotes = Pick<DocumentChanges, 'readable' | 'newRevisions'>;

/** Stores the encrypted content of sessions, whose rows must be locked. */
@Injectable()
export class SessionContentRepository {
  constructor(
    private readonly prisma: PrismaService,
    private readonly seal: SessionSeal,
    private readonly env: Env,
  ) {}

  /**
   * Replaces the stored documents by those of an answer, and keeps every version.
   *
   * @param at now, and when the event arrived that the fetch answers, if any
   * @returns whether readers see other notes than before, and the number of new revisions
   */
  async storeNotes(
    tx: PoolClient,
    ourSessionId: string,
    fetched: FetchedNotes,
    { now, eventAt }: { now: Date; eventAt: Date | null },
  ): Promise<StoredNotes> {
    const prisma = await this.prisma.in(tx);
    const rows = await prisma.sessionDocument.findMany({ where: { ourSessionId } });
    const known = rows.map(({ fingerprint, supersededAt, ...row }) => ({
      ...row,
      fingerprint: Buffer.from(fingerprint).toString('hex'),
      superseded: supersededAt !== null,
    }));
    const changes = compareDocuments(known, fetched, (notes) => this.seal.fingerprintNotes(notes));
    for (const { id: knownId, noteTemplateId, ordinal, notes, ...current } of changes.writes) {
      const id = knownId ?? randomUUID();
      const data = { ...current, fingerprint: toBytes(Buffer.from(current.fingerprint, 'hex')) };
      await prisma.sessionDocument.upsert({
        where: { id },
        create: { ...data, id, ourSessionId, noteTemplateId, ordinal },
        update: { ...data, supersededAt: null },
      });
      if (notes === null) continue;
      const { revision, sessionDocumentId } = current;
      const sealed = toBytes(this.seal.sealNotes({ session: ourSessionId, document: id, revision }, notes));
      await prisma.documentRevision.create({
        data: { documentId: id, revision, sessionDocumentId, notes: sealed, fetchedAt: now, eventAt },
      });
    }
    if (changes.superseded.length > 0) {
      const data = { supersededAt: now };
      await prisma.sessionDocument.updateMany({ where: { id: { in: changes.superseded } }, data });
    }
    return changes;
  }

  /** Stores the insights in an answer. */
  async storeInsights(tx: PoolClient, ourSessionId: string, insights: FetchedInsights, fetchedAt: Date): Promise<void> {
    const parts = INSIGHT_PARTS.filter((part) => insights[part] !== undefined);
    if (parts.length === 0) return;
    const prisma = await this.prisma.in(tx);
    const fingerprint = toBytes(this.seal.fingerprintInsights(parts.map((part) => [part, insights[part]])));
    if (await prisma.sessionInsights.count({ where: { ourSessionId, fingerprint } })) return;
    const data = { fingerprint, fetchedAt, removedAt: null, ...this.sealed(ourSessionId, parts, insights) };
    await prisma.sessionInsights.upsert({
      where: { ourSessionId },
      create: { ourSessionId, ...data },
      update: data,
    });
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
      'SELECT * FROM sessions WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE',
      [ids],
    );
    const removed = rows.flatMap((row) => {
      const facts = ifReadable(() => this.seal.openFacts(row));
      return facts?.error ? [[row.id, this.seal.sealFacts(row.id, withoutMessage(facts))] as const] : [];
    });
    await tx.query(
      `UPDATE sessions SET facts = erased.facts
       FROM unnest($1::uuid[], $2::bytea[]) AS erased(id, facts) WHERE sessions.id = erased.id`,
      [removed.map(([id]) => id), removed.map(([, facts]) => facts)],
    );
    return removed.length;
  }

  private sealed(session: string, parts: readonly InsightPart[], insights: FetchedInsights) {
    const sealed = parts.map((part) => [part, this.seal.insights[part].sealNullable(session, insights[part])] as const);
    return Object.fromEntries(sealed.map(([part, bytes]) => [part, bytes && toBytes(bytes)]));
  }
}
