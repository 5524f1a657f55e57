import { randomUUID, timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Audit } from '../../audit/audit.js';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { Random } from '../../config/random.js';
import { PrismaService, type Tx, toBytes } from '../../database/prisma.service.js';
import { requestFault } from '../../http/body/validation.js';
import { Problem } from '../../http/problem/problem.js';
import { decodeCursor, type Page, pageOf } from '../../http/request/page.js';
import { type Timed } from '../identity/grants.js';
import { SCOPES, type Scope } from '../identity/scope.js';
import type { Principal } from '../identity/scopes.js';
import type { ApiKeyResponse, NewApiKeyRequest, NewApiKeyResponse, RotateApiKeyRequest } from './api-keys.dto.js';
import { type ApiKey, ApiKeysRepository } from './api-keys.repository.js';
import { hashOf, newApiKey, prefixOf } from './key-format.js';
import { isAlive, LIFETIME_MS, warningsOf } from './key-rules.js';
import { KnownKeys } from './known-keys.js';

/** The id of ADMIN_API_KEY. */
const ADMIN_ID = 'admin';

/** Store use at most once a minute. */
const USE_STORED_MS = 60_000;

/**
 * The keys that callers identify themselves with. None is cached: every request looks its key up by the unique index of
 * hashes, so that every process rejects a key as soon as it is revoked or expires.
 */
@Injectable()
export class ApiKeysService {
  private readonly admin: Principal = { id: ADMIN_ID, name: 'admin', scopes: new Set(SCOPES) };
  /** Undefined if the first key is switched off. */
  private readonly adminHash: Buffer | undefined;
  /** Keys whose use is being stored. */
  private readonly noting = new Set<string>();

  constructor(
    private readonly prisma: PrismaService,
    private readonly rows: ApiKeysRepository,
    env: Env,
    private readonly clock: Clock,
    private readonly random: Random,
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
  async recogniseHash(hash: Uint8Array): Promise<Principal | undefined> {
    if (this.isAdmin(hash)) return this.admin;
    const row = await this.rows.byHash(hash);
    if (!row || !this.grants(row)) return undefined;
    this.noteUse(row);
    return { id: row.id, name: row.name, scopes: new Set(row.scopes as Scope[]) };
  }

  /** The ids of those keys that still grant what they granted. */
  async stillAlive(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const rows = await this.rows.byIds(ids.filter((id) => id !== ADMIN_ID));
    return new Set([ADMIN_ID, ...rows.filter((row) => this.grants(row)).map(({ id }) => id)]);
  }

  /** Makes a key. @returns it with the key itself, which is never shown again @throws {Problem} 403 `scope-escalation` */
  create({ name, scopes, expiresAt }: NewApiKeyRequest, by: Principal): Promise<NewApiKeyResponse> {
    requireScopes(by, scopes);
    const now = this.clock.now();
    const expiry = this.expiryOf(expiresAt, later(now, LIFETIME_MS));
    return this.prisma.transaction(async (tx) => {
      const made = await this.make(tx, { name, scopes, createdAt: now, expiresAt: expiry });
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
    return this.prisma.transaction(async (tx) => {
      const { row: old, now } = await this.rows.lock(tx, id);
      refuseRotation(old, this.rows.isGenuine(old), now);
      requireScopes(by, old.scopes as Scope[]);
      const sameLifetime = old.expiresAt && later(now, old.expiresAt.getTime() - old.createdAt.getTime());
      const expiry = this.expiryOf(expiresAt, sameLifetime);
      const made = await this.make(tx, { name: old.name, scopes: old.scopes, createdAt: now, expiresAt: expiry });
      const end = later(now, overlapSeconds * 1000);
      const endsEarlier = old.expiresAt !== null && old.expiresAt < end;
      await this.rows.change(tx, old, { rotatedTo: made.id, ...(!endsEarlier && { expiresAt: end }) });
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
    await this.prisma.transaction(async (tx) => {
      const { row, now } = await this.rows.lock(tx, id);
      await this.rows.change(tx, row, { revokedAt: row.revokedAt ?? now });
      this.audit.about('api-key', id);
      await this.audit.store(tx);
    });
  }

  /** All keys, including revoked ones, oldest first. */
  async list(limit: number, cursor: string | undefined): Promise<Page<ApiKeyResponse>> {
    const rows = await this.rows.list(limit + 1, decodeCursor<[string, string]>(cursor, 'time', 'uuid'));
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
    tx: Tx,
    stored: Pick<ApiKey, 'name' | 'scopes' | 'createdAt' | 'expiresAt'>,
  ): Promise<NewApiKeyResponse> {
    const { key, prefix, hash } = newApiKey(this.random.bytes(32));
    const grant = { id: randomUUID(), ...stored, prefix, hash: toBytes(hash), revokedAt: null, rotatedTo: null };
    const row = await this.rows.create(tx, grant);
    this.known.add(key);
    return { ...this.view(row), key };
  }

  /** The view of a key; its hash stays in the database. */
  private view(row: ApiKey): ApiKeyResponse {
    const { hash: _, mac: __, ...shown } = row;
    return {
      ...shown,
      scopes: row.scopes as Scope[],
      warnings: warningsOf(shown, this.rows.isGenuine(row), this.clock.now()),
    };
  }

  private grants(row: Timed<ApiKey>): boolean {
    return isAlive(row, row.now) && this.rows.isGenuine(row);
  }

  /** Stores that a key is in use. No request waits for it; after a failure, the next use is stored. */
  private noteUse({ id, lastUsedAt }: ApiKey): void {
    const now = this.clock.now();
    const staleBefore = later(now, -USE_STORED_MS);
    if (this.noting.has(id) || (lastUsedAt !== null && lastUsedAt >= staleBefore)) return;
    this.noting.add(id);
    this.rows
      .noteUse(id, now, staleBefore)
      .catch(() => undefined)
      .finally(() => this.noting.delete(id));
  }

  private isAdmin(hash: Uint8Array): boolean {
    return this.adminHash !== undefined && timingSafeEqual(hash, this.adminHash);
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
function refuseRotation(key: ApiKey, isGenuine: boolean, now: Date): void {
  if (!isGenuine) {
    const detail =
      'This key was not created by this service, or was changed in the database. Revoke it and create a new one.';
    throw new Problem('api-key-ended', detail);
  }
  if (!isAlive(key, now)) throw new Problem('api-key-ended', 'This key was revoked or has expired. Create a new one.');
  if (key.rotatedTo === null) return;
  const detail = 'This key already has a successor. Rotate the successor, or create a new key.';
  throw new Problem('already-rotated', detail, { extensions: { rotatedTo: key.rotatedTo } });
}

const later = (time: Date, ms: number): Date => new Date(time.getTime() + ms);
