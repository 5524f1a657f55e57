import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { type Tx, toBytes } from '../../database/prisma.service.js';
import { Prisma, type SessionDocument } from '../../generated/prisma/client.js';
import { isOfDeletedClient } from '../../people/store/person-users.js';
import { openIfReadable } from '../../vault/unreadable-value.js';
import type { FetchedInsights, FetchedNotes } from '../model/apply-fetch.js';
import { compareDocuments, type DocumentChanges, type KnownDocument } from '../model/note-documents.js';
import { withoutMessage } from '../model/session-facts.js';
import type { SessionRow } from '../model/session-row.js';
import { INSIGHT_PARTS, SessionSeal } from '../model/session-seal.js';

/** Statements that remove the content of sessions. */
const removals = (ids: string[]) => [
  Prisma.sql`UPDATE document_revisions SET notes = NULL, removed_at = now()
    WHERE notes IS NOT NULL AND document IN (SELECT id FROM session_documents WHERE session = ANY (${ids}::uuid[]))`,
  Prisma.sql`UPDATE session_insights SET transcript = NULL, topics = NULL, named_entities = NULL, analytics = NULL,
    removed_at = now() WHERE removed_at IS NULL AND session = ANY (${ids}::uuid[])`,
  Prisma.sql`UPDATE processing_sessions SET answer = NULL WHERE answer IS NOT NULL AND session = ANY (${ids}::uuid[])`,
  // An open delivery brings its event first. The platform sends no names, but nothing keeps it from doing so.
  Prisma.sql`DELETE FROM webhook_deliveries WHERE due_at IS NULL AND subject = ANY (ARRAY(
    SELECT session_id FROM sessions WHERE id = ANY (${ids}::uuid[])
    UNION SELECT processing_id FROM processing_sessions WHERE session = ANY (${ids}::uuid[])))`,
  // The stored answer for repeats of the session's request has the session's id.
  Prisma.sql`UPDATE idempotency_records SET body = NULL WHERE body IS NOT NULL
    AND id = ANY (ARRAY(SELECT id FROM sessions WHERE id = ANY (${ids}::uuid[]) OR alias_of = ANY (${ids}::uuid[])))`,
];

/** SQL condition that all of these platform users are clients deleted by the EHR. @param users an array */
export const areDeleted = (users: string): string => `NOT EXISTS (
  SELECT FROM unnest(${users}) AS member (user_id) WHERE (${isOfDeletedClient('user_id')}) IS NOT TRUE)`;

const known = ({ fingerprint, supersededAt, ...document }: SessionDocument): KnownDocument => ({
  ...document,
  fingerprint: Buffer.from(fingerprint),
  superseded: supersededAt !== null,
});

/** A value as it is read after it was stored. */
const asStored = (value: unknown): unknown => (value == null ? null : JSON.parse(JSON.stringify(value)));

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
   * @param isFirst no answer was stored before
   * @returns if readers see other notes than before (`readable`), and the number of new revisions
   */
  async storeNotes(
    tx: Tx,
    ourSessionId: string,
    fetched: FetchedNotes,
    { now: fetchedAt, eventAt }: { now: Date; eventAt: Date | null },
    isFirst: boolean,
  ): Promise<StoredNotes> {
    const stored = isFirst ? [] : await tx.sessionDocument.findMany({ where: { ourSessionId } });
    const changes = compareDocuments(stored.map(known), fetched, (notes) => this.seal.fingerprintNotes(notes));
    for (const { id, notes, noteTemplateId, ordinal, ...write } of changes.writes) {
      const documentId = id ?? randomUUID();
      const newest = { ...write, fingerprint: toBytes(write.fingerprint) };
      await tx.sessionDocument.upsert({
        where: { id: documentId },
        create: { id: documentId, ourSessionId, noteTemplateId, ordinal, ...newest },
        update: { ...newest, supersededAt: null },
        select: { id: true },
      });
      if (notes === null) continue;
      const { revision, sessionDocumentId } = write;
      const sealed = toBytes(this.seal.sealNotes({ session: ourSessionId, document: documentId, revision }, notes));
      const data = { documentId, revision, sessionDocumentId, notes: sealed, fetchedAt, eventAt };
      await tx.documentRevision.create({ data, select: { revision: true } });
    }
    if (changes.superseded.length > 0) {
      const where = { id: { in: changes.superseded } };
      await tx.sessionDocument.updateMany({ where, data: { supersededAt: fetchedAt } });
    }
    return changes;
  }

  /**
   * Stores the insights in an answer.
   *
   * @param isFirst no answer was stored before
   * @returns true if readers see another transcript than before
   */
  async storeInsights(
    tx: Tx,
    ourSessionId: string,
    insights: FetchedInsights,
    fetchedAt: Date,
    isFirst: boolean,
  ): Promise<boolean> {
    const parts = INSIGHT_PARTS.filter((part) => insights[part] !== undefined);
    if (parts.length === 0) return false;
    const where = { ourSessionId };
    const stored = isFirst ? null : await tx.sessionInsights.findUnique({ where });
    const values = parts.map((part) => [part, insights[part]] as const);
    const fingerprint = this.seal.fingerprintInsights(values);
    if (stored && fingerprint.equals(stored.fingerprint)) return false;
    const transcript = openIfReadable(() =>
      this.seal.insights.transcript.open(ourSessionId, stored?.transcript ?? null),
    );
    const isOther = !isDeepStrictEqual(asStored(insights.transcript), transcript);
    const sealed = parts.map((part) => {
      const value = this.seal.insights[part].sealNullable(ourSessionId, insights[part]);
      return [part, value && toBytes(value)];
    });
    const data = { ...Object.fromEntries(sealed), fingerprint: toBytes(fingerprint), fetchedAt };
    await tx.sessionInsights.upsert({
      where,
      create: { ...data, ourSessionId },
      update: { ...data, removedAt: null },
      select: { ourSessionId: true },
    });
    return insights.transcript != null && isOther;
  }

  /**
   * Removes the content of sessions. Fingerprints stay, so that a later fetch does not restore unchanged content.
   *
   * @returns the number of removed versions of notes, transcripts and answers
   */
  async remove(tx: Tx, ids: string[]): Promise<number> {
    let removed = 0;
    for (const statement of removals(ids)) removed += await tx.$executeRaw(statement);
    return removed + (await this.removeMessages(tx, ids));
  }

  /** Removes the platform's answers about processing ids of a session. */
  async removeAnswers(tx: Tx, ourSessionId: string): Promise<void> {
    await tx.processingSession.updateMany({ where: { ourSessionId, answer: { not: null } }, data: { answer: null } });
  }

  /**
   * True if content of a session must not be stored, because all its clients were deleted.
   *
   * @param clients of the newest answer; by default those that are known. If they are none, all that the row ever had
   */
  async isErased(tx: Tx, row: SessionRow, clients: string[] = row.clientUserIds): Promise<boolean> {
    const users = clients.length > 0 ? clients : row.everClientUserIds;
    if (this.env.ERASE_NOTES_OF_DELETED_CLIENTS === 'keep' || users.length === 0) return false;
    const [found] = await tx.$queryRaw<{ erased: boolean }[]>`
      SELECT ${Prisma.raw(areDeleted('users'))} AS erased FROM (SELECT ${users}::text[] AS users) AS given`;
    return found?.erased ?? false;
  }

  /** Removes the platform's error messages. @returns the number of sessions */
  private async removeMessages(tx: Tx, ids: string[]): Promise<number> {
    const rows = await tx.session.findMany({ where: { id: { in: ids } }, select: { id: true, facts: true } });
    const removed = rows.flatMap((row) => {
      const facts = openIfReadable(() => this.seal.openFacts(row));
      return facts?.error ? [{ id: row.id, facts: this.seal.sealFacts(row.id, withoutMessage(facts)) }] : [];
    });
    return tx.$executeRaw`
      UPDATE sessions SET facts = erased.facts
      FROM unnest(${removed.map(({ id }) => id)}::uuid[], ${removed.map(({ facts }) => facts)}::bytea[])
        AS erased(id, facts) WHERE sessions.id = erased.id`;
  }
}
