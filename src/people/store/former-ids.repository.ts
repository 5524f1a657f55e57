import { Injectable, type OnModuleInit } from '@nestjs/common';
import type { Pool } from 'pg';
import { Audit } from '../../audit/audit.js';
import { AuditRepository } from '../../audit/audit.repository.js';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import { SubjectIds } from '../../feed/subject-ids.js';
import { Problem } from '../../http/problem/problem.js';
import type { PersonKind } from '../rules/person.js';
import type { PersonKey } from '../rules/profile.js';
import type { FormerId, Identities } from '../rules/rename-rule.js';
import { REPRESENTATIVE, usersOf } from './person-users.js';

/** A person with the clients that were merged into it. */
export interface Family {
  people: string[];
  /** Every id that any of them has or had. */
  externalIds: string[];
}

const FAMILY = `
  WITH named AS (
    SELECT person_id AS id FROM former_ids WHERE kind = $1::person_kind AND external_id = $2
    UNION SELECT id FROM people WHERE kind = $1::person_kind AND external_id = $2 AND wanted_version > 0),
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
    private readonly prisma: PrismaService,
    private readonly audit: Audit,
    private readonly entries: AuditRepository,
    private readonly subjectIds: SubjectIds,
  ) {}

  private get pool(): Pool {
    return this.prisma.pool;
  }

  onModuleInit(): void {
    for (const kind of ['provider', 'client'] as const) {
      const find = async (sql: Pick<Pool, 'query'>, id: string) => (await familyOf(sql, kind, id)).externalIds;
      this.entries.registerIds(kind, find);
      this.subjectIds.register(`${kind}s`, (id) => find(this.pool, id));
    }
  }

  /** The family of a current or former id. */
  family(tx: Tx, kind: PersonKind, externalId: string): Promise<Family> {
    return familyOf(this.prisma.sql(tx), kind, externalId);
  }

  /** All platform users that a person has or had (`usersOf`). */
  users(key: PersonKey, tx?: Tx): Promise<string[]> {
    return usersOf(tx ? this.prisma.sql(tx) : this.pool, key);
  }

  /** The successors of those ids that are former ones. */
  async find(kind: PersonKind, ids: readonly string[], tx?: Tx): Promise<Map<string, Successor>> {
    if (ids.length === 0) return new Map();
    const named = { id: true, externalId: true } as const;
    const person = { select: { ...named, successor: { select: named } } } as const;
    const rows = await (tx ?? this.prisma).formerId.findMany({
      where: { kind, externalId: { in: [...ids] } },
      select: { externalId: true, personId: true, intoId: true, userId: true, person },
    });
    return new Map(
      rows.map(({ person: { successor, ...own }, ...row }) => {
        const { id, externalId: current } = successor ?? own;
        return [row.externalId, { ...row, id, current, code: successor ? ('merged' as const) : ('renamed' as const) }];
      }),
    );
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
    tx?: Tx,
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
  async isUsed(tx: Tx, kind: PersonKind, externalId: string): Promise<boolean> {
    const where = { kind, externalId };
    return (await tx.formerId.findFirst({ where })) !== null || (await tx.person.findFirst({ where })) !== null;
  }

  /** The ids of a family, whose head must be locked. */
  async identities(tx: Tx, { people }: Pick<Family, 'people'>): Promise<Identities> {
    const named = { id: true, externalId: true, mergedInto: true } as const;
    const former = { externalId: true, personId: true, intoId: true, userId: true } as const;
    return {
      people: await tx.person.findMany({ where: { id: { in: people } }, select: named }),
      formerIds: await tx.formerId.findMany({ where: { personId: { in: people } }, select: former }),
    };
  }

  /** Stores the changed ids of a family. A former id never changes; it is added or removed. */
  async save(tx: Tx, kind: PersonKind, { people, formerIds }: Identities): Promise<void> {
    for (const { id, externalId, mergedInto } of people) {
      await tx.person.update({ where: { id }, data: { externalId, mergedInto, newByImport: null } });
    }
    const kept = formerIds.map(({ externalId }) => externalId);
    const where = { personId: { in: people.map(({ id }) => id) }, externalId: { notIn: kept } };
    await tx.formerId.deleteMany({ where });
    await tx.formerId.createMany({ data: formerIds.map((former) => ({ kind, ...former })), skipDuplicates: true });
  }
}
