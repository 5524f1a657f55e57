import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { AnswerVisibility } from '../access/guard/visible-to.js';
import type { Principal } from '../access/identity/scopes.js';
import { Database } from '../database/database.js';
import { PrismaService } from '../database/prisma.service.js';
import { Problem } from '../http/problem/problem.js';
import type { Page } from '../http/request/page.js';
import { UUID } from '../http/request/uuid-param.js';
import { SessionResponse } from '../sessions/model/session-view.js';
import { documentReference, type FhirElement } from '../sessions/read/notes-fhir.js';
import { SessionReader } from '../sessions/read/session-reader.js';
import { documentPage, type FoundDocument } from './search/document-page.js';
import { ONE_DOCUMENT } from './search/document-statement.js';
import type { NoteSearch } from './search/note-search.js';

/** A note as a resource, with the values for its headers. */
interface ReadNote {
  readonly resource: FhirElement;
  readonly versionId: string;
  readonly updatedAt: Date;
}

/** Reads documents of all sessions as DocumentReferences, as far as their caller may see them. */
@Injectable()
export class NoteReader {
  constructor(
    private readonly database: Database,
    private readonly prisma: PrismaService,
    private readonly sessions: SessionReader,
    private readonly visibility: AnswerVisibility,
  ) {}

  /** One document. @throws {Problem} 404 `unknown-document` */
  async read(id: string, caller: Principal): Promise<ReadNote> {
    const found = async (tx: PoolClient) => (await tx.query<FoundDocument>(ONE_DOCUMENT, [id])).rows;
    const [note] = UUID.test(id) ? await this.resources(found, caller) : [];
    if (note) return note;
    throw new Problem('unknown-document', 'No note has this id.');
  }

  /**
   * A page of documents.
   *
   * @throws {Problem} 400 `bad-cursor`; 403 `forbidden-scope`; 409 `renamed` or `merged` if it names a former id
   */
  async search(search: NoteSearch, caller: Principal): Promise<Page<FhirElement>> {
    requireSessions(search, caller);
    if (search.matchesNone) return { items: [], nextCursor: null };
    const { client, appointment, document, date, lastUpdated } = search;
    const clientUsers = client === undefined ? undefined : await this.sessions.usersOf('client', client);
    const filter = { clientUsers, appointment, document, date, lastUpdated };
    let page: Page<FoundDocument> = { items: [], nextCursor: null };
    const found = async (tx: PoolClient) => {
      page = await documentPage(tx, filter, search);
      return page.items;
    };
    const notes = await this.resources(found, caller);
    return { items: notes.map(({ resource }) => resource), nextCursor: page.nextCursor };
  }

  /** Reads documents and their sessions in one snapshot. The audit entry of the request names each session. */
  private async resources(find: (tx: PoolClient) => Promise<FoundDocument[]>, caller: Principal): Promise<ReadNote[]> {
    const [documents, rows] = await this.database.transaction(async (tx) => {
      await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY');
      const found = await find(tx);
      // For no ids, the planner may read a whole index.
      if (found.length === 0) return [[], undefined] as const;
      const ids = [...new Set(found.map(({ session }) => session))];
      return [found, await this.sessions.read(ids, await this.prisma.in(tx))] as const;
    });
    return documents.flatMap(({ session: id, ...document }) => {
      const row = rows?.get(id);
      if (!row) return [];
      this.sessions.auditOf(row);
      const session = this.visibility.ofModel(SessionResponse, caller, this.sessions.view(row));
      const resource = documentReference(session, this.sessions.openDocument(id, document));
      return [{ resource, versionId: resource.meta.versionId, updatedAt: row.updatedAt }];
    });
  }
}

/** Requires `sessions:read` for a search that would reveal the client or the appointment of a session. */
function requireSessions({ client, appointment }: NoteSearch, { scopes }: Principal): void {
  if (scopes.has('sessions:read') || (client === undefined && appointment === undefined)) return;
  const detail = 'A search by patient or encounter needs a key with the scope sessions:read, too.';
  throw new Problem('forbidden-scope', detail, { extensions: { scope: 'sessions:read' } });
}
