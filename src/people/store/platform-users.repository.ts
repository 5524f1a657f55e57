import { Injectable } from '@nestjs/common';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import type { Prisma } from '../../generated/prisma/client.js';
import type { UserRole } from '../../platform/contract/wire-types.js';
import type { OtherUser, PersonKind, RoleFit } from '../rules/person.js';
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

/** Whether the role that the platform reported for a user fits a kind of people. */
export const roleFit = (kind: PersonKind, role: string | null): RoleFit =>
  role === null ? null : role === ROLES[kind] ? 'fits' : 'differs';

/** Platform users besides those of the rows in `people`: further users of a person, deleted ones, and unknown ones. */
@Injectable()
export class PlatformUsersRepository {
  constructor(private readonly prisma: PrismaService) {}

  /** True if a user was deleted here, so that no event may link it. */
  async isDeleted(tx: Tx, platformUserId: string): Promise<boolean> {
    return (await tx.platformUser.findFirst({ where: { platformUserId, deleted: true } })) !== null;
  }

  /**
   * What is known about a user that an answer names for a person. `heldByAnother`: it belongs to another person. `role`: if
   * the user's role fits the person's kind; null if unknown.
   */
  async fit(tx: Tx, platformUserId: string, { id, kind }: { id: string; kind: PersonKind }) {
    const holder = await tx.person.findUnique({ where: { platformUserId }, select: { id: true } });
    const user = await tx.platformUser.findFirst({ where: { platformUserId, deleted: false } });
    const owners = [holder?.id, user?.personId].filter((owner) => owner != null);
    return { heldByAnother: owners.some((owner) => owner !== id), role: roleFit(kind, user?.role ?? null) };
  }

  /** Stores a change of the other users of a person. */
  async saveOthers(tx: Tx, personId: string, before: readonly OtherUser[], after: readonly OtherUser[]): Promise<void> {
    const left = before.filter(({ id }) => !after.some((other) => other.id === id));
    const where = { platformUserId: { in: left.map(({ id }) => id) } };
    if (left.length > 0) await tx.platformUser.updateMany({ where, data: { personId: null, origin: null } });
    for (const { id, origin } of after)
      if (!before.some((other) => other.id === id)) await this.put(tx, id, { personId, origin });
  }

  /** Describes a user as far as it is known. */
  async describe(platformUserId: string, tx?: Tx) {
    const prisma = tx ?? this.prisma;
    const select = { kind: true, externalId: true } as const;
    const mapped = await prisma.person.findUnique({ where: { platformUserId }, select: { ...select, origin: true } });
    const seen = await prisma.platformUser.findUnique({ where: { platformUserId }, include: { person: { select } } });
    const holder = mapped ?? (seen?.person && !seen.deleted ? { ...seen.person, origin: seen.origin } : null);
    return {
      platformUserId,
      role: holder && holder.origin !== 'linked' ? ROLES[holder.kind] : (seen?.role ?? null),
      externalUserId: seen?.externalUserId ?? null,
      seenAt: seen?.seenAt ?? null,
      deleted: seen?.deleted ?? false,
      person: holder && { kind: holder.kind, externalId: holder.externalId },
      formerPerson: seen?.deleted ? seen.person : null,
    };
  }

  /** Records the user that a person loses or has lost, as deleted, because sessions still name it. */
  async saveLost(tx: Tx, { id, platformUserId }: PersonRow): Promise<void> {
    if (platformUserId !== null) await this.put(tx, platformUserId, { deleted: true, personId: id, origin: null });
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
       FROM platform_users u WHERE platform_user_id > $2 AND role IS NOT NULL AND NOT deleted AND person_id IS NULL
         AND NOT EXISTS (SELECT 1 FROM people p WHERE p.platform_user_id = u.platform_user_id)
       ORDER BY platform_user_id LIMIT $1`,
      ...[limit, after],
    );
  }
}
