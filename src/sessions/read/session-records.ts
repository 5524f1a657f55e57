import { Injectable } from '@nestjs/common';
import { PrismaService } from '../../database/prisma.service.js';
import { Problem } from '../../http/problem/problem.js';
import type { PageQuery } from '../../http/request/page.js';
import { openUnlessDamaged, undefinedIfDamaged } from '../../vault/unreadable-value.js';
import { requestState } from '../model/session-row.js';
import { SessionSeal } from '../model/session-seal.js';
import { type ReadSession, SessionReader } from './session-reader.js';
import { SessionTimeline } from './session-timeline.js';

/** Sessions of a page. */
const PAGE = 200;

/** One page with a whole list. The limit is the largest that PostgreSQL's integer can count one more of. */
const ALL: PageQuery = { limit: 2 ** 31 - 2 };

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
    const ids = new Set<string>();
    let cursor: string | undefined;
    do {
      const { items, nextCursor } = await this.reader.list({ limit: PAGE, cursor, client });
      for (const { id } of items) ids.add(id);
      cursor = nextCursor ?? undefined;
    } while (cursor !== undefined);
    return [...ids];
  }

  /** Sessions of a client, read one by one; skips sessions that no longer belong to the client. */
  async *of(client: string, ids: readonly string[]): AsyncGenerator<object> {
    for (const id of ids) {
      const session = await this.reader.find(id);
      if (session.clients.includes(client)) yield await this.recordOf(session);
    }
  }

  /** Parts that were changed or moved in the database are null, and listed in `unreadable`. */
  private async recordOf(session: ReadSession) {
    const { id } = session;
    const { request, processings } = await this.prisma.session.findUniqueOrThrow({
      where: { id },
      select: { request: true, processings: true },
    });
    const aliases = await this.prisma.session.findMany({ where: { aliasOf: id }, select: { id: true } });
    const notes = [];
    for (const document of (await this.reader.notes(id)).notes.documents) {
      const { documentId, noteTemplateId, noteTemplateName, sessionDocumentId, supersededAt } = document;
      const { items } = await this.reader.revisions(id, documentId, ALL);
      notes.push({ sessionDocumentId, supersededAt, documentId, noteTemplateId, noteTemplateName, items });
    }
    return {
      ...this.reader.view(session),
      formerIds: aliases.map((alias) => alias.id),
      notes,
      ...orUnreadable({
        transcript: await this.reader.transcript(id).catch(nullIfMissing).catch(undefinedIfDamaged),
        insights: await this.reader.insights(id).catch(undefinedIfDamaged),
        request: openUnlessDamaged(() => this.requestOf(session, request)),
      }),
      processings: processings.map(({ processingId, updatedAt, answer }) => ({
        processingId,
        updatedAt,
        ...orUnreadable({ answer: openUnlessDamaged(() => this.seal.processingAnswer.open(processingId, answer)) }),
      })),
      timeline: (await this.timeline.page(id, ALL)).items,
    };
  }

  /** The EHR's request. Its body, which contains URLs of recordings, is stored while it is open. */
  private requestOf(session: ReadSession, sealed: Uint8Array | null) {
    const { id, inputKind, correlationId, requestedAt, attemptedAt, settledAt } = session;
    if (requestedAt === null) return null;
    const body = this.seal.request.open(id, sealed);
    return { state: requestState(session), inputKind, correlationId, requestedAt, attemptedAt, settledAt, body };
  }

  /** The subjects of sessions in the feed: all their ids, their processing ids and deliveries of the Processing API. */
  async feedSubjectsOf(ids: readonly string[]): Promise<string[]> {
    const rows = await this.prisma.session.findMany({
      where: { OR: [{ id: { in: [...ids] } }, { aliasOf: { in: [...ids] } }] },
      select: { id: true, sessionId: true, processings: { select: { processingId: true } } },
    });
    const processingIds = rows.flatMap(({ processings }) => processings.map(({ processingId }) => processingId));
    const subject = { in: [...processingIds, ...rows.flatMap(({ sessionId }) => sessionId ?? [])] };
    const notesFinished = await this.prisma.webhookDelivery.findMany({
      where: { subject, eventType: 'PROCESSING_SESSION_NOTES_FINISHED' },
      select: { id: true },
    });
    return [
      ...rows.map(({ id }) => `sessions/${id}`),
      ...processingIds.map((id) => `processing-sessions/${encodeURIComponent(id)}`),
      ...notesFinished.map(({ id }) => `webhook-deliveries/${id}`),
    ];
  }
}

function nullIfMissing(error: unknown): null {
  if (error instanceof Problem && (error.status === 404 || error.status === 410)) return null;
  throw error;
}

/** Replaces values that cannot be decrypted (undefined) by null, and lists them in `unreadable`. */
function orUnreadable(parts: Record<string, unknown>) {
  const unreadable = Object.keys(parts).filter((name) => parts[name] === undefined);
  const empty = Object.fromEntries(unreadable.map((name) => [name, null]));
  return { ...parts, ...empty, ...(unreadable.length > 0 && { unreadable }) };
}
