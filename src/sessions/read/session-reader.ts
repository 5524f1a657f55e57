import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Audit } from '../../audit/audit.js';
import { Database } from '../../database/database.js';
import { PrismaService } from '../../database/prisma.service.js';
import { Problem } from '../../http/problem/problem.js';
import { decodeCursor, type Page, type PageQuery, pageOf } from '../../http/request/page.js';
import { UUID } from '../../http/request/uuid-param.js';
import { FormerIdsRepository } from '../../people/store/former-ids.repository.js';
import { PlatformClient } from '../../platform/clients/platform-client.js';
import { Contract } from '../../platform/contract/contract.js';
import { platformProblem } from '../../platform/contract/platform-errors.js';
import { HELD } from '../../sending/hold-code.js';
import { Sending } from '../../sending/sending.js';
import { openIfReadable, openUnlessDamaged } from '../../vault/unreadable-value.js';
import { nextSessionStep } from '../model/next-session-step.js';
import { IS_NAMED } from '../model/session-columns.js';
import { NO_FACTS, shownError } from '../model/session-facts.js';
import { type SessionRow, stateSource } from '../model/session-row.js';
import { type InsightPart, SessionSeal } from '../model/session-seal.js';
import {
  type DocumentResponse,
  type NotesResponse,
  type RevisionResponse,
  type RevisionsResponse,
  type SessionResponse,
  UNKNOWN_CHOICES,
} from '../model/session-view.js';
import { numberSessions } from './session-numbering.js';
import { DOCUMENT_COLUMNS, listStatement, WITH_PEOPLE } from './session-statements.js';
import type { SessionsQuery } from './sessions.dto.js';

/** A session's row with the external ids of its people. */
export interface ReadSession extends Omit<SessionRow, 'request'> {
  provider: string | null;
  clients: string[];
}

/** A document with its newest revision, as `DOCUMENT_COLUMNS` selects it. */
export type StoredDocument = Omit<DocumentResponse, 'notes' | 'unreadable' | 'noteTemplateName'> & {
  notes: Buffer | null;
};

/** OFFSET 0 keeps the planner from reading all revisions. */
const CURRENT_DOCUMENTS = `
  SELECT ${DOCUMENT_COLUMNS}
  FROM session_documents d CROSS JOIN LATERAL (
    SELECT * FROM document_revisions WHERE document = d.id AND revision = d.revision OFFSET 0) AS r
  WHERE d.session = $1 ORDER BY d.superseded_at DESC NULLS FIRST, d.position, d.id`;

/** Reads sessions with their decrypted notes and insights; `id` is ours or the platform's. */
@Injectable()
export class SessionReader {
  constructor(
    private readonly database: Database,
    private readonly prisma: PrismaService,
    private readonly seal: SessionSeal,
    private readonly platform: PlatformClient,
    private readonly formerIds: FormerIdsRepository,
    private readonly audit: Audit,
    private readonly sending: Sending,
    private readonly contract: Contract,
  ) {}

  /** The session's row. @param tx reads within it @throws {Problem} 404 `unknown-session` */
  async find(id: string, tx?: PoolClient): Promise<ReadSession> {
    const read = () =>
      (tx ?? this.database.pool).query<ReadSession>(
        `SELECT ${WITH_PEOPLE} FROM sessions t WHERE ${IS_NAMED} ORDER BY session_id IS NOT DISTINCT FROM $2 LIMIT 1`,
        [UUID.test(id) ? id : null, id],
      );
    let { rows } = await read();
    // A request that waits to be sent is not locked here, because its claim would skip it.
    if (!tx && rows[0]?.changed && rows[0].state !== 'Requested') {
      await numberSessions(this.database);
      ({ rows } = await read());
    }
    if (rows[0]) {
      this.auditOf(rows[0]);
      return rows[0];
    }
    throw new Problem('unknown-session', 'No session has this id. GET /v1/sessions lists them.');
  }

  /** @param tx reads within it @throws {Problem} 404 `unknown-session` */
  async show(id: string, tx?: PoolClient): Promise<SessionResponse> {
    return this.view(await this.find(id, tx));
  }

  /**
   * By last change, oldest first by default, so that a returning reader gets only changed sessions.
   *
   * @throws {Problem} 409 `renamed` or `merged` if it names a former id
   */
  async list({ limit, cursor, provider, client, ...filter }: SessionsQuery): Promise<Page<SessionResponse>> {
    const after = decodeCursor<[updatedAt: string, id: string]>(cursor, 'time', 'uuid');
    const { text, values } = listStatement({
      ...filter,
      after,
      providerUsers: provider === undefined ? undefined : await this.usersOf('provider', provider),
      clientUsers: client === undefined ? undefined : await this.usersOf('client', client),
      limit: limit + 1,
    });
    await numberSessions(this.database);
    const { rows } = await this.database.pool.query<ReadSession>(text, values);
    return pageOf(
      rows,
      limit,
      (row) => [row.updatedAt.toISOString(), row.id],
      (row) => {
        this.auditOf(row);
        return this.view(row);
      },
    );
  }

  /** All notes, read in one snapshot because they may be regenerated concurrently. */
  async notes(id: string): Promise<{ session: SessionResponse; notes: NotesResponse }> {
    const { row, documents } = await this.database.transaction(async (tx) => {
      await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY');
      const found = await this.find(id, tx);
      return { row: found, documents: (await tx.query<StoredDocument>(CURRENT_DOCUMENTS, [found.id])).rows };
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
    const { sessionId } = await this.find(id);
    const session =
      sessionId === null
        ? undefined
        : await this.platform.getSession(sessionId, { signal }).catch((error: unknown) => {
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
    this.audit.about('session', session.shownId);
    this.audit.about('platform-session', session.sessionId);
    this.audit.about('provider', session.provider);
    this.audit.about('client', ...session.clients);
  }

  view(row: ReadSession): SessionResponse {
    const facts = openIfReadable(() => this.seal.openFacts(row));
    const { date, sessionCreatedAt, recordingDurationMs, sessionDurationMs, error } = facts ?? NO_FACTS;
    const msOf = (text: string | null) => (text === null ? null : Number(text));
    const { sessionId, partnerAppointmentId, provider, clients, providerUserId, clientUserIds, noteTemplateIds } = row;
    const { state, aiNotesEnabled, aiNotesFinal, notesRevision, incomplete, lastEventAt, fetchedAt, updatedAt } = row;
    return {
      id: row.shownId,
      sessionId,
      partnerAppointmentId,
      provider,
      clients,
      providerUserId,
      clientUserIds,
      noteTemplateIds,
      noteTemplates: noteTemplateIds.map((id) => ({ id, name: this.contract.templateName(id) })),
      state,
      stateFrom: stateSource(row),
      correlationId: state === 'Unknown' ? row.correlationId : null,
      choices: state === 'Unknown' ? [...UNKNOWN_CHOICES] : [],
      nextStep: nextSessionStep(row),
      aiNotesEnabled,
      aiNotesFinal,
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
      goneAt: row.notFoundAt,
      updatedAt,
      ...(!facts && { unreadable: Object.keys(NO_FACTS) }),
    };
  }
}
