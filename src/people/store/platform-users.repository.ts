import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import type { UserRole } from '../../platform/contract/wire-types.js';
import type { PersonKind, RoleFit } from '../model/person.js';

/** A user of the platform that nobody of the EHR is mapped to. */
export interface UnknownPlatformUser {
  platformUserId: string;
  role: string;
  externalUserId: string | null;
}

/** The kinds of people that the platform's roles mean (spec, User events); OrgAdmin is nobody of the EHR's. */
const KINDS: Partial<Record<UserRole, PersonKind>> = { Client: 'client', HealthcareProvider: 'provider' };

/** The kind of people that a role means. */
export function kindOfRole(role: string): PersonKind | undefined {
  return KINDS[role as UserRole];
}

/** The role that a kind of people has on the platform. */
export const ROLES: Record<PersonKind, UserRole> = { client: 'Client', provider: 'HealthcareProvider' };

/** Stands in place of a role for a user that was deleted through this service. */
const DELETED = 'deleted';

/** Users that the platform told of and the EHR does not know. */
@Injectable()
export class PlatformUsersRepository {
  constructor(private readonly database: Database) {}

  /** Whether a user was deleted through this service: an old event must not link it again. */
  async isDeleted(tx: PoolClient, platformUserId: string): Promise<boolean> {
    return (await this.roleOf(tx, platformUserId)) === DELETED;
  }

  /** Whether the role that the platform told of a user is that of this kind of person. */
  async roleFit(tx: PoolClient, platformUserId: string, kind: PersonKind): Promise<RoleFit> {
    const role = await this.roleOf(tx, platformUserId);
    if (role === undefined || role === DELETED) return null;
    return kindOfRole(role) === kind ? 'fits' : 'differs';
  }

  private async roleOf(tx: PoolClient, platformUserId: string): Promise<string | undefined> {
    const { rows } = await tx.query<{ role: string }>('SELECT role FROM platform_users WHERE platform_user_id = $1', [
      platformUserId,
    ]);
    return rows[0]?.role;
  }

  /** Remembers a user that was deleted, and whose it was: sessions go on naming it. @param person our id */
  async wasDeleted(tx: PoolClient, platformUserId: string, person: string): Promise<void> {
    await tx.query(
      `INSERT INTO platform_users (platform_user_id, role, person_id) VALUES ($1, '${DELETED}', $2)
       ON CONFLICT (platform_user_id) DO UPDATE SET role = excluded.role, person_id = excluded.person_id`,
      [platformUserId, person],
    );
  }

  async keep(tx: PoolClient, user: UnknownPlatformUser): Promise<void> {
    await tx.query(
      `INSERT INTO platform_users (platform_user_id, role, external_user_id) VALUES ($1, $2, $3)
       ON CONFLICT (platform_user_id) DO UPDATE SET role = excluded.role,
         external_user_id = coalesce(excluded.external_user_id, platform_users.external_user_id)`,
      [user.platformUserId, user.role, user.externalUserId],
    );
  }

  /** One page, by id; users that were mapped since are left out. */
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
}
