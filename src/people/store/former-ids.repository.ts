import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Audit } from '../../audit/audit.js';
import { AuditRepository } from '../../audit/audit.repository.js';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import { SubjectIds } from '../../feed/subject-ids.js';
import { Problem } from '../../http/problem/problem.js';
import type { PersonKind } from '../rules/person.js';
import type { PersonKey } from '../rules/profile.js';
import type { PersonRow } from './person-row.js';

/** A person by any of its ids, with what leads to its data. */
export interface Identity {
  /** The internal id; null if no person has or had the external id. */
  id: string | null;
  /** All current and former ids. */
  externalIds: string[];
  /** All current and former platform users. Someone who was deleted and returned, or was merged, has several. */
  platformUserIds: string[];
  /** Fingerprints of emails. */
  emails: Uint8Array[];
}

/** Finds the person that a current or former id means. An unknown id has only itself as an id. */
export async function identityOf(db: Pick<Tx, '$queryRaw'>, { kind, externalId }: PersonKey): Promise<Identity> {
  const [identity] = await db.$queryRaw<[Identity]>`
    WITH person AS MATERIALIZED (
      SELECT id, external_id, platform_user_id, email_fingerprint, unsettled_email FROM people WHERE id = coalesce(
        (SELECT person_id FROM former_ids WHERE kind = ${kind}::person_kind AND external_id = ${externalId}),
        (SELECT id FROM people WHERE kind = ${kind}::person_kind AND external_id = ${externalId} AND wanted_version > 0)))
    SELECT (SELECT id FROM person),
      ARRAY(SELECT ${externalId} UNION SELECT external_id FROM person
        UNION SELECT external_id FROM former_ids WHERE person_id IN (SELECT id FROM person)) AS "externalIds",
      ARRAY(SELECT platform_user_id FROM person WHERE platform_user_id IS NOT NULL
        UNION SELECT platform_user_id FROM platform_users WHERE person_id IN (SELECT id FROM person)) AS "platformUserIds",
      ARRAY(SELECT email_fingerprint FROM person WHERE email_fingerprint IS NOT NULL
        UNION SELECT unsettled_email FROM person WHERE unsettled_email IS NOT NULL
        UNION SELECT fingerprint FROM email_claims WHERE person_id IN (SELECT id FROM person)) AS emails`;
  return identity;
}

/** The person that a former id means now. */
export interface Successor {
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

  onModuleInit(): void {
    for (const kind of ['provider', 'client'] as const) {
      const find = async (db: Tx, externalId: string) => (await identityOf(db, { kind, externalId })).externalIds;
      this.entries.registerIds(kind, async (sql, id) => find(await this.prisma.in(sql), id));
      this.subjectIds.register(`${kind}s`, (id) => find(this.prisma, id));
    }
  }

  /** All platform users that a person has or had. */
  async users(key: PersonKey, tx?: Tx): Promise<string[]> {
    return (await identityOf(tx ?? this.prisma, key)).platformUserIds;
  }

  /** The successors of those ids that are former ones. */
  async find(kind: PersonKind, ids: readonly string[], tx?: Tx): Promise<Map<string, Successor>> {
    if (ids.length === 0) return new Map();
    const rows = await (tx ?? this.prisma).formerId.findMany({
      where: { kind, externalId: { in: [...ids] } },
      select: { externalId: true, merged: true, person: { select: { id: true, externalId: true } } },
    });
    return new Map(
      rows.map(({ externalId, merged, person: { id, externalId: current } }) => {
        return [externalId, { code: merged ? ('merged' as const) : ('renamed' as const), id, current }];
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

  /** Gives a locked person another id. */
  async rename(tx: Tx, { id, kind, externalId }: PersonRow, newId: string): Promise<void> {
    await tx.person.update({ where: { id }, data: { externalId: newId, newByImport: null } });
    await tx.formerId.create({ data: { kind, externalId, personId: id } });
  }

  /** Lets all ids of a locked client mean another one, which a merge keeps. */
  async merge(tx: Tx, { id, kind, externalId }: PersonRow, personId: string): Promise<void> {
    await tx.formerId.updateMany({ where: { personId: id }, data: { personId, merged: true } });
    await tx.formerId.create({ data: { kind, externalId, personId, merged: true } });
  }
}
