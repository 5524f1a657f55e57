import { Injectable, type OnModuleInit } from '@nestjs/common';
import type { Pool, PoolClient } from 'pg';
import { Audit } from '../../audit/audit.js';
import { AuditRepository } from '../../audit/audit.repository.js';
import { Database } from '../../database/database.js';
import { SubjectIds } from '../../feed/subject-ids.js';
import { Problem } from '../../http/problem/problem.js';
import type { PersonKind } from '../model/person.js';
import type { FormerId, Identities, NamedPerson } from '../model/rename-rule.js';

/** SQL of the person that represents person `p`: itself, or the one that it was merged into. */
export const REPRESENTATIVE = 'coalesce(p.merged_into, p.id)';

/** A person with the clients that were merged into it. */
export interface Family {
  people: string[];
  /** Every id that any of them has or had. */
  externalIds: string[];
}

const FAMILY = `
  WITH named AS (
    SELECT person_id AS id FROM former_ids WHERE kind = $1::person_kind AND external_id = $2
    UNION SELECT id FROM people WHERE kind = $1::person_kind AND external_id = $2),
  heads AS MATERIALIZED (
    SELECT ${REPRESENTATIVE} AS id FROM people p WHERE p.id = ANY (ARRAY(SELECT id FROM named))),
  family AS (
    SELECT id, external_id FROM people WHERE id = ANY (ARRAY(SELECT id FROM heads))
    UNION SELECT id, external_id FROM people WHERE merged_into = ANY (ARRAY(SELECT id FROM heads)))
  SELECT coalesce((SELECT array_agg(id::text) FROM family), '{}') AS people, ARRAY(
    SELECT $2 UNION SELECT external_id FROM family
    UNION SELECT external_id FROM former_ids WHERE person_id IN (SELECT id FROM family)) AS "externalIds"`;

/** Finds the family of a current or former id. An unknown id has no people, and only itself as an id. */
export async function familyOf(sql: Pick<Pool, 'query'>, kind: string, externalId: string): Promise<Family> {
  const { rows } = await sql.query<Family>(FAMILY, [kind, externalId]);
  return rows[0] ?? { people: [], externalIds: [externalId] };
}

/** The person that a former id means now. */
export interface Successor extends FormerId {
  code: 'renamed' | 'merged';
  id: string;
  /** Its current external id. */
  current: string;
}

const DETAILS = {
  renamed: 'The person with this id was renamed. Use its new id, which `externalId` names.',
  merged: 'The client with this id was merged into another one. Use the id of that one, which `externalId` names.',
};

/** The answer to a request that names a former id. */
function movedProblem(kind: PersonKind, { code, current }: Successor, status: 301 | 409, pointer?: string): Problem {
  const location = `/v1/${kind}s/${encodeURIComponent(current)}`;
  return new Problem(code, DETAILS[code], {
    status,
    extensions: { externalId: current },
    ...(status === 301 && { headers: { location } }),
    ...(pointer !== undefined && { pointer }),
  });
}

/** The former ids of people. An id in it is never used for another person. */
@Injectable()
export class FormerIdsRepository implements OnModuleInit {
  constructor(
    private readonly database: Database,
    private readonly audit: Audit,
    private readonly entries: AuditRepository,
    private readonly subjectIds: SubjectIds,
  ) {}

  onModuleInit(): void {
    for (const kind of ['provider', 'client'] as const) {
      const find = async (sql: Pick<Pool, 'query'>, id: string) => (await familyOf(sql, kind, id)).externalIds;
      this.entries.registerIds(kind, find);
      this.subjectIds.register(`${kind}s`, (id) => find(this.database.pool, id));
    }
  }

  /** The successors of those ids that are former ones. */
  async find(kind: PersonKind, ids: readonly string[], tx?: PoolClient): Promise<Map<string, Successor>> {
    const { rows } = await (tx ?? this.database.pool).query<Successor>(
      `SELECT f.external_id AS "externalId", f.person_id AS "personId", f.into_id AS "intoId", f.user_id AS "userId",
         CASE WHEN p.merged_into IS NULL THEN 'renamed' ELSE 'merged' END AS code, s.id, s.external_id AS current
       FROM former_ids f JOIN people p ON p.id = f.person_id JOIN people s ON s.id = ${REPRESENTATIVE}
       WHERE f.kind = $1 AND f.external_id = ANY ($2::text[])`,
      [kind, ids],
    );
    return new Map(rows.map((row) => [row.externalId, row]));
  }

  /**
   * Rejects a request that names former ids.
   *
   * @param pointer of an id by its position, if it is part of the body
   * @throws {Problem} 409 `renamed` or `merged` with the id to use
   */
  async refuse(
    kind: PersonKind,
    ids: readonly string[],
    tx?: PoolClient,
    pointer?: (position: number) => string,
  ): Promise<void> {
    const successors = await this.find(kind, ids, tx);
    for (const [position, id] of ids.entries()) {
      const successor = successors.get(id);
      if (!successor) continue;
      this.audit.about(kind, id, successor.current);
      throw movedProblem(kind, successor, 409, pointer?.(position));
    }
  }

  /** Redirects a request for one person. @throws {Problem} 301 `renamed` or `merged` with the new address */
  async redirect(kind: PersonKind, id: string): Promise<void> {
    const successor = (await this.find(kind, [id])).get(id);
    if (!successor) return;
    this.audit.about(kind, id, successor.current);
    throw movedProblem(kind, successor, 301);
  }

  /** True if an id is or was used. */
  async isUsed(tx: PoolClient, kind: PersonKind, id: string): Promise<boolean> {
    const { rowCount } = await tx.query(
      `SELECT FROM former_ids WHERE kind = $1 AND external_id = $2
       UNION ALL SELECT FROM people WHERE kind = $1 AND external_id = $2 LIMIT 1`,
      [kind, id],
    );
    return rowCount !== 0;
  }

  /** The ids of a family, whose head must be locked. */
  async identities(tx: PoolClient, { people }: Pick<Family, 'people'>): Promise<Identities> {
    const named = await tx.query<NamedPerson>(
      `SELECT id, external_id AS "externalId", merged_into AS "mergedInto" FROM people WHERE id = ANY ($1::uuid[])`,
      [people],
    );
    const former = await tx.query<FormerId>(
      `SELECT external_id AS "externalId", person_id AS "personId", into_id AS "intoId", user_id AS "userId"
       FROM former_ids WHERE person_id = ANY ($1::uuid[])`,
      [people],
    );
    return { people: named.rows, formerIds: former.rows };
  }

  /** Stores the changed ids of a family. A former id never changes; it is added or removed. */
  async save(tx: PoolClient, kind: PersonKind, { people, formerIds }: Identities): Promise<void> {
    const ids = people.map(({ id }) => id);
    await tx.query(
      `UPDATE people p SET external_id = n.external_id, merged_into = n.merged_into
       FROM unnest($1::uuid[], $2::text[], $3::uuid[]) AS n(id, external_id, merged_into) WHERE p.id = n.id`,
      [ids, people.map(({ externalId }) => externalId), people.map(({ mergedInto }) => mergedInto)],
    );
    const kept = formerIds.map(({ externalId }) => externalId);
    await tx.query('DELETE FROM former_ids WHERE person_id = ANY ($1::uuid[]) AND NOT external_id = ANY ($2::text[])', [
      ids,
      kept,
    ]);
    await tx.query(
      `INSERT INTO former_ids (kind, external_id, person_id, into_id, user_id)
       SELECT $1, n.* FROM unnest($2::text[], $3::uuid[], $4::uuid[], $5::text[]) AS n
       ON CONFLICT (kind, external_id) DO NOTHING`,
      [
        kind,
        kept,
        formerIds.map(({ personId }) => personId),
        formerIds.map(({ intoId }) => intoId),
        formerIds.map(({ userId }) => userId),
      ],
    );
  }
}
