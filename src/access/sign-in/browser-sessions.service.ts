import { randomUUID, timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { Audit } from '../../audit/audit.js';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { Random } from '../../config/random.js';
import { PrismaService, toBytes } from '../../database/prisma.service.js';
import { Problem } from '../../http/problem/problem.js';
import { decodeCursor, type Page, pageOf } from '../../http/request/page.js';
import { type Timed } from '../identity/grants.js';
import type { Scope } from '../identity/scope.js';
import type { Principal } from '../identity/scopes.js';
import { ApiKeysService } from '../keys/api-keys.service.js';
import { hashOf } from '../keys/key-format.js';
import { KnownKeys } from '../keys/known-keys.js';
import type { ListedSessionResponse } from './browser-session.dto.js';
import { type BrowserSession, BrowserSessionsRepository, type Owner } from './browser-sessions.repository.js';
import { csrfTokenOf } from './session-cookie.js';

/** Maximum open sessions of a key or a person. The oldest ends if there is one more. */
const MAX_SESSIONS = 20;

/** A browser has to sign in again after a working day. */
const LIFETIME_MS = 8 * 3_600_000;

/** A sign-in is recent enough for a step-up for this long. */
const STEP_UP_MS = 5 * 60_000;

/** Store use at most once a minute. */
const USE_STORED_MS = 60_000;

/** Methods that change nothing (RFC 9110 §9.2.1). */
const SAFE = ['GET', 'HEAD', 'OPTIONS'];

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
export class BrowserSessionsService {
  constructor(
    private readonly prisma: PrismaService,
    private readonly rows: BrowserSessionsRepository,
    private readonly env: Env,
    private readonly clock: Clock,
    private readonly keys: ApiKeysService,
    private readonly random: Random,
    private readonly audit: Audit,
    private readonly known: KnownKeys,
  ) {}

  /** Opens a session, and deletes ended ones and the oldest beyond {@link MAX_SESSIONS}. @returns its token */
  open({ by, key, authenticatedAt, replaces }: SignIn): Promise<string> {
    const token = this.random.bytes(32).toString('base64url');
    const owner = ownerOf(by);
    return this.prisma.transaction(async (tx) => {
      const now = await this.rows.lock(tx);
      await this.rows.clear(tx, now, owner, MAX_SESSIONS - 1, replaces);
      const id = randomUUID();
      await this.rows.create(tx, {
        ...{ id, tokenHash: toBytes(hashOf(token)), keyHash: key === undefined ? null : toBytes(hashOf(key)) },
        ...{ ...owner, name: by.name, scopes: key === undefined ? [...by.scopes] : [] },
        ...{ createdAt: now, authenticatedAt: authenticatedAt === undefined ? now : authenticatedAt },
        ...{ lastSeenAt: now, endsAt: this.endOf(now, now) },
      });
      this.audit.about('browser-session', id);
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
    const session = await this.rows.byTokenHash(hashOf(token));
    const principal = session && (await this.principalOf(session));
    if (!principal) return undefined;
    const { id, authenticatedAt, lastSeenAt, now } = session;
    let { endsAt } = session;
    if (isInUse && now.getTime() - lastSeenAt.getTime() >= USE_STORED_MS) {
      endsAt = this.endOf(session.createdAt, now);
      await this.rows.extend(session, { lastSeenAt: now, endsAt });
    }
    const isConfirmed = authenticatedAt !== null && now.getTime() - authenticatedAt.getTime() <= STEP_UP_MS;
    return { ...principal, session: { id, endsAt, authenticatedAt, isConfirmed } };
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
    const place = decodeCursor<[string, string]>(cursor, 'time', 'uuid');
    const rows = await this.rows.list(isAll ? undefined : ownerOf(by), this.clock.now(), limit + 1, place);
    const view = ({ id, issuer, subject, name, createdAt, authenticatedAt, lastSeenAt, endsAt }: BrowserSession) => ({
      ...{ id, caller: { id: subject, name, issuer }, isCurrent: id === by.session?.id },
      ...{ createdAt, authenticatedAt, lastSeenAt, expiresAt: endsAt },
    });
    return pageOf(rows, limit, ({ createdAt, id }) => [createdAt.toISOString(), id], view);
  }

  /** Ends a session: in every process immediately. @throws {Problem} 404 `no-browser-session` */
  async end(id: string, by: Principal, isAny: boolean): Promise<void> {
    await this.prisma.transaction(async (tx) => {
      if (!(await this.rows.remove(tx, id, isAny ? undefined : ownerOf(by)))) throw noSession();
      this.audit.about('browser-session', id);
      if (!by.issuer) this.audit.about('api-key', by.id);
      await this.audit.store(tx);
    });
  }

  /** The ids of those sessions that have not ended. */
  async stillAlive(ids: readonly string[]): Promise<ReadonlySet<string>> {
    if (ids.length === 0) return new Set();
    return new Set((await this.rows.byIds([...ids])).filter((row) => this.grants(row)).map(({ id }) => id));
  }

  /** A row that this service did not write grants nothing. */
  private grants(row: Timed<BrowserSession>): boolean {
    return row.endsAt > row.now && this.rows.isGenuine(row);
  }

  private async principalOf(row: Timed<BrowserSession>): Promise<Principal | undefined> {
    if (!this.grants(row)) return undefined;
    const { keyHash, issuer, subject: id, name, scopes } = row;
    if (keyHash) return this.env.allowsKeySignIn ? this.keys.recogniseHash(keyHash) : undefined;
    return issuer ? { id, name, issuer, scopes: new Set(scopes as Scope[]) } : undefined;
  }

  private endOf(createdAt: Date, seenAt: Date): Date {
    const idleMs = this.env.SESSION_IDLE_MINUTES * 60_000;
    return new Date(Math.min(createdAt.getTime() + LIFETIME_MS, seenAt.getTime() + idleMs));
  }
}

const ownerOf = (by: Principal): Owner => ({ issuer: by.issuer ?? null, subject: by.id });

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

/** Takes the same time for any difference. */
const isSame = (given: string, right: string) => timingSafeEqual(hashOf(given), hashOf(right));
