import { Injectable } from '@nestjs/common';
import { PrismaService } from '../../database/prisma.service.js';
import { Problem } from '../../http/problem/problem.js';
import type { Page, PageQuery } from '../../http/request/page.js';
import { ifNotDamaged, noneIfDamaged } from '../../vault/unreadable-value.js';
import { requestState } from '../model/session-row.js';
import { SessionSeal } from '../model/session-seal.js';
import { type ReadSession, SessionReader } from './session-reader.js';
import { SessionTimeline } from './session-timeline.js';

/** Page size for ids of sessions, versions of a document and entries of a timeline. */
const PAGE = 200;

/** Sessions with all stored data, for an access request. */
@Injectable()
export class SessionRecords {
  constructor(
    private readonly reader: SessionReader,
    private readonly prisma: PrismaService,
    private readonly seal: SessionSeal,
    private readonly timeline: SessionTimeline,
  ) {}

  /**
   * Our ids of a client's sessions. The audit entry of the request lists them.
   *
   * @param client external id
   */
  async idsOf(client: string): Promise<string[]> {
    // A set, because a session that changes between two pages is listed again.
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

  /** Sessions of a client, read one by one; skips sessions that no longer belong to the client. */
  async *of(client: string, ids: readonly string[]): AsyncGenerator<object> {
    for (const id of ids) {
      const row = await this.reader.find(id);
      if (row.clients.includes(client)) yield await this.recordOf(row);
    }
  }

  /** Parts that were changed or moved in the database are null, and listed in `unreadable`. */
  private async recordOf(row: ReadSession) {
    const { id, shownId } = row;
    const { documents } = (await this.reader.notes(id)).notes;
    const notes = [];
    for (const { documentId, noteTemplateId, sessionDocumentId, supersededAt } of documents) {
      const versions = await allOf((query) => this.reader.revisions(id, documentId, query));
      notes.push({ sessionDocumentId, supersededAt, documentId, noteTemplateId, items: versions });
    }
    const parts = {
      transcript: () => this.transcriptOf(id),
      insights: () => this.reader.insights(id),
      request: async () => this.requestOf(row),
    };
    const read: Record<string, unknown> = {};
    for (const [name, part] of Object.entries(parts)) read[name] = await part().catch(noneIfDamaged);
    return {
      ...this.reader.view(row),
      formerIds: id === shownId ? [] : [id],
      notes,
      ...orUnreadable(read),
      processings: await this.processingsOf(id),
      timeline: await allOf<object>((query) => this.timeline.page(id, query)),
    };
  }

  /** The subjects of sessions in the feed: all their ids, their processing ids and deliveries of the Processing API. */
  async feedSubjectsOf(ids: readonly string[]): Promise<string[]> {
    const sessions = await this.prisma.session.findMany({
      where: { shownId: { in: [...ids] } },
      select: { id: true, sessionId: true, processings: { select: { processingId: true } } },
    });
    const processings = sessions.flatMap((session) => session.processings);
    const named = [
      ...processings.map((each) => each.processingId),
      ...sessions.flatMap(({ sessionId }) => sessionId ?? []),
    ];
    const notesFinished = await this.prisma.webhookDelivery.findMany({
      where: { subject: { in: named }, eventType: 'PROCESSING_SESSION_NOTES_FINISHED' },
      select: { id: true },
    });
    return [
      ...new Set([...ids, ...sessions.map(({ id }) => id)].map((id) => `sessions/${id}`)),
      ...processings.map(({ processingId }) => `processing-sessions/${encodeURIComponent(processingId)}`),
      ...notesFinished.map((delivery) => `webhook-deliveries/${delivery.id}`),
    ];
  }

  private async transcriptOf(id: string): Promise<unknown> {
    return this.reader.transcript(id).catch((error: unknown) => {
      if (error instanceof Problem && (error.status === 404 || error.status === 410)) return null;
      throw error;
    });
  }

  /** The EHR's request for a session; its body, which contains URLs of recordings, is stored while it is open. */
  private requestOf(row: ReadSession) {
    const { id, inputKind, correlationId, requestedAt, attemptedAt, settledAt } = row;
    if (requestedAt === null) return null;
    const state = requestState(row);
    const body = this.seal.request.open(id, row.request);
    return { state, inputKind, correlationId, requestedAt, attemptedAt, settledAt, body };
  }

  private async processingsOf(ourSessionId: string) {
    const found = await this.prisma.processingSession.findMany({ where: { ourSessionId } });
    return found.map(({ processingId, updatedAt, answer: sealed }) => {
      const answer = ifNotDamaged(() => this.seal.processingAnswer.open(processingId, sealed));
      return { processingId, updatedAt, ...orUnreadable({ answer }) };
    });
  }
}

/** Reads all pages of a list. */
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

/** Replaces values that cannot be decrypted (undefined) by null, and lists them in `unreadable`. */
function orUnreadable<Names extends string>(
  read: Record<Names, unknown>,
): Record<Names, unknown> & { unreadable?: string[] } {
  const names = Object.keys(read) as Names[];
  const unreadable = names.filter((name) => read[name] === undefined);
  const values = Object.fromEntries(names.map((name) => [name, read[name] ?? null])) as Record<Names, unknown>;
  return { ...values, ...(unreadable.length > 0 && { unreadable }) };
}
