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

/** The role that a kind of people has on the platform (spec, User events); OrgAdmin is nobody of the EHR's. */
export const ROLES: Record<PersonKind, UserRole> = { client: 'Client', provider: 'HealthcareProvider' };

/** The kind of people that a role means. */
export function kindOfRole(role: string): PersonKind | undefined {
  return (['client', 'provider'] as const).find((kind) => ROLES[kind] === role);
}

/** Stands in place of a role for a user that was deleted through this service. */
const DELETED = 'deleted';

/** Users of the platform that events and calls named: the EHR does not know them, or they were deleted here. */
@Injectable()
export class PlatformUsersRepository {
  constructor(private readonly database: Database) {}

  /** Whether a user was deleted through this service: an old event must not link it again. */
  async isDeleted(tx: PoolClient, platformUserId: string): Promise<boolean> {
    const { rowCount } = await tx.query('SELECT 1 FROM platform_users WHERE platform_user_id = $1 AND role = $2', [
      platformUserId,
      DELETED,
    ]);
    return rowCount !== 0;
  }

  /** How a user fits a person: whether another is mapped to it, and whether its role is one of this kind. */
  async fit(
    tx: PoolClient,
    platformUserId: string,
    { id, kind }: { id: string; kind: PersonKind },
  ): Promise<{ heldByAnother: boolean; role: RoleFit }> {
    const { rows } = await tx.query<{ heldByAnother: boolean; role: string | null }>(
      `SELECT EXISTS (SELECT 1 FROM people WHERE platform_user_id = $1 AND id <> $2) AS "heldByAnother",
         (SELECT role FROM platform_users WHERE platform_user_id = $1 AND role <> '${DELETED}') AS role`,
      [platformUserId, id],
    );
    const { heldByAnother = false, role = null } = rows[0] ?? {};
    return { heldByAnother, role: role === null ? null : kindOfRole(role) === kind ? 'fits' : 'differs' };
  }

  /** Records a user that was deleted, and whose it was: sessions go on naming it. @param person our id */
  async saveDeleted(tx: PoolClient, platformUserId: string, person: string): Promise<void> {
    await tx.query(
      `INSERT INTO platform_users (platform_user_id, role, person_id) VALUES ($1, '${DELETED}', $2)
       ON CONFLICT (platform_user_id) DO UPDATE SET role = excluded.role, person_id = excluded.person_id`,
      [platformUserId, person],
    );
  }

  async save(tx: PoolClient, user: UnknownPlatformUser): Promise<void> {
    await tx.query(
      `INSERT INTO platform_users (platform_user_id, role, external_user_id) VALUES ($1, $2, $3)
       ON CONFLICT (platform_user_id) DO UPDATE SET role = excluded.role,
         external_user_id = coalesce(excluded.external_user_id, platform_users.external_user_id)`,
      [user.platformUserId, user.role, user.externalUserId],
    );
  }

  /** One page of the users that nobody is mapped to, by id. */
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
