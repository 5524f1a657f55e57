import { randomUUID, timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { Audit } from '../../audit/audit.js';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { Random } from '../../config/random.js';
import { Database } from '../../database/database.js';
import { requestFault } from '../../http/body/validation.js';
import { Problem } from '../../http/problem/problem.js';
import { decodeCursor, type Page, pageOf } from '../../http/request/page.js';
import { Macs } from '../../vault/macs.js';
import { type GrantRow, GrantTable } from '../identity/grants.js';
import { SCOPES, type Scope } from '../identity/scope.js';
import type { Principal } from '../identity/scopes.js';
import type { ApiKeyResponse, NewApiKeyRequest, NewApiKeyResponse, RotateApiKeyRequest } from './api-keys.dto.js';
import { hashOf, newApiKey, prefixOf } from './key-format.js';
import { LIFETIME_MS, warningsOf } from './key-rules.js';
import { KnownKeys } from './known-keys.js';

/** By the database's clock, which is one for all processes. */
const KEY_IS_ALIVE = 'revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())';

/** The id of ADMIN_API_KEY. */
const ADMIN_ID = 'admin';

/** SQL condition that the use of a key is worth a write. */
const LAST_USED_IS_STALE = `(last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '1 minute')`;

/** A row of `api_keys`. */
interface KeyGrant {
  id: string;
  name: string;
  prefix: string;
  hash: Buffer;
  scopes: Scope[];
  createdAt: Date;
  expiresAt: Date | null;
  revokedAt: Date | null;
  rotatedTo: string | null;
}

/** Its use is stored outside the MAC. */
type KeyRow = KeyGrant & GrantRow & { lastUsedAt: Date | null };

export const API_KEY_GRANTS = new GrantTable<KeyGrant, KeyRow>(
  'api_keys',
  {
    ...{ id: 'id', name: 'name', prefix: 'prefix', hash: 'hash', scopes: 'scopes' },
    ...{ createdAt: 'created_at', expiresAt: 'expires_at', revokedAt: 'revoked_at', rotatedTo: 'rotated_to' },
  },
  ['last_used_at AS "lastUsedAt"'],
);

/** A key as it is rotated. */
interface RotatedKey extends KeyRow {
  isAlive: boolean;
  /** The expiry of a successor with the same lifetime. */
  renewedUntil: Date | null;
}

/**
 * The keys that callers identify themselves with. None is cached: every request looks its key up by the unique index of
 * hashes, so that every process rejects a key as soon as it is revoked or expires.
 */
@Injectable()
export class ApiKeys {
  private readonly admin: Principal = { id: ADMIN_ID, name: 'admin', scopes: new Set(SCOPES) };
  /** Undefined if the first key is switched off. */
  private readonly adminHash: Buffer | undefined;
  /** Keys whose use is being stored. */
  private readonly noting = new Set<string>();

  constructor(
    env: Env,
    private readonly clock: Clock,
    private readonly random: Random,
    private readonly database: Database,
    private readonly macs: Macs,
    private readonly known: KnownKeys,
    private readonly audit: Audit,
  ) {
    this.adminHash = env.adminKey === undefined ? undefined : hashOf(env.adminKey);
  }

  /** The caller with this key; undefined if it is unknown, altered, revoked or expired. Comparisons take constant time. */
  async recognise(key: string): Promise<Principal | undefined> {
    const hash = hashOf(key);
    if (!this.isAdmin(hash) && prefixOf(key) === undefined) return undefined;
    return this.recogniseHash(hash);
  }

  /** The caller with the key of this SHA-256. */
  async recogniseHash(hash: Buffer): Promise<Principal | undefined> {
    if (this.isAdmin(hash)) return this.admin;
    const { rows } = await this.database.pool.query<KeyRow & { isUseStale: boolean }>({
      name: 'api-key-by-hash',
      text: `SELECT ${API_KEY_GRANTS.selected}, ${LAST_USED_IS_STALE} AS "isUseStale" FROM api_keys
             WHERE hash = $1 AND ${KEY_IS_ALIVE}`,
      values: [hash],
    });
    const row = rows.find((each) => API_KEY_GRANTS.isGenuine(this.macs, each));
    if (!row) return undefined;
    if (row.isUseStale) this.noteUse(row.id);
    return { id: row.id, name: row.name, scopes: new Set(row.scopes) };
  }

  /** The ids of those keys that still grant what they granted. */
  async stillAlive(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const { rows } = await this.database.pool.query<KeyRow>({
      name: 'api-keys-alive',
      text: `SELECT ${API_KEY_GRANTS.selected} FROM api_keys WHERE id = ANY ($1::uuid[]) AND ${KEY_IS_ALIVE}`,
      values: [ids.filter((id) => id !== ADMIN_ID)],
    });
    return new Set([ADMIN_ID, ...rows.filter((row) => API_KEY_GRANTS.isGenuine(this.macs, row)).map(({ id }) => id)]);
  }

  /** Makes a key. @returns it with the key itself, which is never shown again @throws {Problem} 403 `scope-escalation` */
  create({ name, scopes, expiresAt }: NewApiKeyRequest, by: Principal): Promise<NewApiKeyResponse> {
    requireScopes(by, scopes);
    const expiry = this.expiryOf(expiresAt, new Date(this.clock.now().getTime() + LIFETIME_MS));
    return this.database.transaction(async (tx) => {
      const made = await this.make(tx, { name, scopes, expiresAt: expiry });
      this.audit.about('api-key', made.id);
      await this.audit.store(tx);
      return made;
    });
  }

  /**
   * Makes the successor of a key, which is accepted alongside it for a while.
   *
   * @throws {Problem} 403 `scope-escalation`, 404 `unknown-api-key`, 409 `api-key-ended` or `already-rotated`
   */
  rotate(id: string, { overlapSeconds, expiresAt }: RotateApiKeyRequest, by: Principal): Promise<NewApiKeyResponse> {
    return this.database.transaction(async (tx) => {
      const { rows } = await tx.query<RotatedKey>(
        `SELECT ${API_KEY_GRANTS.selected}, ${KEY_IS_ALIVE} AS "isAlive", clock_timestamp() + (expires_at - created_at) AS "renewedUntil"
         FROM api_keys WHERE id = $1 FOR UPDATE`,
        [id],
      );
      const [old] = rows;
      if (!old) throw unknownKey();
      refuseRotation(old, API_KEY_GRANTS.isGenuine(this.macs, old));
      requireScopes(by, old.scopes);
      const expiry = this.expiryOf(expiresAt, old.renewedUntil);
      const made = await this.make(tx, { name: old.name, scopes: old.scopes, expiresAt: expiry });
      await this.write(
        tx,
        `UPDATE api_keys SET rotated_to = $2,
           expires_at = least(expires_at, clock_timestamp() + make_interval(secs => $3)) WHERE id = $1`,
        [id, made.id, overlapSeconds],
      );
      this.audit.about('api-key', id, made.id);
      await this.audit.store(tx);
      return made;
    });
  }

  /**
   * Revokes a key immediately, in every process. A row that this service did not write is signed as revoked, so that
   * it is no longer reported.
   *
   * @throws {Problem} 404 `unknown-api-key`
   */
  async revoke(id: string): Promise<void> {
    await this.database.transaction(async (tx) => {
      const set = 'UPDATE api_keys SET revoked_at = coalesce(revoked_at, clock_timestamp()) WHERE id = $1';
      if (!(await this.write(tx, set, [id]))) throw unknownKey();
      this.audit.about('api-key', id);
      await this.audit.store(tx);
    });
  }

  /** All keys, including revoked ones, oldest first. */
  async list(limit: number, cursor: string | undefined): Promise<Page<ApiKeyResponse>> {
    const [time, id] = decodeCursor<[string, string]>(cursor, 'time', 'uuid') ?? [null, null];
    const { rows } = await this.database.pool.query<KeyRow>(
      `SELECT ${API_KEY_GRANTS.selected} FROM api_keys WHERE $1::timestamptz IS NULL OR (created_at, id) > ($1, $2::uuid)
       ORDER BY created_at, id LIMIT $3`,
      [time, id, limit + 1],
    );
    const page = pageOf(
      rows,
      limit,
      (row) => [row.createdAt.toISOString(), row.id],
      (row) => this.view(row),
    );
    this.audit.about('api-key', ...page.items.map((key) => key.id));
    return page;
  }

  private async make(
    tx: pg.PoolClient,
    { name, scopes, expiresAt }: { name: string; scopes: Scope[]; expiresAt: Date | null },
  ): Promise<NewApiKeyResponse> {
    const { key, prefix, hash } = newApiKey(this.random.bytes(32));
    const insert = `INSERT INTO api_keys (id, name, scopes, expires_at, prefix, hash) VALUES ($1, $2, $3, $4, $5, $6)`;
    const made = await this.write(tx, insert, [randomUUID(), name, scopes, expiresAt, prefix, hash]);
    this.known.add(key);
    return { ...this.view(made as KeyRow), key };
  }

  /** Runs a statement that writes one key, and signs the row. @returns the row; undefined if there is none */
  private async write(tx: pg.PoolClient, statement: string, values: unknown[]): Promise<KeyRow | undefined> {
    const { rows } = await tx.query<KeyRow>(`${statement} RETURNING ${API_KEY_GRANTS.selected}`, values);
    const [row] = rows;
    return row && { ...row, mac: await API_KEY_GRANTS.sign(tx, this.macs, row) };
  }

  /** The view of a key; its hash stays in the database. */
  private view({ hash: _, mac: __, ...shown }: KeyRow): ApiKeyResponse {
    const isGenuine = API_KEY_GRANTS.isGenuine(this.macs, { ...shown, hash: _, mac: __ });
    return { ...shown, warnings: warningsOf(shown, isGenuine, this.clock.now()) };
  }

  private isAdmin(hash: Buffer): boolean {
    return this.adminHash !== undefined && timingSafeEqual(hash, this.adminHash);
  }

  /** Stores that a key is in use. No request waits for it; after a failure, the next use is stored. */
  private noteUse(id: string): void {
    if (this.noting.has(id)) return;
    this.noting.add(id);
    const text = `UPDATE api_keys SET last_used_at = clock_timestamp() WHERE id = $1 AND ${LAST_USED_IS_STALE}`;
    this.database.pool
      .query({ name: 'api-key-use', text, values: [id] })
      .catch(() => undefined)
      .finally(() => this.noting.delete(id));
  }

  /** @throws {Problem} 400 `validation` when the moment has passed */
  private expiryOf(text: string | null | undefined, usual: Date | null): Date | null {
    if (text === undefined) return usual;
    if (text === null) return null;
    const moment = new Date(text);
    if (moment > this.clock.now()) return moment;
    throw requestFault('/expiresAt', 'must lie in the future');
  }
}

/** @throws {Problem} 403 `scope-escalation` naming the scopes that a key cannot grant, because it lacks them itself */
function requireScopes(by: Principal, wanted: readonly Scope[]): void {
  const scopes = wanted.filter((scope) => !by.scopes.has(scope));
  if (scopes.length === 0) return;
  const detail = `A key cannot create one with scopes that it lacks: ${scopes.join(', ')}. Use a key that has them.`;
  throw new Problem('scope-escalation', detail, { extensions: { scopes } });
}

/** @throws {Problem} 409 for a key that is not valid or already has a successor, because at most two are valid */
function refuseRotation({ isAlive, rotatedTo }: RotatedKey, isGenuine: boolean): void {
  if (!isGenuine) {
    const detail =
      'This key was not created by this service, or was changed in the database. Revoke it and create a new one.';
    throw new Problem('api-key-ended', detail);
  }
  if (!isAlive) throw new Problem('api-key-ended', 'This key was revoked or has expired. Create a new one.');
  if (rotatedTo === null) return;
  const detail = 'This key already has a successor. Rotate the successor, or create a new key.';
  throw new Problem('already-rotated', detail, { extensions: { rotatedTo } });
}

function unknownKey(): Problem {
  return new Problem('unknown-api-key', 'No key has this id. GET /v1/api-keys lists them.');
}
