import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import { PrismaService } from '../../database/prisma.service.js';
import type { UserRole } from '../../platform/contract/wire-types.js';
import type { PersonKind } from '../model/person.js';

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

/** Platform users named by events and calls that the EHR does not know, or that were deleted here. */
@Injectable()
export class PlatformUsersRepository {
  constructor(
    private readonly database: Database,
    private readonly prisma: PrismaService,
  ) {}

  /** Whether a user was deleted through this service, so that an old event must not link it again. */
  async isDeleted(tx: PoolClient, platformUserId: string): Promise<boolean> {
    return (await this.roleOf(tx, platformUserId)) === DELETED;
  }

  /** Whether another person is mapped to a user, and whether its role fits the person's kind; null if unknown. */
  async fit(tx: PoolClient, platformUserId: string, { id, kind }: { id: string; kind: PersonKind }) {
    const { person } = await this.prisma.in(tx);
    const holder = await person.findUnique({ where: { platformUserId }, select: { id: true } });
    const role = await this.roleOf(tx, platformUserId);
    const fits = kindOfRole(role ?? '') === kind ? ('fits' as const) : ('differs' as const);
    return {
      heldByAnother: holder !== null && holder.id !== id,
      role: role === undefined || role === DELETED ? null : fits,
    };
  }

  /** What is known of a user. */
  async describe(platformUserId: string, tx?: PoolClient) {
    const prisma = tx ? await this.prisma.in(tx) : this.prisma;
    const select = { kind: true, externalId: true } as const;
    const holder = await prisma.person.findUnique({
      where: { platformUserId },
      select: { ...select, roleKnown: true },
    });
    const seen = await prisma.platformUser.findUnique({ where: { platformUserId }, include: { person: { select } } });
    const deleted = seen?.role === DELETED;
    const seenRole = seen && !deleted ? seen.role : null;
    return {
      platformUserId,
      role: holder?.roleKnown ? ROLES[holder.kind] : seenRole,
      externalUserId: seen?.externalUserId ?? null,
      seenAt: seen?.seenAt ?? null,
      deleted,
      person: holder && { kind: holder.kind, externalId: holder.externalId },
      formerPerson: seen?.person ?? null,
    };
  }

  /** Records a deleted user with its person, because sessions still name it. */
  async saveDeleted(tx: PoolClient, platformUserId: string, personId: string): Promise<void> {
    const { platformUser } = await this.prisma.in(tx);
    const update = { role: DELETED, personId };
    await platformUser.upsert({ where: { platformUserId }, create: { platformUserId, ...update }, update });
  }

  async save(tx: PoolClient, { platformUserId, role, externalUserId }: UnknownPlatformUser): Promise<void> {
    const { platformUser } = await this.prisma.in(tx);
    const update = { role, ...(externalUserId !== null && { externalUserId }) };
    await platformUser.upsert({ where: { platformUserId }, create: { platformUserId, ...update }, update });
  }

  /** One page of the users without a mapping, by id. */
  async list(limit: number, after: string): Promise<(UnknownPlatformUser & { seenAt: Date })[]> {
    const { rows } = await this.database.pool.query<UnknownPlatformUser & { seenAt: Date }>(
      `SELECT platform_user_id AS "platformUserId", role, external_user_id AS "externalUserId", seen_at AS "seenAt"
       FROM platform_users u WHERE platform_user_id > $2 AND role <> '${DELETED}'
         AND NOT EXISTS (SELECT 1 FROM people p WHERE p.platform_user_id = u.platform_user_id)
       ORDER BY platform_user_id LIMIT $1`,
      [limit, after],
    );
    return rows;
  }

  private async roleOf(tx: PoolClient, platformUserId: string): Promise<string | undefined> {
    const { platformUser } = await this.prisma.in(tx);
    return (await platformUser.findUnique({ where: { platformUserId } }))?.role;
  }
}
