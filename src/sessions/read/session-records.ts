import { Injectable } from '@nestjs/common';
import { PrismaService } from '../../database/prisma.service.js';
import { Problem } from '../../http/problem/problem.js';
import { ifNotDamaged, noneIfDamaged } from '../../vault/unreadable-value.js';
import { SessionSeal } from '../model/session-seal.js';
import type { SessionResponse } from '../model/session-view.js';
import { ProcessingAnswers } from './processing-answers.js';
import { SessionReader } from './session-reader.js';

/** Sessions whose ids are read at once. */
const PAGE = 200;

/** Sessions with all that is kept of them, for an access request. */
@Injectable()
export class SessionRecords {
  constructor(
    private readonly reader: SessionReader,
    private readonly prisma: PrismaService,
    private readonly seal: SessionSeal,
    private readonly answers: ProcessingAnswers,
  ) {}

  /**
   * Our ids of the sessions in which a client took part, which the entry of the request names. One that is unreadable is
   * among them, but not named: nobody can say that it is the client's.
   *
   * @param client external id
   */
  async idsOf(client: string): Promise<string[]> {
    // One that changes meanwhile comes once more: pages go by the last change.
    const ids = new Set<string>();
    let cursor: string | undefined;
    do {
      const page = await this.reader.page({ client, limit: PAGE, ...(cursor !== undefined && { cursor }) });
      for (const session of page.items) {
        if (isShownTo(client, session)) ids.add(session.id);
        if (session.clients.includes(client)) this.reader.auditOf(session);
      }
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    return [...ids];
  }

  /** Sessions of a client, each read when it is its turn; one that is the client's no more is left out. @param ids ours */
  async *of(client: string, ids: readonly string[]): AsyncGenerator<object> {
    for (const id of ids) {
      const session = await this.reader.show(id);
      if (isShownTo(client, session)) yield await this.everythingOf(session);
    }
  }

  /** What of it was changed or moved in the database is null, and named in `unreadable`; the rest is there. */
  private async everythingOf(session: SessionResponse) {
    const { id } = session;
    // Whose it is is not known: its row was changed from outside.
    if (session.unreadable)
      return { ...session, notes: [], transcript: null, insights: null, request: null, processings: [] };
    const { documents } = (await this.reader.notes(id)).notes;
    const notes = [];
    for (const { documentId, sessionDocumentId, supersededAt } of documents) {
      notes.push({ sessionDocumentId, supersededAt, ...(await this.reader.revisions(id, documentId)) });
    }
    const parts = {
      transcript: () => this.transcriptOf(id),
      insights: () => this.reader.insights(id),
      request: () => this.requestOf(id),
    };
    const read: Record<string, unknown> = {};
    for (const [name, part] of Object.entries(parts)) read[name] = await part().catch(noneIfDamaged);
    return {
      ...session,
      notes,
      ...orUnreadable(read),
      processings: await this.processingsOf(session),
    };
  }

  private async transcriptOf(id: string): Promise<unknown> {
    return this.reader.transcript(id).catch((error: unknown) => {
      if (error instanceof Problem && (error.status === 404 || error.status === 410)) return null;
      throw error;
    });
  }

  /** The EHR's request for a session; its body, which names recordings by their addresses, is kept while it is open. */
  private async requestOf(ourSessionId: string) {
    const found = await this.prisma.sessionRequest.findUnique({ where: { ourSessionId } });
    if (!found) return null;
    const { state, inputKind, correlationId, requestedAt, attemptedAt, settledAt, body } = found;
    const opened = this.seal.request.open(ourSessionId, body);
    return { state, inputKind, correlationId, requestedAt, attemptedAt, settledAt, body: opened };
  }

  private async processingsOf({ id, sessionId }: SessionResponse) {
    const found = await this.prisma.processingSession.findMany({ where: { ourSessionId: id } });
    return found.map(({ processingId, updatedAt, answer: sealed }) => {
      const answer = ifNotDamaged(() => this.answers.open({ processingId, answer: sealed }, sessionId));
      return { processingId, updatedAt, ...orUnreadable({ answer }) };
    });
  }
}

/** Values that are known; one that is undefined does not open: it is null, and named. */
function orUnreadable<Names extends string>(
  read: Record<Names, unknown>,
): Record<Names, unknown> & { unreadable?: string[] } {
  const names = Object.keys(read) as Names[];
  const unreadable = names.filter((name) => read[name] === undefined);
  const values = Object.fromEntries(names.map((name) => [name, read[name] ?? null])) as Record<Names, unknown>;
  return { ...values, ...(unreadable.length > 0 && { unreadable }) };
}

/** Of one that is unreadable nothing is shown but that it is there. */
function isShownTo(client: string, { clients, unreadable }: SessionResponse): boolean {
  return unreadable !== undefined || clients.includes(client);
}
