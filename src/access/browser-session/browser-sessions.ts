import { createHash, timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { Random } from '../../config/random.js';
import { Database } from '../../database/database.js';
import { Problem } from '../../http/problem/problem.js';
import { Audit } from '../audit/audit.js';
import type { Principal } from '../identity/scopes.js';
import { ApiKeys } from '../keys/api-keys.js';
import { hashOf } from '../keys/key-format.js';
import { RecentlyTaken } from '../keys/recently-taken.js';
import { csrfTokenOf, sessionToken } from './session-cookie.js';

/** Sessions that a key has at once: the browsers of a team. The oldest ends when there is one more. */
const MOST_OF_A_KEY = 20;

/** Hours after which a browser has to sign in again: a working day. */
const LIFETIME_HOURS = 8;

/** By the database's clock, which is one for all processes. */
export const SESSION_IS_ALIVE = 'expires_at > clock_timestamp()';

/** Methods that change nothing (RFC 9110 §9.2.1). */
const SAFE = ['GET', 'HEAD', 'OPTIONS'];

/**
 * Browsers that are signed in to the console. A key is exchanged for a random token in a cookie; what the browser does
 * then is done as that key, is recorded as that key's, and ends with it.
 */
@Injectable()
export class BrowserSessions {
  private readonly taken = new RecentlyTaken();

  constructor(
    private readonly database: Database,
    private readonly keys: ApiKeys,
    private readonly random: Random,
    private readonly audit: Audit,
  ) {}

  /** Opens a session of a key, whose oldest may end for it; those that have expired go. @returns its token, and when it ends */
  open(key: string, by: Principal): Promise<{ token: string; expiresAt: Date }> {
    const token = this.random.bytes(32).toString('base64url');
    return this.database.transaction(async (tx) => {
      // One at a time: two could not count each other.
      await tx.query('LOCK TABLE browser_sessions IN SHARE ROW EXCLUSIVE MODE');
      await tx.query(
        `DELETE FROM browser_sessions WHERE NOT (${SESSION_IS_ALIVE}) OR token_hash IN (
           SELECT token_hash FROM browser_sessions WHERE key_hash = $1 AND ${SESSION_IS_ALIVE}
           ORDER BY expires_at DESC, token_hash OFFSET ${MOST_OF_A_KEY - 1})`,
        [hashOf(key)],
      );
      const { rows } = await tx.query<{ expiresAt: Date }>(
        `INSERT INTO browser_sessions (token_hash, key_hash, expires_at)
         VALUES ($1, $2, clock_timestamp() + make_interval(hours => $3)) RETURNING expires_at AS "expiresAt"`,
        [digest(token), hashOf(key), LIFETIME_HOURS],
      );
      this.audit.about('api-key', by.id);
      await this.audit.store(tx);
      return { token, expiresAt: (rows[0] as { expiresAt: Date }).expiresAt };
    });
  }

  /** Ends the session of a request, if it has one. */
  async close({ headers }: FastifyRequest, by: Principal): Promise<void> {
    const token = sessionToken(headers.cookie);
    if (token === undefined) return;
    await this.database.transaction(async (tx) => {
      await tx.query('DELETE FROM browser_sessions WHERE token_hash = $1', [digest(token)]);
      this.audit.about('api-key', by.id);
      await this.audit.store(tx);
    });
  }

  /** Whether a session was taken when it was last looked up here: never whether it still is. */
  wasTaken(token: string): boolean {
    return this.taken.has(digest(token));
  }

  /** Who is signed in by a session; undefined when it is none of ours, has ended, or its key has. */
  async recognise(token: string): Promise<Principal | undefined> {
    const hash = digest(token);
    const { rows } = await this.database.pool.query<{ keyHash: Buffer; expiresAt: Date }>({
      name: 'browser-session',
      text: `SELECT key_hash AS "keyHash", expires_at AS "expiresAt" FROM browser_sessions
             WHERE token_hash = $1 AND ${SESSION_IS_ALIVE}`,
      values: [hash],
    });
    const [session] = rows;
    const principal = session && (await this.keys.recogniseHash(session.keyHash));
    this.taken.note(hash, principal !== undefined);
    return principal && { ...principal, session: { hash, endsAt: session.expiresAt } };
  }
}

/** A page of another site can neither read the token nor send a header of its own. @throws {Problem} 403 `forged-request` */
export function refuseForged({ method, headers }: FastifyRequest, token: string): void {
  const site = headers['sec-fetch-site'];
  const isOwn = site === undefined || site === 'same-origin' || site === 'none';
  if (isOwn && (SAFE.includes(method) || isSame(String(headers['x-csrf-token'] ?? ''), csrfTokenOf(token)))) return;
  const detail = 'A change by a browser session needs the csrfToken of GET /v1/browser-session in X-CSRF-Token.';
  throw new Problem(403, 'forged-request', detail);
}

const digest = (text: string) => createHash('sha256').update(text, 'utf8').digest();

/** Takes the same time wherever the two differ. */
const isSame = (given: string, right: string) => timingSafeEqual(digest(given), digest(right));
