import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Problem } from '../../http/problem/problem.js';
import { decodeCursor, type Page, pageOf } from '../../http/request/page.js';
import { PlatformClient } from '../../platform/clients/platform-client.js';
import { platformProblem } from '../../platform/contract/platform-errors.js';
import { type InsightPart, revisionKey, SessionSeal } from '../model/session-seal.js';
import type { NotesResponse, RevisionsResponse } from './notes-view.js';
import { type SessionCursor, type SessionFilter, SessionReadsRepository } from './session-reads.repository.js';
import { type ReadSession, type SessionResponse, sessionView } from './session-view.js';

/** What was gained from a session's audio; what the platform did not give is null. */
export interface InsightsView {
  topics: unknown;
  namedEntities: unknown;
  analyticsSummary: unknown;
}

/** Sessions with their notes and insights, opened for those who may read them. */
@Injectable()
export class SessionReader {
  constructor(
    private readonly reads: SessionReadsRepository,
    private readonly seal: SessionSeal,
    private readonly platform: PlatformClient,
  ) {}

  async list(filter: SessionFilter, limit: number, cursor: string | undefined): Promise<Page<SessionResponse>> {
    const after = decodeCursor<SessionCursor>(cursor, 'time', 'uuid');
    const rows = await this.reads.list(filter, limit + 1, after);
    return pageOf(
      rows,
      limit,
      (row) => [row.updated_at.toISOString(), row.id],
      (row) => sessionView(row, this.seal),
    );
  }

  /** @param id ours or the platform's @param tx reads within it @throws {Problem} 404 `unknown-session` */
  async show(id: string, tx?: PoolClient): Promise<SessionResponse> {
    return sessionView(await this.find(id, tx), this.seal);
  }

  /** @throws {Problem} 404 `unknown-session` */
  async notes(id: string): Promise<{ session: SessionResponse; notes: NotesResponse }> {
    const { row, documents } = (await this.reads.findWithDocuments(id)) ?? unknownSession();
    const notes = {
      sessionId: row.session_id,
      notesRevision: row.notes_revision,
      documents: documents.map((document) => ({
        documentId: document.id,
        sessionDocumentId: document.sessionDocumentId,
        noteTemplateId: document.noteTemplateId,
        revision: document.revision,
        fetchedAt: document.fetchedAt,
        supersededAt: document.supersededAt,
        notes: this.seal.notes.open(revisionKey(document.id, document.revision), document.notes),
      })),
    };
    return { session: sessionView(row, this.seal), notes };
  }

  /** @throws {Problem} 404 `unknown-session`, `unknown-document` */
  async revisions(id: string, documentId: string): Promise<RevisionsResponse> {
    const { id: session } = await this.find(id);
    const document = await this.reads.revisions(session, documentId);
    if (!document)
      throw new Problem(404, 'unknown-document', 'This session has no such document; list its notes first.');
    return {
      documentId: document.id,
      noteTemplateId: document.noteTemplateId,
      items: document.revisions.map(({ revision, sessionDocumentId, fetchedAt, notes }) => ({
        revision,
        sessionDocumentId,
        fetchedAt,
        notes: this.seal.notes.open(revisionKey(document.id, revision), notes),
      })),
    };
  }

  /** @throws {Problem} 404 `unknown-session`, `no-transcript` */
  async transcript(id: string): Promise<unknown> {
    const { transcript } = await this.open(id, ['transcript']);
    if (transcript === null) {
      throw new Problem(404, 'no-transcript', 'No transcript of this session is known; a text session has none.');
    }
    return transcript;
  }

  /** @throws {Problem} 404 `unknown-session` */
  async insights(id: string): Promise<InsightsView> {
    const { topics, namedEntities, analytics } = await this.open(id, ['topics', 'namedEntities', 'analytics']);
    return { topics, namedEntities, analyticsSummary: analytics };
  }

  /**
   * An address at which the recording can be played for a while; it is asked for now, and never stored.
   *
   * @throws {Problem} 404 `unknown-session`, `no-recording`, `not-on-platform`; 501 `not-configured`; 503; 504
   */
  async recordingUrl(id: string, signal: AbortSignal): Promise<string> {
    const { session_id: sessionId } = await this.find(id);
    const session =
      sessionId === null
        ? undefined
        : await this.platform.getSession(sessionId, { signal }).catch((error: unknown) => {
            throw platformProblem(error, 'this session');
          });
    if (session?.recordingUrl) return session.recordingUrl;
    throw new Problem(404, 'no-recording', 'The platform has no recording of this session.');
  }

  /** The session's row. @throws {Problem} 404 `unknown-session` */
  async find(id: string, tx?: PoolClient): Promise<ReadSession> {
    return (await this.reads.find(id, tx)) ?? unknownSession();
  }

  private async open<Part extends InsightPart>(id: string, parts: Part[]): Promise<Record<Part, unknown>> {
    const { id: session } = await this.find(id);
    const sealed = await this.reads.insights(session);
    const opened = parts.map((part) => [part, this.seal.insights[part].open(session, sealed?.[part] ?? null)]);
    return Object.fromEntries(opened) as Record<Part, unknown>;
  }
}

function unknownSession(): never {
  throw new Problem(404, 'unknown-session', 'No session with this id is known here.');
}
