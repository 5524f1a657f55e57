import { randomUUID, timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { Random } from '../../config/random.js';
import { Database } from '../../database/database.js';
import { Problem } from '../../http/problem/problem.js';
import { decodeCursor, type Page, pageOf } from '../../http/request/page.js';
import { Audit } from '../audit/audit.js';
import type { Principal } from '../identity/caller.js';
import { SCOPES, type Scope } from '../identity/scopes.js';
import { hashOfKey, looksLikeApiKey, newApiKey } from './api-key.js';
import { type ApiKeyRow, ApiKeysRepository } from './api-keys.repository.js';

/** Milliseconds for which a key is believed without asking: a revocation elsewhere takes effect within them. */
const BELIEVED_MS = 2_000;

/** Keys that are remembered at once. */
const MOST_REMEMBERED = 1_000;

/** The keys that callers identify themselves with. */
@Injectable()
export class ApiKeys {
  private readonly admin: Principal = { id: 'admin', name: 'admin', scopes: new Set(SCOPES) };
  private readonly adminHash: Buffer;
  private readonly remembered = new Map<string, { principal: Principal; until: number }>();

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
    const known = this.remembered.get(name);
    if (known && known.until > this.clock.monotonicMs()) return known.principal;
    const asked = this.clock.monotonicMs();
    const row = await this.repository.findLive(hash);
    this.remembered.delete(name);
    if (!row) return undefined;
    const principal = { id: row.id, name: row.name, scopes: new Set(row.scopes) };
    this.remember(name, principal, asked + BELIEVED_MS);
    return principal;
  }

  /** Makes a key. @returns the row and the key itself, which nobody can see again */
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
    for (const [name, { principal }] of this.remembered) if (principal.id === id) this.remembered.delete(name);
  }

  /** All keys, the oldest first. */
  async list(limit: number, cursor: string | undefined): Promise<Page<ApiKeyRow>> {
    const after = decodeCursor<[string, string]>(cursor, 'time', 'uuid');
    const rows = await this.repository.list(limit + 1, after);
    return pageOf(
      rows,
      limit,
      (row) => [row.createdAt.toISOString(), row.id],
      (row) => row,
    );
  }

  private remember(name: string, principal: Principal, until: number): void {
    const oldest = this.remembered.keys().next().value;
    if (this.remembered.size >= MOST_REMEMBERED && oldest !== undefined) this.remembered.delete(oldest);
    this.remembered.set(name, { principal, until });
  }
}
