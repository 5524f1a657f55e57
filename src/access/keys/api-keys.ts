import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { Random } from '../../config/random.js';
import { Database } from '../../database/database.js';
import { PrismaService, toBytes } from '../../database/prisma.service.js';
import { Problem } from '../../http/problem/problem.js';
import { decodeCursor, type Page, pageOf } from '../../http/request/page.js';
import { Audit } from '../audit/audit.js';
import { type Principal, SCOPES, type Scope } from '../identity/scopes.js';
import type { ApiKeyResponse, NewApiKeyRequest, NewApiKeyResponse } from './api-keys.dto.js';

/** Milliseconds for which a key is cached: a revocation elsewhere takes effect within them. */
const CACHE_MS = 2_000;

/** Keys that are cached at once. */
const MOST_CACHED = 1_000;

/** What is shown of a key; its hash stays in the database. */
const SHOWN = { id: true, name: true, prefix: true, scopes: true, createdAt: true, revokedAt: true } as const;

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
    private readonly prisma: PrismaService,
    private readonly audit: Audit,
  ) {
    this.adminHash = hashOf(env.ADMIN_API_KEY);
  }

  /** Who a key belongs to; undefined when it is none of ours or revoked. Comparisons take constant time. */
  async recognise(key: string): Promise<Principal | undefined> {
    const hash = hashOf(key);
    if (timingSafeEqual(hash, this.adminHash)) return this.admin;
    if (!KEY.test(key)) return undefined;
    const name = hash.toString('base64');
    const asked = this.clock.monotonicMs();
    const known = this.cached.get(name);
    if (known && known.until > asked) return known.principal;
    const where = { hash: toBytes(hash), revokedAt: null };
    const row = await this.prisma.apiKey.findUnique({ where, select: SHOWN });
    this.cached.delete(name);
    if (!row) return undefined;
    const principal = { id: row.id, name: row.name, scopes: new Set(row.scopes as Scope[]) };
    const oldest = this.cached.keys().next().value;
    if (this.cached.size >= MOST_CACHED && oldest !== undefined) this.cached.delete(oldest);
    this.cached.set(name, { principal, until: asked + CACHE_MS });
    return principal;
  }

  /** Makes a key. @returns it with the key itself, which is never shown again */
  create({ name, scopes }: NewApiKeyRequest, by: Principal): Promise<NewApiKeyResponse> {
    const { key, prefix, hash } = newApiKey(this.random.bytes(32));
    const id = randomUUID();
    return this.database.transaction(async (tx) => {
      const prisma = await this.prisma.in(tx);
      const data = { id, name, scopes, prefix, hash: toBytes(hash), createdBy: by.id };
      const { createdAt } = await prisma.apiKey.create({ data, select: { createdAt: true } });
      await this.audit.record({ by, action: 'api-key.created', subjects: { apiKey: id }, outcome: 'ok' }, tx);
      return { id, name, prefix, scopes, createdAt, revokedAt: null, key };
    });
  }

  /** Revokes a key: at once in this process, within seconds in others. @throws {Problem} 404 `unknown-api-key` */
  async revoke(id: string, by: Principal): Promise<void> {
    await this.database.transaction(async (tx) => {
      const prisma = await this.prisma.in(tx);
      await prisma.apiKey.updateMany({ where: { id, revokedAt: null }, data: { revokedAt: this.clock.now() } });
      if ((await prisma.apiKey.count({ where: { id } })) === 0) {
        throw new Problem(404, 'unknown-api-key', 'There is no key with this id; GET /v1/api-keys lists them.');
      }
      await this.audit.record({ by, action: 'api-key.revoked', subjects: { apiKey: id }, outcome: 'ok' }, tx);
    });
    for (const [name, { principal }] of this.cached) if (principal.id === id) this.cached.delete(name);
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
    return pageOf(rows as ApiKeyResponse[], limit, (row) => [row.createdAt.toISOString(), row.id]);
  }
}

/** SHA-256 of a key. A key is 256 random bits, so a slow hash would add nothing. */
const hashOf = (key: string): Buffer => createHash('sha256').update(key, 'utf8').digest();

/** Every key begins with this, so that secret scanners can find one that leaked. */
const MARK = 'nb_';
const KEY = /^nb_[A-Za-z0-9_-]{43}$/;

/** Characters of a key that stay known after it was made: the mark and 36 of 256 bits. */
const PREFIX_LENGTH = MARK.length + 6;

/** A key as it is shown once, and what is kept of it. @param randomness 32 random bytes */
export function newApiKey(randomness: Buffer): { key: string; prefix: string; hash: Buffer } {
  const key = MARK + randomness.toString('base64url');
  return { key, prefix: key.slice(0, PREFIX_LENGTH), hash: hashOf(key) };
}

/** The token of an `Authorization: Bearer` header (RFC 6750 §2.1), or undefined. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return /^bearer +([\x21-\x7e]{1,512}) *$/i.exec(authorization ?? '')?.[1];
}
