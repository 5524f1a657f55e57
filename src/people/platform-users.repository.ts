import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../database/database.js';

/** A user of the platform that nobody of the EHR is mapped to. */
export interface UnknownPlatformUser {
  platformUserId: string;
  role: string;
  externalUserId: string | null;
}

/** Stands in place of a role for a user that was deleted through this service. */
const DELETED = 'deleted';

/** Users that the platform told of and the EHR does not know. */
@Injectable()
export class PlatformUsersRepository {
  constructor(private readonly database: Database) {}

  /** Whether a user is mapped to a person, or was and has been deleted: an old event must not link it again. */
  async isKnown(tx: PoolClient, platformUserId: string): Promise<boolean> {
    const { rowCount } = await tx.query(
      `SELECT 1 FROM people WHERE platform_user_id = $1
       UNION ALL SELECT 1 FROM platform_users WHERE platform_user_id = $1 AND role = '${DELETED}'`,
      [platformUserId],
    );
    return rowCount !== 0;
  }

  /** Remembers a user that was deleted. */
  async wasDeleted(tx: PoolClient, platformUserId: string): Promise<void> {
    await tx.query(
      `INSERT INTO platform_users (platform_user_id, role) VALUES ($1, '${DELETED}')
       ON CONFLICT (platform_user_id) DO UPDATE SET role = excluded.role`,
      [platformUserId],
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
