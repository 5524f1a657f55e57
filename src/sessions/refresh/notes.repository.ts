import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { PrismaService, toBytes } from '../../database/prisma.service.js';
import type { Prisma } from '../../generated/prisma/client.js';
import type { FetchedNotes } from '../model/answer-parts.js';
import { compareDocuments, type DocumentWrite } from '../model/note-documents.js';
import { revisionKey, SessionSeal } from '../model/session-seal.js';

/** Stores fetched notes: current documents, and every version that differed. */
@Injectable()
export class NotesRepository {
  constructor(
    private readonly prisma: PrismaService,
    private readonly seal: SessionSeal,
  ) {}

  /**
   * Makes the stored documents those of the answer; the session's row must be locked.
   *
   * @param session our id
   * @returns true when a reader sees other notes than before
   */
  async store(tx: PoolClient, session: string, fetched: FetchedNotes, now: Date): Promise<boolean> {
    const prisma = await this.prisma.in(tx);
    const rows = await prisma.sessionDocument.findMany({ where: { ourSessionId: session } });
    const known = rows.map(({ fingerprint, supersededAt, ...row }) => ({
      ...row,
      fingerprint: Buffer.from(fingerprint).toString('hex'),
      superseded: supersededAt !== null,
    }));
    const changes = compareDocuments(known, fetched, (notes) => this.seal.fingerprintNotes(notes));
    for (const write of changes.writes) await this.write(prisma, session, write, now);
    if (changes.superseded.length > 0) {
      const data = { supersededAt: now };
      await prisma.sessionDocument.updateMany({ where: { id: { in: changes.superseded } }, data });
    }
    return changes.readable;
  }

  private async write(
    prisma: Prisma.TransactionClient,
    ourSessionId: string,
    { id: known, noteTemplateId, ordinal, notes, ...current }: DocumentWrite,
    fetchedAt: Date,
  ): Promise<void> {
    const id = known ?? randomUUID();
    const data = { ...current, fingerprint: toBytes(Buffer.from(current.fingerprint, 'hex')) };
    await prisma.sessionDocument.upsert({
      where: { id },
      create: { ...data, id, ourSessionId, noteTemplateId, ordinal },
      update: { ...data, supersededAt: null },
    });
    if (notes === null) return;
    const { revision, sessionDocumentId } = current;
    const sealed = toBytes(this.seal.notes.seal(revisionKey(id, revision), notes));
    await prisma.documentRevision.create({
      data: { documentId: id, revision, sessionDocumentId, notes: sealed, fetchedAt },
    });
  }
}
