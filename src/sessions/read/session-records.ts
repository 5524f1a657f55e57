import { Injectable } from '@nestjs/common';
import { PrismaService } from '../../database/prisma.service.js';
import { Problem } from '../../http/problem/problem.js';
import type { Page, PageQuery } from '../../http/request/page.js';
import { ifNotDamaged, noneIfDamaged } from '../../vault/unreadable-value.js';
import { SessionSeal } from '../model/session-seal.js';
import type { SessionResponse } from '../model/session-view.js';
import { SessionReader } from './session-reader.js';
import { SessionTimeline } from './session-timeline.js';

/** What is read at once: ids of sessions, versions of a document, what happened to a session. */
const PAGE = 200;

/** Sessions with all that is kept of them, for an access request. */
@Injectable()
export class SessionRecords {
  constructor(
    private readonly reader: SessionReader,
    private readonly prisma: PrismaService,
    private readonly seal: SessionSeal,
    private readonly timeline: SessionTimeline,
  ) {}

  /**
   * Our ids of the sessions in which a client took part. The audit entry of the request names them.
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
        ids.add(session.id);
        this.reader.auditOf(session);
      }
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    return [...ids];
  }

  /** Sessions of a client, each read when it is its turn; one that is the client's no more is left out. @param ids ours */
  async *of(client: string, ids: readonly string[]): AsyncGenerator<object> {
    for (const id of ids) {
      const session = await this.reader.show(id);
      if (session.clients.includes(client)) yield await this.everythingOf(session);
    }
  }

  /** What of it was changed or moved in the database is null, and named in `unreadable`; the rest is there. */
  private async everythingOf(session: SessionResponse) {
    const { id } = session;
    const { documents } = (await this.reader.notes(id)).notes;
    const notes = [];
    for (const { documentId, noteTemplateId, sessionDocumentId, supersededAt } of documents) {
      const versions = await allOf((query) => this.reader.revisions(id, documentId, query));
      notes.push({ sessionDocumentId, supersededAt, documentId, noteTemplateId, items: versions });
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
      formerIds: await this.formerIdsOf([id]),
      notes,
      ...orUnreadable(read),
      processings: await this.processingsOf(session),
      timeline: await allOf<object>((query) => this.timeline.page(id, query)),
    };
  }

  /** Where the feed told of sessions: by every id that they had, and by what the Processing API says of them. @param ids ours */
  async feedSubjectsOf(ids: readonly string[]): Promise<string[]> {
    const where = { ourSessionId: { in: [...ids] } };
    const processings = await this.prisma.processingSession.findMany({ where, select: { processingId: true } });
    const sessions = await this.prisma.session.findMany({
      where: { id: where.ourSessionId },
      select: { sessionId: true },
    });
    const named = [
      ...processings.map((each) => each.processingId),
      ...sessions.flatMap(({ sessionId }) => sessionId ?? []),
    ];
    const notesFinished = await this.prisma.webhookDelivery.findMany({
      where: { subject: { in: named }, eventType: 'PROCESSING_SESSION_NOTES_FINISHED' },
      select: { id: true },
    });
    return [
      ...[...ids, ...(await this.formerIdsOf(ids))].map((id) => `sessions/${id}`),
      ...processings.map(({ processingId }) => `processing-sessions/${encodeURIComponent(processingId)}`),
      ...notesFinished.map((delivery) => `webhook-deliveries/${delivery.id}`),
    ];
  }

  /** Ids under which sessions were shown before they turned out to be requested here. */
  private async formerIdsOf(ids: readonly string[]): Promise<string[]> {
    const aliases = await this.prisma.sessionAlias.findMany({ where: { ourSessionId: { in: [...ids] } } });
    return aliases.map(({ id }) => id);
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
    const { state, inputKind, correlationId, evidence, requestedAt, attemptedAt, settledAt, body } = found;
    const opened = this.seal.request.open(ourSessionId, body);
    return { state, inputKind, correlationId, evidence, requestedAt, attemptedAt, settledAt, body: opened };
  }

  private async processingsOf({ id: ourSessionId }: SessionResponse) {
    const found = await this.prisma.processingSession.findMany({ where: { ourSessionId } });
    return found.map(({ processingId, updatedAt, answer: sealed }) => {
      const answer = ifNotDamaged(() => this.seal.processingAnswer.open(processingId, sealed));
      return { processingId, updatedAt, ...orUnreadable({ answer }) };
    });
  }
}

/** A list that is read page by page, as a whole. */
async function allOf<T>(read: (query: PageQuery) => Promise<Page<T>>): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await read({ limit: PAGE, ...(cursor !== undefined && { cursor }) });
    items.push(...page.items);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return items;
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
