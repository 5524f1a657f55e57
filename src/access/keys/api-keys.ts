import { randomUUID, timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { Random } from '../../config/random.js';
import { Database } from '../../database/database.js';
import { PrismaService, toBytes } from '../../database/prisma.service.js';
import { requestFault } from '../../http/body/validation.js';
import { Problem } from '../../http/problem/problem.js';
import { decodeCursor, type Page, pageOf } from '../../http/request/page.js';
import { Audit } from '../audit/audit.js';
import { SCOPES, type Scope } from '../identity/scope.js';
import type { Principal } from '../identity/scopes.js';
import type { ApiKeyResponse, NewApiKeyRequest, NewApiKeyResponse, RotateApiKeyRequest } from './api-keys.dto.js';
import { hashOf, newApiKey, prefixOf } from './key-format.js';
import { RecentlyTaken } from './recently-taken.js';

/** What is shown of a key; its hash stays in the database. */
const SHOWN = {
  ...{ id: true, name: true, prefix: true, scopes: true },
  ...{ createdAt: true, expiresAt: true, revokedAt: true, lastUsedAt: true, rotatedTo: true },
} as const;

/** By the database's clock, which is one for all processes. */
export const KEY_IS_ALIVE = 'revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())';

/** Stands for the id of ADMIN_API_KEY. */
export const ADMIN_ID = 'admin';

/** What is known of a key's use is older than is worth a write. */
const USE_IS_OLD = `(last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '1 minute')`;

/** A key as it is rotated. */
interface RotatedKey {
  name: string;
  scopes: Scope[];
  rotatedTo: string | null;
  isAlive: boolean;
  /** When one made now expires that lives as long as it was to live. */
  renewedUntil: Date | null;
}

/**
 * The keys that callers identify themselves with. None is cached: every request looks its key up by the unique index of
 * hashes, so that what was revoked or has expired is refused by every process at once.
 */
@Injectable()
export class ApiKeys {
  private readonly admin: Principal = { id: ADMIN_ID, name: 'admin', scopes: new Set(SCOPES) };
  /** Undefined: the first key is switched off. */
  private readonly adminHash: Buffer | undefined;
  private readonly taken = new RecentlyTaken();
  /** Keys whose use is being written down. */
  private readonly noting = new Set<string>();

  constructor(
    env: Env,
    private readonly clock: Clock,
    private readonly random: Random,
    private readonly database: Database,
    private readonly prisma: PrismaService,
    private readonly audit: Audit,
  ) {
    this.adminHash = env.adminKey === undefined ? undefined : hashOf(env.adminKey);
  }

  /** Whether a key was taken when it was last looked up here: never whether it still is. */
  wasTaken(key: string): boolean {
    const hash = hashOf(key);
    return this.isAdmin(hash) || this.taken.has(hash);
  }

  /** Who a key belongs to; undefined when it is none of ours, revoked or expired. Comparisons take constant time. */
  async recognise(key: string): Promise<Principal | undefined> {
    const hash = hashOf(key);
    if (!this.isAdmin(hash) && prefixOf(key) === undefined) return undefined;
    return this.recogniseHash(hash);
  }

  /** Likewise by the SHA-256 of a key. */
  async recogniseHash(hash: Buffer): Promise<Principal | undefined> {
    if (this.isAdmin(hash)) return this.admin;
    const { rows } = await this.database.pool.query<{ id: string; name: string; scopes: Scope[]; isUseOld: boolean }>({
      name: 'api-key-by-hash',
      text: `SELECT id, name, scopes, ${USE_IS_OLD} AS "isUseOld" FROM api_keys WHERE hash = $1 AND ${KEY_IS_ALIVE}`,
      values: [hash],
    });
    const [row] = rows;
    this.taken.note(hash, row !== undefined);
    if (!row) return undefined;
    if (row.isUseOld) this.noteUse(row.id);
    return { id: row.id, name: row.name, scopes: new Set(row.scopes) };
  }

  /** Makes a key. @returns it with the key itself, which is never shown again @throws {Problem} 403 `scope-escalation` */
  create({ name, scopes, expiresAt }: NewApiKeyRequest, by: Principal): Promise<NewApiKeyResponse> {
    requireScopes(by, scopes);
    const expiry = this.expiryOf(expiresAt);
    return this.database.transaction(async (tx) => {
      const made = await this.make(tx, { name, scopes, expiresAt: expiry });
      this.audit.about('api-key', made.id);
      await this.audit.store(tx);
      return made;
    });
  }

  /**
   * Makes the successor of a key, which lives on beside it for a while.
   *
   * @throws {Problem} 403 `scope-escalation`, 404 `unknown-api-key`, 409 `api-key-ended` or `already-rotated`
   */
  rotate(id: string, { overlapSeconds, expiresAt }: RotateApiKeyRequest, by: Principal): Promise<NewApiKeyResponse> {
    const expiry = this.expiryOf(expiresAt);
    return this.database.transaction(async (tx) => {
      const { rows } = await tx.query<RotatedKey>(
        `SELECT name, scopes, rotated_to AS "rotatedTo", ${KEY_IS_ALIVE} AS "isAlive",
           clock_timestamp() + (expires_at - created_at) AS "renewedUntil"
         FROM api_keys WHERE id = $1 FOR UPDATE`,
        [id],
      );
      const [old] = rows;
      if (!old) throw unknownKey();
      refuseRotation(old);
      requireScopes(by, old.scopes);
      const made = await this.make(tx, { ...old, expiresAt: expiry ?? old.renewedUntil });
      await tx.query(
        `UPDATE api_keys SET rotated_to = $2,
           expires_at = least(expires_at, clock_timestamp() + make_interval(secs => $3)) WHERE id = $1`,
        [id, made.id, overlapSeconds],
      );
      this.audit.about('api-key', id, made.id);
      await this.audit.store(tx);
      return made;
    });
  }

  /** Revokes a key: at once, in every process. @throws {Problem} 404 `unknown-api-key` */
  async revoke(id: string): Promise<void> {
    await this.database.transaction(async (tx) => {
      const prisma = await this.prisma.in(tx);
      await prisma.apiKey.updateMany({ where: { id, revokedAt: null }, data: { revokedAt: this.clock.now() } });
      if ((await prisma.apiKey.count({ where: { id } })) === 0) throw unknownKey();
      this.audit.about('api-key', id);
      await this.audit.store(tx);
    });
  }

  /** All keys, revoked ones too, the oldest first. */
  async list(limit: number, cursor: string | undefined): Promise<Page<ApiKeyResponse>> {
    const [time = '', id] = decodeCursor<[string, string]>(cursor, 'time', 'uuid') ?? [];
    const createdAt = new Date(time);
    const rows = await this.prisma.apiKey.findMany({
      where: id === undefined ? {} : { OR: [{ createdAt: { gt: createdAt } }, { createdAt, id: { gt: id } }] },
      orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
      take: limit + 1,
      select: SHOWN,
    });
    const page = pageOf(rows as ApiKeyResponse[], limit, (row) => [row.createdAt.toISOString(), row.id]);
    this.audit.about('api-key', ...page.items.map((key) => key.id));
    return page;
  }

  private async make(
    tx: pg.PoolClient,
    { name, scopes, expiresAt }: { name: string; scopes: Scope[]; expiresAt: Date | null },
  ): Promise<NewApiKeyResponse> {
    const { key, prefix, hash } = newApiKey(this.random.bytes(32));
    const prisma = await this.prisma.in(tx);
    const data = { id: randomUUID(), name, scopes, expiresAt, prefix, hash: toBytes(hash) };
    const made = await prisma.apiKey.create({ data, select: SHOWN });
    return { ...(made as ApiKeyResponse), key };
  }

  private isAdmin(hash: Buffer): boolean {
    return this.adminHash !== undefined && timingSafeEqual(hash, this.adminHash);
  }

  /** Writes down that a key is in use; no request waits for it, and one that fails is made up for by the next. */
  private noteUse(id: string): void {
    if (this.noting.has(id)) return;
    this.noting.add(id);
    const text = `UPDATE api_keys SET last_used_at = clock_timestamp() WHERE id = $1 AND ${USE_IS_OLD}`;
    this.database.pool
      .query({ name: 'api-key-use', text, values: [id] })
      .catch(() => undefined)
      .finally(() => this.noting.delete(id));
  }

  /** @throws {Problem} 400 `validation` when the moment has passed */
  private expiryOf(text: string | undefined): Date | null {
    if (text === undefined) return null;
    const moment = new Date(text);
    if (moment > this.clock.now()) return moment;
    throw requestFault('/expiresAt', 'must lie in the future');
  }
}

/** @throws {Problem} 403 `scope-escalation` naming the scopes that a key may not hand on, since it lacks them itself */
function requireScopes(by: Principal, wanted: readonly Scope[]): void {
  const scopes = wanted.filter((scope) => !by.scopes.has(scope));
  if (scopes.length === 0) return;
  const detail = `This key can't make one with scopes that it lacks: ${scopes.join(', ')}; use a key that has them.`;
  throw new Problem(403, 'scope-escalation', detail, { extensions: { scopes } });
}

/** @throws {Problem} 409 for a key that is not alive, or has a successor already: more than two are never alive */
function refuseRotation({ isAlive, rotatedTo }: RotatedKey): void {
  if (!isAlive) throw new Problem(409, 'api-key-ended', 'This key was revoked or has expired; make a new one.');
  if (rotatedTo === null) return;
  const detail = 'This key has a successor already; rotate that one, or make a new key.';
  throw new Problem(409, 'already-rotated', detail, { extensions: { rotatedTo } });
}

function unknownKey(): Problem {
  return new Problem(404, 'unknown-api-key', 'There is no key with this id; GET /v1/api-keys lists them.');
}
