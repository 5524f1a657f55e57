import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { Random } from '../../config/random.js';
import { Database } from '../../database/database.js';
import { Problem } from '../../http/problem/problem.js';
import { decodeCursor, type Page, pageOf } from '../../http/request/page.js';
import { Audit } from '../audit/audit.js';
import { type Principal, SCOPES, type Scope } from '../identity/scopes.js';
import { type ApiKeyRow, ApiKeysRepository } from './api-keys.repository.js';

/** Milliseconds for which a key is cached: a revocation elsewhere takes effect within them. */
const CACHE_MS = 2_000;

/** Keys that are cached at once. */
const MOST_CACHED = 1_000;

/** The keys that callers identify themselves with. */
@Injectable()
export class ApiKeys {
  private readonly admin: Principal = { id: 'admin', name: 'admin', scopes: new Set(SCOPES) };
  private readonly adminHash: Buffer;
  private readonly cached = new Map<string, { principal: Principal; until: number }>();

  constructor(
    env: Env,
    private readonly clock: Clock,
    private readonly random: Random,
    private readonly database: Database,
    private readonly repository: ApiKeysRepository,
    private readonly audit: Audit,
  ) {
    this.adminHash = hashOfKey(env.ADMIN_API_KEY);
  }

  /** Who a key belongs to; undefined when it is none of ours or revoked. Comparisons take constant time. */
  async recognise(key: string): Promise<Principal | undefined> {
    const hash = hashOfKey(key);
    if (timingSafeEqual(hash, this.adminHash)) return this.admin;
    if (!looksLikeApiKey(key)) return undefined;
    const name = hash.toString('base64');
    const known = this.cached.get(name);
    if (known && known.until > this.clock.monotonicMs()) return known.principal;
    const asked = this.clock.monotonicMs();
    const row = await this.repository.findLive(hash);
    this.cached.delete(name);
    if (!row) return undefined;
    const principal = { id: row.id, name: row.name, scopes: new Set(row.scopes) };
    this.cache(name, principal, asked + CACHE_MS);
    return principal;
  }

  /** Makes a key. @returns the row and the key itself, which is never shown again */
  async create(name: string, scopes: readonly Scope[], by: Principal): Promise<{ row: ApiKeyRow; key: string }> {
    const made = newApiKey(this.random.bytes(32));
    const row = await this.database.transaction(async (tx) => {
      const key = { id: randomUUID(), name, scopes: [...new Set(scopes)], createdBy: by.id };
      const inserted = await this.repository.insert(tx, { ...key, prefix: made.prefix, hash: made.hash });
      await this.audit.record({ by, action: 'api-key.created', subjects: { apiKey: key.id }, outcome: 'ok' }, tx);
      return inserted;
    });
    return { row, key: made.key };
  }

  /** Revokes a key: at once in this process, within seconds in others. @throws {Problem} 404 `unknown-api-key` */
  async revoke(id: string, by: Principal): Promise<void> {
    await this.database.transaction(async (tx) => {
      if (!(await this.repository.revoke(tx, id))) {
        throw new Problem(404, 'unknown-api-key', 'There is no key with this id; GET /v1/api-keys lists them.');
      }
      await this.audit.record({ by, action: 'api-key.revoked', subjects: { apiKey: id }, outcome: 'ok' }, tx);
    });
    for (const [name, { principal }] of this.cached) if (principal.id === id) this.cached.delete(name);
  }

  /** All keys, the oldest first. */
  async list(limit: number, cursor: string | undefined): Promise<Page<ApiKeyRow>> {
    const after = decodeCursor<[string, string]>(cursor, 'time', 'uuid');
    const rows = await this.repository.list(limit + 1, after);
    return pageOf(rows, limit, (row) => [row.createdAt.toISOString(), row.id]);
  }

  private cache(name: string, principal: Principal, until: number): void {
    const oldest = this.cached.keys().next().value;
    if (this.cached.size >= MOST_CACHED && oldest !== undefined) this.cached.delete(oldest);
    this.cached.set(name, { principal, until });
  }
}

/** Every key begins with this, so that secret scanners can find one that leaked. */
const MARK = 'nb_';

/** Characters of a key that stay known after it was made: the mark and 36 of 256 bits. */
const PREFIX_LENGTH = MARK.length + 6;

/** A key as it is shown once, and what is kept of it. */
export interface NewApiKey {
  key: string;
  prefix: string;
  hash: Buffer;
}

/** SHA-256 of a key. A key is 256 random bits, so a slow hash would add nothing. */
export function hashOfKey(key: string): Buffer {
  return createHash('sha256').update(key, 'utf8').digest();
}

/** Makes a key. @param randomness 32 random bytes */
export function newApiKey(randomness: Buffer): NewApiKey {
  const key = MARK + randomness.toString('base64url');
  return { key, prefix: key.slice(0, PREFIX_LENGTH), hash: hashOfKey(key) };
}

/** Answers whether a text has the form of a key that `newApiKey` makes. */
export function looksLikeApiKey(text: string): boolean {
  return /^nb_[A-Za-z0-9_-]{43}$/.test(text);
}

/** The token of an `Authorization: Bearer` header (RFC 6750 §2.1), or undefined. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return /^bearer +([\x21-\x7e]{1,512}) *$/i.exec(authorization ?? '')?.[1];
}
