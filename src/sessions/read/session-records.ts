import { Injectable } from '@nestjs/common';
import { PrismaService } from '../../database/prisma.service.js';
import { Problem } from '../../http/problem/problem.js';
import { SessionSeal } from '../model/session-seal.js';
import type { SessionResponse } from '../model/session-view.js';
import { SessionReader } from './session-reader.js';

/** Sessions that are read at once. */
const PAGE = 50;

/** Everything that is kept of a session. */
export type SessionRecord = Awaited<ReturnType<SessionRecords['everythingOf']>>;

/** Sessions with all that is kept of them, for an access request. */
@Injectable()
export class SessionRecords {
  constructor(
    private readonly reader: SessionReader,
    private readonly prisma: PrismaService,
    private readonly seal: SessionSeal,
  ) {}

  /** The sessions in which a client took part, in pages. @param client external id */
  async *pagesOf(client: string): AsyncGenerator<SessionResponse[]> {
    let cursor: string | undefined;
    // One that changes meanwhile comes once more: pages go by the last change.
    const seen = new Set<string>();
    do {
      const page = await this.reader.list({ client, limit: PAGE, ...(cursor !== undefined && { cursor }) });
      const fresh = page.items.filter(({ id }) => !seen.has(id));
      for (const { id } of fresh) seen.add(id);
      if (fresh.length > 0) yield fresh;
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
  }

  async everythingOf(session: SessionResponse) {
    const { id } = session;
    // Whose it is is not known: its row was changed from outside.
    if (session.unreadable)
      return { ...session, notes: [], transcript: null, insights: null, request: null, processings: [] };
    const { documents } = (await this.reader.notes(id)).notes;
    const notes = [];
    for (const { documentId, sessionDocumentId, supersededAt } of documents) {
      notes.push({ sessionDocumentId, supersededAt, ...(await this.reader.revisions(id, documentId)) });
    }
    const transcript = await this.reader.transcript(id).catch((error: unknown) => {
      if (error instanceof Problem && (error.status === 404 || error.status === 410)) return null;
      throw error;
    });
    const insights = await this.reader.insights(id);
    return {
      ...session,
      notes,
      transcript,
      insights,
      request: await this.requestOf(id),
      processings: await this.processingsOf(id),
    };
  }

  /** The EHR's request for a session; its body, which names recordings by their addresses, is kept while it is open. */
  private async requestOf(ourSessionId: string) {
    const found = await this.prisma.sessionRequest.findUnique({ where: { ourSessionId } });
    if (!found) return null;
    const { state, inputKind, correlationId, requestedAt, attemptedAt, settledAt, body } = found;
    const opened = this.seal.request.open(ourSessionId, body);
    return { state, inputKind, correlationId, requestedAt, attemptedAt, settledAt, body: opened };
  }

  private async processingsOf(ourSessionId: string) {
    const found = await this.prisma.processingSession.findMany({ where: { ourSessionId } });
    return found.map(({ processingId, updatedAt, answer }) => {
      return { processingId, updatedAt, answer: this.seal.processingAnswer.open(processingId, answer) };
    });
  }
}
