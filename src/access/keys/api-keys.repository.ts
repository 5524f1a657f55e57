import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { Database } from '../../database/database.js';
import type { Scope } from '../identity/scopes.js';

/** A key as it is kept. */
export interface ApiKeyRow {
  id: string;
  name: string;
  prefix: string;
  scopes: Scope[];
  createdAt: Date;
  createdBy: string;
  revokedAt: Date | null;
}

const COLUMNS = `id, name, prefix, scopes, created_at AS "createdAt", created_by AS "createdBy",
  revoked_at AS "revokedAt"`;

@Injectable()
export class ApiKeysRepository {
  constructor(private readonly database: Database) {}

  /** The key with this hash, when it is not revoked. */
  async findLive(hash: Buffer): Promise<ApiKeyRow | undefined> {
    const { rows } = await this.database.pool.query<ApiKeyRow>({
      name: 'api-key-by-hash',
      text: `SELECT ${COLUMNS} FROM api_keys WHERE hash = $1 AND revoked_at IS NULL`,
      values: [hash],
    });
    return rows[0];
  }

  async insert(
    tx: pg.PoolClient,
    key: Pick<ApiKeyRow, 'id' | 'name' | 'prefix' | 'scopes' | 'createdBy'> & { hash: Buffer },
  ): Promise<ApiKeyRow> {
    const { rows } = await tx.query<ApiKeyRow>(
      `INSERT INTO api_keys (id, name, prefix, hash, scopes, created_by) VALUES ($1, $2, $3, $4, $5, $6)
       RETURNING ${COLUMNS}`,
      [key.id, key.name, key.prefix, key.hash, key.scopes, key.createdBy],
    );
    return rows[0] as ApiKeyRow;
  }

  /** Revokes a key; one that is revoked already keeps its time. @returns undefined when there is no such key */
  async revoke(tx: pg.PoolClient, id: string): Promise<ApiKeyRow | undefined> {
    const { rows } = await tx.query<ApiKeyRow>(
      `UPDATE api_keys SET revoked_at = COALESCE(revoked_at, now()) WHERE id = $1 RETURNING ${COLUMNS}`,
      [id],
    );
    return rows[0];
  }

  /** Keys in the order in which they were made, revoked ones too. @param after creation time and id of the last one */
  async list(limit: number, after: readonly [string, string] | undefined): Promise<ApiKeyRow[]> {
    const { rows } = await this.database.pool.query<ApiKeyRow>(
      `SELECT ${COLUMNS} FROM api_keys
       WHERE $2::timestamptz IS NULL OR (created_at, id) > ($2::timestamptz, $3::uuid)
       ORDER BY created_at, id LIMIT $1`,
      [limit, after?.[0] ?? null, after?.[1] ?? null],
    );
    return rows;
  }
}
