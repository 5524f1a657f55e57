import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import { PrismaService } from '../../database/prisma.service.js';
import type { DocumentRevision, SessionDocument, SessionInsights } from '../../generated/prisma/client.js';
import { UUID } from '../../http/request/uuid-param.js';
import type { ReadSession } from './session-view.js';

/** What a list is narrowed to; external ids are the EHR's. */
export interface SessionFilter {
  provider?: string | undefined;
  client?: string | undefined;
  appointment?: string | undefined;
  state?: string | undefined;
  updatedSince?: Date | undefined;
}

/** A filter whose people are given by their users of the platform. */
interface UserFilter extends Omit<SessionFilter, 'provider' | 'client'> {
  providerUsers?: string[];
  clientUsers?: string[];
}

/** Where a page of the list ended. */
export type SessionCursor = readonly [updatedAt: string, id: string];

/** A current or superseded document with its newest notes, sealed. */
type ReadDocument = SessionDocument & Pick<DocumentRevision, 'fetchedAt' | 'notes'>;

type Reader = Pick<PoolClient, 'query'>;

/** The external id of the person that a user of the platform is, or was until the EHR had it deleted; else null. */
const nameOf = (user: string): string => `coalesce(
    (SELECT external_id FROM people WHERE platform_user_id = ${user}),
    (SELECT p.external_id FROM people p WHERE p.id = (
      SELECT person_id FROM platform_users WHERE platform_user_id = ${user})))`;

/** What is shown of sessions `s`; each person is looked up by itself, however few or many the planner expects. */
const SHOWN = `s.*, ${nameOf('s.provider_user_id')} AS provider,
  ARRAY(SELECT name FROM (SELECT ${nameOf('taking_part.user_id')} AS name, place
      FROM unnest(s.client_user_ids) WITH ORDINALITY AS taking_part (user_id, place)) AS named
    WHERE name IS NOT NULL ORDER BY place) AS clients`;

/** All users of the platform that a person of the EHR is or was; a person who was deleted and came back has several. */
const USERS_OF = `
  WITH person AS (SELECT id, platform_user_id FROM people WHERE kind = $1::person_kind AND external_id = $2)
  SELECT platform_user_id AS "user" FROM person WHERE platform_user_id IS NOT NULL
  UNION ALL SELECT platform_user_id FROM platform_users WHERE person_id = (SELECT id FROM person)`;

/** Sessions and their contents as the EHR reads them. */
@Injectable()
export class SessionReadsRepository {
  constructor(
    private readonly database: Database,
    private readonly prisma: PrismaService,
  ) {}

  /** @param id ours or the platform's */
  async find(id: string, reader: Reader = this.database.pool): Promise<ReadSession | undefined> {
    const { rows } = await reader.query<ReadSession>(
      `SELECT ${SHOWN} FROM sessions s
       WHERE s.id = $1 OR s.session_id = $2 OR s.id = (SELECT session FROM session_aliases WHERE id = $1)
       ORDER BY s.id = $1 DESC NULLS LAST LIMIT 1`,
      [UUID.test(id) ? id : null, id],
    );
    return rows[0];
  }

  /** In the order of their last change, the oldest first, so that a reader who comes back meets only what is new. */
  async list(filter: SessionFilter, limit: number, after: SessionCursor | undefined): Promise<ReadSession[]> {
    const { provider, client, ...rest } = filter;
    const users = {
      ...(provider !== undefined && { providerUsers: await this.usersOf('provider', provider) }),
      ...(client !== undefined && { clientUsers: await this.usersOf('client', client) }),
    };
    const { text, values } = listStatement({ ...rest, ...users }, limit, after);
    const { rows } = await this.database.pool.query<ReadSession>(text, values);
    return rows;
  }

  private async usersOf(kind: 'provider' | 'client', externalId: string): Promise<string[]> {
    const { rows } = await this.database.pool.query<{ user: string }>(USERS_OF, [kind, externalId]);
    return [...new Set(rows.map(({ user }) => user))];
  }

  /**
   * A session with all its documents as they stood at one moment: notes may be regenerated while they are read.
   *
   * @param id ours or the platform's
   */
  async findWithDocuments(id: string): Promise<{ row: ReadSession; documents: ReadDocument[] } | undefined> {
    return this.database.transaction(async (tx) => {
      await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY');
      const row = await this.find(id, tx);
      return row && { row, documents: await this.documents(row.id, tx) };
    });
  }

  private async documents(ourSessionId: string, tx: PoolClient): Promise<ReadDocument[]> {
    const prisma = await this.prisma.in(tx);
    const documents = await prisma.sessionDocument.findMany({
      where: { ourSessionId },
      orderBy: [{ supersededAt: { sort: 'desc', nulls: 'first' } }, { position: 'asc' }, { id: 'asc' }],
    });
    const revisions = await prisma.documentRevision.findMany({
      where: { OR: documents.map(({ id, revision }) => ({ documentId: id, revision })) },
    });
    const newest = new Map(revisions.map(({ documentId, fetchedAt, notes }) => [documentId, { fetchedAt, notes }]));
    return documents.flatMap((document) => {
      const notes = newest.get(document.id);
      return notes ? [{ ...document, ...notes }] : [];
    });
  }

  /**
   * A document with every version of it, the newest first, or null when the session has none of this id.
   *
   * @param ourSessionId ours
   * @param documentId ours, or any that the platform gave it
   */
  async revisions(
    ourSessionId: string,
    documentId: string,
  ): Promise<(SessionDocument & { revisions: DocumentRevision[] }) | null> {
    // The versions are searched by the documents' ids: Prisma would write a search by the session as one of all versions.
    const documents = await this.prisma.sessionDocument.findMany({ where: { ourSessionId } });
    const seen = await this.prisma.documentRevision.findFirst({
      where: { documentId: { in: documents.map(({ id }) => id) }, sessionDocumentId: documentId },
    });
    const document = documents.find(({ id }) => id === documentId || id === seen?.documentId);
    if (!document) return null;
    const where = { documentId: document.id };
    return {
      ...document,
      revisions: await this.prisma.documentRevision.findMany({ where, orderBy: { revision: 'desc' } }),
    };
  }

  /** The sealed insights of a session, or null when none were fetched. */
  async insights(ourSessionId: string): Promise<SessionInsights | null> {
    return this.prisma.sessionInsights.findUnique({ where: { ourSessionId } });
  }
}

/** Each set of filters has a statement of its own, so that each is planned by the index that fits it. */
function listStatement(
  { providerUsers, clientUsers, appointment, state, updatedSince }: UserFilter,
  limit: number,
  after: SessionCursor | undefined,
): { text: string; values: unknown[] } {
  const values: unknown[] = [];
  const parameter = (value: unknown) => `$${values.push(value)}`;
  // What is true of few sessions is found first: never by reading all of them in the order of the pages.
  const few: string[] = [];
  const conditions = ['true'];
  if (clientUsers !== undefined) few.push(`client_user_ids && ${parameter(clientUsers)}::text[]`);
  if (appointment !== undefined) few.push(`partner_appointment_id = ${parameter(appointment)}`);
  if (providerUsers?.length === 1) conditions.push(`provider_user_id = ${parameter(providerUsers[0])}`);
  else if (providerUsers) conditions.push(`provider_user_id = ANY(${parameter(providerUsers)}::text[])`);
  if (state !== undefined) conditions.push(`state = ${parameter(state)}`);
  if (updatedSince !== undefined) conditions.push(`updated_at >= ${parameter(updatedSince)}`);
  if (after) conditions.push(`(updated_at, id) > (${parameter(after[0])}::timestamptz, ${parameter(after[1])}::uuid)`);
  const found = few.length === 0 ? '' : `found AS MATERIALIZED (SELECT * FROM sessions WHERE ${few.join(' AND ')}),`;
  const from = few.length === 0 ? 'sessions' : 'found';
  const text = `
    WITH ${found}
    s AS (SELECT * FROM ${from} WHERE ${conditions.join(' AND ')} ORDER BY updated_at, id LIMIT ${parameter(limit)})
    SELECT ${SHOWN} FROM s ORDER BY s.updated_at, s.id`;
  return { text, values };
}
