import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { Audit } from '../../audit/audit.js';
import { Env } from '../../config/env.js';
import { Random } from '../../config/random.js';
import { Database } from '../../database/database.js';
import { Problem } from '../../http/problem/problem.js';
import { decodeCursor, type Page, pageOf } from '../../http/request/page.js';
import { Macs } from '../../vault/macs.js';
import { type GrantRow, GrantTable } from '../identity/grants.js';
import type { Scope } from '../identity/scope.js';
import type { Principal } from '../identity/scopes.js';
import { ApiKeys } from '../keys/api-keys.js';
import { hashOf } from '../keys/key-format.js';
import { KnownKeys } from '../keys/known-keys.js';
import type { ListedSessionResponse } from './browser-session.dto.js';
import { csrfTokenOf } from './session-cookie.js';

/** Maximum open sessions of a key or a person. The oldest ends if there is one more. */
const MAX_SESSIONS = 20;

/** A browser has to sign in again after a working day. */
const LIFETIME_MS = 8 * 3_600_000;

/** A sign-in is recent enough for a step-up for this long. */
const STEP_UP_MS = 5 * 60_000;

/** Store use at most once a minute. */
const USE_STORED_MS = 60_000;

/** By the database's clock, which is one for all processes. */
const SESSION_IS_ALIVE = 'ends_at > clock_timestamp()';

/** Methods that change nothing (RFC 9110 §9.2.1). */
const SAFE = ['GET', 'HEAD', 'OPTIONS'];

/** A signed-in browser. `subject` is a key's id, or with an `issuer` the person's id there. */
interface Session {
  id: string;
  tokenHash: Buffer;
  /** The key whose rights it has, while that is valid; null for a person. */
  keyHash: Buffer | null;
  issuer: string | null;
  subject: string;
  name: string;
  /** Fixed when a person signs in; null for a key, whose own scopes count. */
  scopes: Scope[] | null;
  createdAt: Date;
  /** When its user last proved their identity; null if the provider does not report it. */
  authenticatedAt: Date | null;
  lastSeenAt: Date;
  endsAt: Date;
}

/** A session as stored, with the database's time. */
type StoredSession = Session & GrantRow & { now: Date };

export const SESSION_GRANTS = new GrantTable<Session>('browser_sessions', {
  ...{ id: 'id', tokenHash: 'token_hash', keyHash: 'key_hash', issuer: 'issuer', subject: 'subject', name: 'name' },
  ...{ scopes: 'scopes', createdAt: 'created_at', authenticatedAt: 'authenticated_at' },
  ...{ lastSeenAt: 'last_seen_at', endsAt: 'ends_at' },
});
const NOW = `date_trunc('milliseconds', clock_timestamp()) AS now`;
const FIND = `SELECT ${SESSION_GRANTS.selected}, ${NOW} FROM browser_sessions WHERE token_hash = $1 AND ${SESSION_IS_ALIVE}`;

/** The caller that signs in. @property key the key, unless it is a person */
interface SignIn {
  by: Principal;
  key?: string;
  authenticatedAt?: Date | null;
  /** The browser's session until now. */
  replaces?: string;
}

/**
 * Browsers that are signed in to the console. Each has a random token in a cookie, and acts as a key or as a person. What
 * it does is recorded as theirs.
 */
@Injectable()
export class BrowserSessions {
  constructor(
    private readonly env: Env,
    private readonly database: Database,
    private readonly keys: ApiKeys,
    private readonly macs: Macs,
    private readonly random: Random,
    private readonly audit: Audit,
    private readonly known: KnownKeys,
  ) {}

  /** Opens a session, and deletes ended ones and the oldest beyond {@link MAX_SESSIONS}. @returns its token */
  open({ by, key, authenticatedAt, replaces }: SignIn): Promise<string> {
    const token = this.random.bytes(32).toString('base64url');
    return this.database.transaction(async (tx) => {
      // One at a time: two could not count each other.
      await tx.query('LOCK TABLE browser_sessions IN SHARE ROW EXCLUSIVE MODE');
      const { rows } = await tx.query<{ now: Date }>(`SELECT ${NOW}`);
      const { now } = rows[0] as { now: Date };
      const issuer = by.issuer ?? null;
      const keyHash = key === undefined ? null : hashOf(key);
      await tx.query(
        `DELETE FROM browser_sessions WHERE NOT (${SESSION_IS_ALIVE}) OR id = $3 OR id IN (
           SELECT id FROM browser_sessions WHERE issuer IS NOT DISTINCT FROM $1 AND subject = $2
           ORDER BY created_at DESC, id OFFSET ${MAX_SESSIONS - 1})`,
        [issuer, by.id, replaces ?? null],
      );
      const session: Session = {
        ...{ id: randomUUID(), tokenHash: digest(token), keyHash },
        ...{ issuer, subject: by.id, name: by.name, scopes: keyHash ? null : [...by.scopes] },
        ...{ createdAt: now, authenticatedAt: authenticatedAt === undefined ? now : authenticatedAt },
        ...{ lastSeenAt: now, endsAt: this.endOf(now, now) },
      };
      await tx.query(
        `INSERT INTO browser_sessions (id, token_hash, key_hash, issuer, subject, name, scopes, created_at,
           authenticated_at, last_seen_at, ends_at, mac) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
        [...Object.values(session), SESSION_GRANTS.macOf(this.macs, session)],
      );
      this.audit.about('browser-session', session.id);
      if (key !== undefined) this.audit.about('api-key', by.id);
      await this.audit.store(tx);
      this.known.add(token);
      return token;
    });
  }

  /**
   * Finds the user of a session; undefined if the session is unknown, or if it or its key has ended.
   *
   * @param isInUse a person caused the request, which moves the idle timeout
   */
  async recognise(token: string, isInUse: boolean): Promise<Principal | undefined> {
    const { rows } = await this.database.pool.query<StoredSession>({
      name: 'browser-session',
      text: FIND,
      values: [digest(token)],
    });
    const [session] = rows;
    const principal = session && (await this.principalOf(session));
    if (!principal) return undefined;
    const { now, authenticatedAt } = session;
    if (isInUse && now.getTime() - session.lastSeenAt.getTime() >= USE_STORED_MS)
      session.endsAt = await this.extend(session);
    const isConfirmed = authenticatedAt !== null && now.getTime() - authenticatedAt.getTime() <= STEP_UP_MS;
    const { id, tokenHash: hash, endsAt } = session;
    return { ...principal, session: { id, hash, endsAt, authenticatedAt, isConfirmed } };
  }

  /**
   * Replaces the session of a key, which is shown again.
   *
   * @returns the new token
   * @throws {Problem} 403 `wrong-key`, 404 `no-browser-session`, 409 `confirm-at-provider`
   */
  async confirm(by: Principal, key: string): Promise<string> {
    if (!by.session) throw noSession();
    if (by.issuer)
      throw new Problem(
        'confirm-at-provider',
        'A key cannot confirm the session of a person. Open /v1/sign-in?fresh=true instead.',
      );
    if ((await this.keys.recognise(key))?.id !== by.id)
      throw new Problem('wrong-key', 'This is not the key of this session. Send the key that opened it.');
    return this.open({ by, key, replaces: by.session.id });
  }

  /** Sessions that have not ended, newest first: all of them, or those of one key or person. */
  async list(by: Principal, isAll: boolean, limit: number, cursor?: string): Promise<Page<ListedSessionResponse>> {
    const place = decodeCursor<[string, string]>(cursor, 'time', 'uuid') ?? [null, null];
    const { rows } = await this.database.pool.query<Session>(
      `SELECT ${SESSION_GRANTS.selected} FROM browser_sessions WHERE ${SESSION_IS_ALIVE}
         AND ($1 OR (issuer IS NOT DISTINCT FROM $2 AND subject = $3))
         AND ($4::timestamptz IS NULL OR (created_at, id) < ($4, $5::uuid))
       ORDER BY created_at DESC, id DESC LIMIT $6`,
      [isAll, by.issuer ?? null, by.id, ...place, limit + 1],
    );
    const view = ({ id, issuer, subject, name, createdAt, authenticatedAt, lastSeenAt, endsAt }: Session) => ({
      ...{ id, caller: { id: subject, name, issuer }, isCurrent: id === by.session?.id },
      ...{ createdAt, authenticatedAt, lastSeenAt, expiresAt: endsAt },
    });
    return pageOf(rows, limit, ({ createdAt, id }) => [createdAt.toISOString(), id], view);
  }

  /** Ends a session: in every process immediately. @throws {Problem} 404 `no-browser-session` */
  async end(id: string, by: Principal, isAny: boolean): Promise<void> {
    await this.database.transaction(async (tx) => {
      const { rowCount } = await tx.query(
        `DELETE FROM browser_sessions WHERE id = $1 AND ($2 OR (issuer IS NOT DISTINCT FROM $3 AND subject = $4))`,
        [id, isAny, by.issuer ?? null, by.id],
      );
      if (rowCount === 0) throw noSession();
      this.audit.about('browser-session', id);
      if (!by.issuer) this.audit.about('api-key', by.id);
      await this.audit.store(tx);
    });
  }

  /** The ids of those sessions that have not ended. */
  async stillAlive(ids: readonly string[]): Promise<ReadonlySet<string>> {
    if (ids.length === 0) return new Set();
    const { rows } = await this.database.pool.query<StoredSession>(
      `SELECT ${SESSION_GRANTS.selected} FROM browser_sessions WHERE id = ANY ($1::uuid[]) AND ${SESSION_IS_ALIVE}`,
      [ids],
    );
    return new Set(rows.filter((row) => SESSION_GRANTS.isGenuine(this.macs, row)).map(({ id }) => id));
  }

  /** The caller of a row. A row that this service did not write grants nothing. */
  private async principalOf(session: StoredSession): Promise<Principal | undefined> {
    const { keyHash, issuer, subject: id, name, scopes } = session;
    if (!SESSION_GRANTS.isGenuine(this.macs, session)) return undefined;
    if (keyHash) return this.env.allowsKeySignIn ? this.keys.recogniseHash(keyHash) : undefined;
    return issuer && scopes ? { id, name, issuer, scopes: new Set(scopes) } : undefined;
  }

  /** Stores use of a session, unless another request did so first. @returns its end */
  private async extend({ now, mac, ...session }: StoredSession): Promise<Date> {
    const next = { ...session, lastSeenAt: now, endsAt: this.endOf(session.createdAt, now) };
    await this.database.pool.query(
      'UPDATE browser_sessions SET last_seen_at = $3, ends_at = $4, mac = $5 WHERE id = $1 AND mac = $2',
      [next.id, mac, next.lastSeenAt, next.endsAt, SESSION_GRANTS.macOf(this.macs, next)],
    );
    return next.endsAt;
  }

  private endOf(createdAt: Date, seenAt: Date): Date {
    const idleMs = this.env.SESSION_IDLE_MINUTES * 60_000;
    return new Date(Math.min(createdAt.getTime() + LIFETIME_MS, seenAt.getTime() + idleMs));
  }
}

export function noSession(): Problem {
  return new Problem('no-browser-session', 'No browser session has this id. GET /v1/browser-sessions lists them.');
}

/** A page of another site can neither read the token nor add a header. @throws {Problem} 403 `forged-request` */
export function refuseForged({ method, headers }: FastifyRequest, token: string): void {
  const site = headers['sec-fetch-site'];
  const isOwn = site === undefined || site === 'same-origin' || site === 'none';
  if (isOwn && (SAFE.includes(method) || isSame(String(headers['x-csrf-token'] ?? ''), csrfTokenOf(token)))) return;
  const detail = 'A change by a browser session needs the csrfToken of GET /v1/browser-session in X-CSRF-Token.';
  throw new Problem('forged-request', detail);
}

const digest = (text: string) => createHash('sha256').update(text, 'utf8').digest();

/** Takes the same time for any difference. */
const isSame = (given: string, right: string) => timingSafeEqual(digest(given), digest(right));
