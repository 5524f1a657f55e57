import { Injectable } from '@nestjs/common';
import { Audit } from '../../audit/audit.js';
import { Clock } from '../../config/clock.js';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import { Problem } from '../../http/problem/problem.js';
import { decodeCursor, type Page, type PageQuery, pageOf } from '../../http/request/page.js';
import { UUID } from '../../http/request/uuid-param.js';
import { FormerIdsRepository } from '../../people/store/former-ids.repository.js';
import { peopleOf } from '../../people/store/person-users.js';
import { PlatformClient } from '../../platform/clients/platform-client.js';
import { Contract } from '../../platform/contract/contract.js';
import { platformProblem } from '../../platform/contract/platform-errors.js';
import { RequestCalls } from '../../platform/pauses/request-calls.js';
import { HELD } from '../../sending/hold-code.js';
import { Sending } from '../../sending/sending.js';
import { openIfReadable, openUnlessDamaged } from '../../vault/unreadable-value.js';
import { FINAL_RANK } from '../model/apply-event.js';
import { isGone } from '../model/apply-fetch.js';
import { nextSessionStep } from '../model/next-session-step.js';
import { NO_FACTS, shownError } from '../model/session-facts.js';
import { isOwnState, type SessionRow } from '../model/session-row.js';
import { type InsightPart, SessionSeal } from '../model/session-seal.js';
import {
  type DocumentResponse,
  type NotesResponse,
  type RevisionResponse,
  type RevisionsResponse,
  type SessionResponse,
  UNKNOWN_CHOICES,
} from '../model/session-view.js';
import { SessionsRepository } from '../model/sessions.repository.js';
import { CURRENT_DOCUMENTS, pageStatement } from './session-statements.js';
import type { SessionsQuery } from './sessions.dto.js';

/** A session's row without its request, which may be large. */
type StoredSession = Omit<SessionRow, 'request'>;
const omit = { request: true } as const;

/** The same with the external ids of its people. */
export interface ReadSession extends StoredSession {
  provider: string | null;
  clients: string[];
}

/** A document with its newest revision, as `DOCUMENT_COLUMNS` selects it. */
export type StoredDocument = Omit<DocumentResponse, 'notes' | 'unreadable' | 'noteTemplateName'> & {
  notes: Uint8Array | null;
};

/** Reads sessions with their decrypted notes and insights; `id` is ours or the platform's. */
@Injectable()
export class SessionReader {
  constructor(
    private readonly prisma: PrismaService,
    private readonly rows: SessionsRepository,
    private readonly seal: SessionSeal,
    private readonly platform: PlatformClient,
    private readonly calls: RequestCalls,
    private readonly formerIds: FormerIdsRepository,
    private readonly audit: Audit,
    private readonly sending: Sending,
    private readonly contract: Contract,
    private readonly clock: Clock,
  ) {}

  /**
   * The session's row, also by the id of a request that became an alias of it.
   *
   * @param tx reads within it
   * @throws {Problem} 404 `unknown-session`
   */
  async find(id: string, tx: Tx = this.prisma): Promise<ReadSession> {
    const where = { OR: [{ sessionId: id }, ...(UUID.test(id) ? [{ id }] : [])] };
    const named = await tx.session.findMany({ where, omit });
    const row = named.find(({ sessionId }) => sessionId !== id) ?? named[0];
    if (!row) throw new Problem('unknown-session', 'No session has this id. GET /v1/sessions lists them.');
    const { aliasOf } = row;
    const shown = aliasOf === null ? row : await tx.session.findUniqueOrThrow({ where: { id: aliasOf }, omit });
    const [session] = await withPeople(tx, [shown]);
    this.auditOf(session as ReadSession);
    return session as ReadSession;
  }

  /** Rows by our ids. @param tx reads within it */
  async read(ids: string[], tx: Tx = this.prisma): Promise<Map<string, ReadSession>> {
    const rows = await withPeople(tx, await tx.session.findMany({ where: { id: { in: ids } }, omit }));
    return new Map(rows.map((row) => [row.id, row]));
  }

  /** @param tx reads within it @throws {Problem} 404 `unknown-session` */
  async show(id: string, tx?: Tx): Promise<SessionResponse> {
    return this.view(await this.find(id, tx));
  }

  /**
   * By last change, oldest first by default, so that a returning reader gets only changed sessions.
   *
   * @throws {Problem} 409 `renamed` or `merged` if it names a former id
   */
  async list({ limit, cursor, provider, client, ...filter }: SessionsQuery): Promise<Page<SessionResponse>> {
    const after = decodeCursor<[updatedAt: string, id: string]>(cursor, 'time', 'uuid');
    const { text, values } = pageStatement({
      ...filter,
      after,
      providerUsers: provider === undefined ? undefined : await this.usersOf('provider', provider),
      clientUsers: client === undefined ? undefined : await this.usersOf('client', client),
      limit: limit + 1,
    });
    const found = await this.prisma.$queryRawUnsafe<StoredSession[]>(text, ...values);
    const page = pageOf(found, limit, ({ updatedAt, id }) => [updatedAt.toISOString(), id]);
    const sessions = await withPeople(this.prisma, page.items);
    for (const session of sessions) this.auditOf(session);
    return { items: sessions.map((session) => this.view(session)), nextCursor: page.nextCursor };
  }

  /** All notes, read in one snapshot because they may be regenerated concurrently. */
  async notes(id: string): Promise<{ session: SessionResponse; notes: NotesResponse }> {
    const { row, documents } = await this.prisma.transaction(async (tx) => {
      await tx.$executeRaw`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY`;
      const found = await this.find(id, tx);
      return { row: found, documents: await tx.$queryRawUnsafe<StoredDocument[]>(CURRENT_DOCUMENTS, found.id) };
    });
    const shown = documents.map((document) => this.openDocument(row.id, document));
    const notes = { sessionId: row.sessionId, notesRevision: row.notesRevision, documents: shown };
    return { session: this.view(row), notes };
  }

  /**
   * A page of the versions of a document, newest first.
   *
   * @param documentId our id, or any id that the platform gave it
   * @throws {Problem} 404 `unknown-session`, `unknown-document`
   */
  async revisions(id: string, documentId: string, { limit, cursor }: PageQuery): Promise<RevisionsResponse> {
    const [before] = decodeCursor<[number]>(cursor, 'number') ?? [];
    const session = await this.find(id);
    const documents = await this.prisma.sessionDocument.findMany({
      where: { ourSessionId: session.id },
      include: { revisions: { where: { sessionDocumentId: documentId }, select: { revision: true } } },
    });
    const found = documents.find((one) => one.id === documentId) ?? documents.find((one) => one.revisions.length > 0);
    if (!found) throw new Problem('unknown-document', 'This session has no such document. List its notes first.');
    const versions = await this.prisma.documentRevision.findMany({
      where: { documentId: found.id, ...(before !== undefined && { revision: { lt: before } }) },
      orderBy: { revision: 'desc' },
      take: limit + 1,
    });
    const page = pageOf(
      versions,
      limit,
      ({ revision }) => [revision],
      (version) => {
        const { revision, sessionDocumentId, fetchedAt, removedAt } = version;
        return { revision, sessionDocumentId, fetchedAt, removedAt, ...this.openNotes(session.id, version) };
      },
    );
    const { id: ours, noteTemplateId } = found;
    return { documentId: ours, noteTemplateId, noteTemplateName: this.contract.templateName(noteTemplateId), ...page };
  }

  /** @throws {Problem} 404 `unknown-session`, `no-transcript`; 410 `transcript-removed` */
  async transcript(id: string): Promise<unknown> {
    const { transcript, removedAt } = await this.open(id, ['transcript']);
    if (transcript !== null) return transcript;
    if (removedAt !== null) {
      const detail = 'The transcript was removed, by TRANSCRIPTS_RETENTION_DAYS or with its client.';
      throw new Problem('transcript-removed', detail, { extensions: { removedAt } });
    }
    throw new Problem('no-transcript', 'No transcript of this session is stored. Sessions from a text have none.');
  }

  /** A session's insights; null for those that the platform did not return. @throws {Problem} 404 `unknown-session` */
  async insights(id: string): Promise<{ analyticsSummary: unknown }> {
    const { analytics, ...opened } = await this.open(id, ['topics', 'namedEntities', 'analytics']);
    return { ...opened, analyticsSummary: analytics };
  }

  /**
   * A temporary URL of the recording, requested from the platform now and never stored.
   *
   * @throws {Problem} 404 `unknown-session`, `no-recording`, `not-on-platform`; 501 `not-configured`; 503; 504
   */
  async recordingUrl(id: string, signal: AbortSignal): Promise<string> {
    const { id: ourId, sessionId } = await this.find(id);
    const ask = (asked: string) => () => this.platform.getSession(asked, { signal });
    const session =
      sessionId === null
        ? undefined
        : await this.calls.make('getSession', ourId, ask(sessionId), signal).catch((error: unknown) => {
            throw platformProblem(error);
          });
    if (session?.recordingUrl) return session.recordingUrl;
    throw new Problem('no-recording', 'The platform has no recording of this session.');
  }

  /** Decrypts the notes of a document. @param session id of its row */
  openDocument(session: string, { notes, ...document }: StoredDocument): DocumentResponse {
    const noteTemplateName = this.contract.templateName(document.noteTemplateId);
    return { ...document, noteTemplateName, ...this.openNotes(session, { ...document, notes }) };
  }

  /** Empty if they were removed, or if the version was changed or moved, so that it does not hide the others. */
  private openNotes(
    session: string,
    { documentId: document, revision, notes }: { documentId: string; revision: number; notes: Uint8Array | null },
  ): Pick<RevisionResponse, 'notes' | 'unreadable'> {
    if (notes === null) return { notes: [] };
    const opened = openUnlessDamaged(() => this.seal.openNotes({ session, document, revision }, notes));
    return opened ? { notes: opened } : { notes: [], unreadable: ['notes'] };
  }

  private async open<Part extends InsightPart>(
    id: string,
    parts: Part[],
  ): Promise<Record<Part, unknown> & { removedAt: Date | null }> {
    const { id: ourSessionId } = await this.find(id);
    const sealed = await this.prisma.sessionInsights.findUnique({ where: { ourSessionId } });
    const opened = parts.map((part) => [part, this.seal.insights[part].open(ourSessionId, sealed?.[part] ?? null)]);
    return { ...(Object.fromEntries(opened) as Record<Part, unknown>), removedAt: sealed?.removedAt ?? null };
  }

  /**
   * All platform users of a person.
   *
   * @throws {Problem} 409 `renamed` or `merged` if it is a former id
   */
  async usersOf(kind: 'provider' | 'client', externalId: string): Promise<string[]> {
    await this.formerIds.refuse(kind, [externalId]);
    return this.formerIds.users({ kind, externalId });
  }

  /** Adds a session and its people to the audit entry of the request. */
  auditOf(session: ReadSession): void {
    this.audit.about('session', session.id);
    this.audit.about('platform-session', session.sessionId);
    this.audit.about('provider', session.provider);
    this.audit.about('client', ...session.clients);
  }

  view(row: ReadSession): SessionResponse {
    const facts = openIfReadable(() => this.seal.openFacts(row));
    const { date, sessionCreatedAt, recordingDurationMs, sessionDurationMs, error } = facts ?? NO_FACTS;
    const msOf = (text: string | null) => (text === null ? null : Number(text));
    const { sessionId, partnerAppointmentId, provider, clients, providerUserId, clientUserIds, noteTemplateIds } = row;
    const { state, aiNotesEnabled, notesRevision, incomplete, lastEventAt, fetchedAt, updatedAt } = row;
    return {
      id: row.id,
      sessionId,
      partnerAppointmentId,
      provider,
      clients,
      providerUserId,
      clientUserIds,
      noteTemplateIds,
      noteTemplates: noteTemplateIds.map((id) => ({ id, name: this.contract.templateName(id) })),
      state,
      stateFrom: isOwnState(state) ? null : (row.stateFrom as SessionResponse['stateFrom']),
      correlationId: state === 'Unknown' ? row.correlationId : null,
      choices: state === 'Unknown' ? [...UNKNOWN_CHOICES] : [],
      nextStep: nextSessionStep({ ...row, request: null }, this.clock.now(), this.rows.policy, this.rows.canFetch),
      aiNotesEnabled,
      aiNotesFinal: row.aiNotesRank === FINAL_RANK,
      error:
        state === 'Requested' && this.sending.isHeldNow ? { code: HELD, message: null } : error && shownError(error),
      date,
      sessionCreatedAt,
      recordingDurationMs: msOf(recordingDurationMs),
      sessionDurationMs: msOf(sessionDurationMs),
      notesRevision,
      incomplete,
      lastEventAt,
      fetchedAt,
      goneAt: isGone(row) ? row.notFoundAt : null,
      updatedAt,
      ...(!facts && { unreadable: Object.keys(NO_FACTS) }),
    };
  }
}

/** Rows with the external ids of their people, in one statement. */
async function withPeople(db: Tx, rows: StoredSession[]): Promise<ReadSession[]> {
  const users = rows.flatMap(({ providerUserId, clientUserIds }) => [providerUserId ?? [], clientUserIds].flat());
  const people = await peopleOf(db, [...new Set(users)]);
  return rows.map((row) => ({
    ...row,
    provider: people.get(row.providerUserId ?? '')?.externalId ?? null,
    clients: row.clientUserIds.flatMap((user) => people.get(user)?.externalId ?? []),
  }));
}
