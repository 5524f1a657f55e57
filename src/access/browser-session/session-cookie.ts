import { createHmac } from 'node:crypto';
import { Problem } from '../../http/problem/problem.js';

/**
 * By its prefix (RFC 6265bis §4.1.3.2) a browser takes it of this very host alone, over TLS or from loopback: no
 * neighbouring host can put one beside it, so there is never a second.
 */
const NAME = '__Host-notebridge_session';

/** 32 random bytes as base64url. */
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

/** The token of a Cookie header (RFC 6265 §4.2), or undefined where it has none of ours. */
export function sessionToken(cookies: string | undefined): string | undefined {
  for (const pair of cookies?.split(';') ?? []) {
    const [name = '', value = ''] = pair.trim().split('=', 2);
    if (name === NAME && TOKEN.test(value)) return value;
  }
  return undefined;
}

/**
 * The Set-Cookie header of a session: no script reads it, no page of another site sends it, and it goes over TLS alone
 * (browsers count loopback as safe). It ends with the browser; the server ends it sooner.
 *
 * @param token undefined: the cookie is removed
 */
export function sessionCookie(token: string | undefined): string {
  const ends = token === undefined ? '; Max-Age=0' : '';
  return `${NAME}=${token ?? ''}; Path=/; HttpOnly; Secure; SameSite=Strict${ends}`;
}

/**
 * To a browser whose session is not known, or is no more. The cookie stays: an answer that comes late would remove that
 * of a session which was opened meanwhile.
 */
export function signedOut(): Problem {
  return new Problem(401, 'signed-out', 'This session has ended, or its key was revoked; sign in again.');
}

/** What a page must repeat in `X-CSRF-Token` with each change. It follows from the session's token, which no page sees. */
export function csrfTokenOf(token: string): string {
  return createHmac('sha256', token).update('csrf').digest('base64url');
}
