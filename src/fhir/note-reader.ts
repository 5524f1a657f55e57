import { Injectable } from '@nestjs/common';
import type { DocumentReference } from 'fhir/r4';
import { AnswerVisibility } from '../access/guard/visible-to.js';
import type { Principal } from '../access/identity/scopes.js';
import { Audit } from '../audit/audit.js';
import { PrismaService } from '../database/prisma.service.js';
import { Problem } from '../http/problem/problem.js';
import { decodeCursor, encodeCursor, type Page } from '../http/request/page.js';
import { UUID } from '../http/request/uuid-param.js';
import { SessionResponse } from '../sessions/model/session-view.js';
import { documentReference } from '../sessions/read/notes-fhir.js';
import { SessionReader } from '../sessions/read/session-reader.js';
import { type DocumentFilter, type DocumentKey, findDocuments } from './documents.repository.js';
import type { NoteSearch } from './search/note-search.js';
import { ANY_TIME } from './search/time-range.js';

/** The end of a page, and the platform users of the client who is searched for, so that a link names nobody. */
type Cursor = readonly [...DocumentKey, clientUsers: string];

type Note = ReturnType<typeof documentReference>;

/** Reads documents of all sessions as DocumentReferences, as far as their caller may see them. */
@Injectable()
export class NoteReader {
  constructor(
    private readonly prisma: PrismaService,
    private readonly sessions: SessionReader,
    private readonly visibility: AnswerVisibility,
    private readonly audit: Audit,
  ) {}

  /** One document. @throws {Problem} 404 `unknown-document` */
  async read(id: string, caller: Principal): Promise<Note> {
    const filter = { document: id, date: ANY_TIME, lastUpdated: ANY_TIME };
    const [note] = UUID.test(id) ? (await this.page(filter, 1, caller)).notes : [];
    if (note) return note;
    throw new Problem('unknown-document', 'No note has this id.');
  }

  /**
   * A page of documents.
   *
   * @throws {Problem} 400 `bad-cursor`; 403 `forbidden-scope`; 409 `renamed` or `merged` if it names a former id
   */
  async search({ client, cursor, count, ...search }: NoteSearch, caller: Principal): Promise<Page<DocumentReference>> {
    const after = decodeCursor<Cursor>(cursor, 'time', 'uuid', 'uuid', 'string');
    const known = after?.[3] ? after[3].split(' ') : undefined;
    if ((client !== undefined || known) && !caller.scopes.has('sessions:read')) {
      const detail = 'A search by patient needs a key with the scope sessions:read, too.';
      throw new Problem('forbidden-scope', detail, { extensions: { scope: 'sessions:read' } });
    }
    this.audit.about('client', client);
    if (search.matchesNone) return { items: [], nextCursor: null };
    const clientUsers = client === undefined ? known : await this.sessions.usersOf('client', client);
    const { notes, end } = await this.page({ ...search, clientUsers, after }, count, caller);
    return { items: notes, nextCursor: end && encodeCursor([...end, clientUsers?.join(' ') ?? '']) };
  }

  /** Reads documents and their sessions in one snapshot. The audit entry of the request names each session. */
  private async page(filter: DocumentFilter, count: number, caller: Principal) {
    const { documents, end, sessions } = await this.prisma.transaction(async (tx) => {
      await tx.$executeRaw`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY`;
      const found = await findDocuments(tx, filter, count);
      const ids = [...new Set(found.documents.map(({ session }) => session))];
      // For no ids, the planner may read a whole index.
      return { ...found, sessions: ids.length > 0 ? await this.sessions.read(ids, tx) : undefined };
    });
    const notes = documents.flatMap(({ session: id, ...document }): Note[] => {
      const row = sessions?.get(id);
      if (!row) return [];
      this.sessions.auditOf(row);
      const session = this.visibility.ofModel(SessionResponse, caller, this.sessions.view(row));
      return [documentReference(session, this.sessions.openDocument(id, document))];
    });
    return { notes, end };
  }
}
