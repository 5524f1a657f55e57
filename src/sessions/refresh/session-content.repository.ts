import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { PrismaService, toBytes } from '../../database/prisma.service.js';
import type { FetchedInsights, FetchedNotes } from '../model/apply-fetch.js';
import { compareDocuments } from '../model/note-documents.js';
import { INSIGHT_PARTS, type InsightPart, revisionKey, SessionSeal } from '../model/session-seal.js';

/** Stores what sessions hold, sealed. The session's row must be locked; it is named by our id. */
@Injectable()
export class SessionContentRepository {
  constructor(
    private readonly prisma: PrismaService,
    private readonly seal: SessionSeal,
  ) {}

  /**
   * Makes the stored documents those of an answer, and keeps every version that differed.
   *
   * @returns true when a reader sees other notes than before
   */
  async storeNotes(tx: PoolClient, ourSessionId: string, fetched: FetchedNotes, now: Date): Promise<boolean> {
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
      const sealed = toBytes(this.seal.notes.seal(revisionKey(id, revision), notes));
      await prisma.documentRevision.create({
        data: { documentId: id, revision, sessionDocumentId, notes: sealed, fetchedAt: now },
      });
    }
    if (changes.superseded.length > 0) {
      const data = { supersededAt: now };
      await prisma.sessionDocument.updateMany({ where: { id: { in: changes.superseded } }, data });
    }
    return changes.readable;
  }

  /** Stores the insights that an answer speaks of. */
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

  /** Moves the insights of one session to another that has none, sealed for their new place. @param from, to ours */
  async moveInsights(tx: PoolClient, from: string, to: string): Promise<void> {
    const prisma = await this.prisma.in(tx);
    const known = await prisma.sessionInsights.findUnique({ where: { ourSessionId: from } });
    if (!known) return;
    const opened = INSIGHT_PARTS.map((part) => [part, this.seal.insights[part].open(from, known[part])]);
    const data = { ...known, ourSessionId: to, ...this.sealed(to, INSIGHT_PARTS, Object.fromEntries(opened)) };
    await prisma.sessionInsights.delete({ where: { ourSessionId: from } });
    if (await prisma.sessionInsights.count({ where: { ourSessionId: to } })) return;
    await prisma.sessionInsights.create({ data });
  }

  private sealed(session: string, parts: readonly InsightPart[], insights: FetchedInsights) {
    const sealed = parts.map((part) => [part, this.seal.insights[part].sealNullable(session, insights[part])] as const);
    return Object.fromEntries(sealed.map(([part, bytes]) => [part, bytes && toBytes(bytes)]));
  }
}
