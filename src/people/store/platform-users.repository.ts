import { Injectable } from '@nestjs/common';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import type { Prisma } from '../../generated/prisma/client.js';
import type { UserRole } from '../../platform/contract/wire-types.js';
import type { PersonKind } from '../rules/person.js';
import type { PersonRow } from './person-row.js';

/** A platform user without a mapped person of the EHR. */
export interface UnknownPlatformUser {
  platformUserId: string;
  role: string;
  externalUserId: string | null;
}

/** The role of each kind of people on the platform (spec, User events). An OrgAdmin is not a person of the EHR. */
export const ROLES: Record<PersonKind, UserRole> = { client: 'Client', provider: 'HealthcareProvider' };

/** The kind of people with a role; undefined for other roles. */
export function kindOfRole(role: string): PersonKind | undefined {
  return (['client', 'provider'] as const).find((kind) => ROLES[kind] === role);
}

/** Replaces the role of a user that was deleted through this service. */
const DELETED = 'deleted';

/** A user that is kept for a merged client. */
const KEPT = { personId: { not: null }, role: { not: DELETED } };

/** Platform users named by events and calls that the EHR does not know, or that were deleted here. */
@Injectable()
export class PlatformUsersRepository {
  constructor(private readonly prisma: PrismaService) {}

  /** True if a user was deleted here, or is kept for a merged client, so that no event may link it. */
  async isSettled(tx: Tx, platformUserId: string): Promise<boolean> {
    const user = await tx.platformUser.findUnique({ where: { platformUserId } });
    return user?.role === DELETED || user?.personId != null;
  }

  /** True if a user is kept for a merged client. */
  async isKept(tx: Tx, platformUserId: string): Promise<boolean> {
    return (await tx.platformUser.findFirst({ where: { platformUserId, ...KEPT } })) !== null;
  }

  /** Keeps the user of a merged client, which still owns its sessions. */
  keep(tx: Tx, platformUserId: string, { id: personId, externalId }: PersonRow): Promise<void> {
    return this.put(tx, platformUserId, { role: ROLES.client, personId, externalUserId: externalId });
  }

  /** Ends the keeping of a merged client's user. @returns the user; undefined if none is kept */
  async release(tx: Tx, personId: string): Promise<string | undefined> {
    const kept = await tx.platformUser.findFirst({ where: { ...KEPT, personId } });
    if (kept) await this.releaseUser(tx, kept.platformUserId);
    return kept?.platformUserId;
  }

  async releaseUser(tx: Tx, platformUserId: string): Promise<void> {
    await tx.platformUser.deleteMany({ where: { platformUserId, ...KEPT } });
  }

  /**
   * `heldByAnother`: another person is mapped to the user, or it is kept for a merged client. `role`: if the user's
   * role fits the person's kind; null if unknown.
   */
  async fit(tx: Tx, platformUserId: string, { id, kind }: { id: string; kind: PersonKind }) {
    const text = `SELECT p.id AS holder, u.role, u.person_id AS owner FROM (SELECT $1::text AS id) AS platform_user
      LEFT JOIN people p ON p.platform_user_id = platform_user.id LEFT JOIN platform_users u ON u.platform_user_id = platform_user.id`;
    type Known = Record<'holder' | 'role' | 'owner', string | null>;
    const [known] = await tx.$queryRawUnsafe<Known[]>(text, platformUserId);
    const { holder = null, role = null, owner = null } = known ?? {};
    const isKept = owner !== null && role !== DELETED;
    const fits = kindOfRole(role ?? '') === kind ? ('fits' as const) : ('differs' as const);
    return {
      heldByAnother: isKept || (holder !== null && holder !== id),
      role: role === null || role === DELETED ? null : fits,
    };
  }

  /** Forgets that other users have the external id of a person; they stay listed as unknown to the EHR. */
  async forgetSecond(tx: Tx, { id, externalId, kind }: PersonRow): Promise<void> {
    const former = await tx.formerId.findMany({ where: { personId: id, intoId: null }, select: { externalId: true } });
    const ids = [externalId, ...former.map((one) => one.externalId)];
    const where = { externalUserId: { in: ids }, role: ROLES[kind] };
    await tx.platformUser.updateMany({ where, data: { externalUserId: null } });
  }

  /**
   * The number of users that are a second one of a mapped person, among the first 1,000 with an external id. The order
   * and the subqueries make the planner use indexes, regardless of its statistics.
   */
  async countSecond(): Promise<number> {
    const kind = `CASE u.role WHEN '${ROLES.client}' THEN 'client' ELSE 'provider' END::person_kind`;
    const rows = await this.prisma.$queryRawUnsafe<{ count: number }[]>(
      `SELECT count(*)::int AS count FROM (
         SELECT platform_user_id, external_user_id, role FROM platform_users
         WHERE external_user_id IS NOT NULL AND person_id IS NULL AND role IN ('${ROLES.client}', '${ROLES.provider}')
         ORDER BY external_user_id LIMIT 1000) AS u
       WHERE (SELECT platform_user_id FROM people WHERE kind = ${kind} AND external_id = u.external_user_id) <> u.platform_user_id
         AND (SELECT id FROM people WHERE platform_user_id = u.platform_user_id) IS NULL`,
    );
    return rows[0]?.count ?? 0;
  }

  /** Describes a user as far as it is known. */
  async describe(platformUserId: string, tx?: Tx) {
    const prisma = tx ?? this.prisma;
    const select = { kind: true, externalId: true } as const;
    const holder = await prisma.person.findUnique({
      where: { platformUserId },
      select: { ...select, origin: true },
    });
    const seen = await prisma.platformUser.findUnique({ where: { platformUserId }, include: { person: { select } } });
    const deleted = seen?.role === DELETED;
    const seenRole = seen && !deleted ? seen.role : null;
    return {
      platformUserId,
      role: holder && holder.origin !== 'linked' ? ROLES[holder.kind] : seenRole,
      externalUserId: seen?.externalUserId ?? null,
      seenAt: seen?.seenAt ?? null,
      deleted,
      person: holder && { kind: holder.kind, externalId: holder.externalId },
      formerPerson: seen?.person ?? null,
    };
  }

  /** Records a deleted user with its person, because sessions still name it. */
  saveDeleted(tx: Tx, platformUserId: string, personId: string): Promise<void> {
    return this.put(tx, platformUserId, { role: DELETED, personId });
  }

  /** Records the user of a person whose user the platform has lost. */
  async saveLost(tx: Tx, { id, platformUserId }: PersonRow): Promise<void> {
    if (platformUserId !== null) await this.saveDeleted(tx, platformUserId, id);
  }

  save(tx: Tx, { platformUserId, role, externalUserId }: UnknownPlatformUser): Promise<void> {
    return this.put(tx, platformUserId, { role, ...(externalUserId !== null && { externalUserId }) });
  }

  private async put(
    tx: Tx,
    platformUserId: string,
    user: Omit<Prisma.PlatformUserUncheckedCreateInput, 'platformUserId'>,
  ) {
    await tx.platformUser.upsert({ where: { platformUserId }, create: { platformUserId, ...user }, update: user });
  }

  /** One page of the users without a mapping, by id. */
  async list(limit: number, after: string): Promise<(UnknownPlatformUser & { seenAt: Date })[]> {
    return this.prisma.$queryRawUnsafe<(UnknownPlatformUser & { seenAt: Date })[]>(
      `SELECT platform_user_id AS "platformUserId", role, external_user_id AS "externalUserId", seen_at AS "seenAt"
       FROM platform_users u WHERE platform_user_id > $2 AND role <> '${DELETED}' AND person_id IS NULL
         AND NOT EXISTS (SELECT 1 FROM people p WHERE p.platform_user_id = u.platform_user_id)
       ORDER BY platform_user_id LIMIT $1`,
      ...[limit, after],
    );
  }
}
