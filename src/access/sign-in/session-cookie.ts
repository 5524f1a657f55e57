import { createHmac } from 'node:crypto';
import { Problem } from '../../http/problem/problem.js';

/**
 * By their prefix (RFC 6265bis §4.1.3.2) a browser accepts these cookies from this very host alone, over TLS or from
 * loopback: no neighbouring host can set a second one.
 */
const SESSION = '__Host-notebridge_session';
const PENDING = '__Host-notebridge_sign_in';

/** 32 random bytes as base64url. */
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

/** How long a sign-in at the provider may take. */
export const PENDING_SECONDS = 600;

/** The session token of a Cookie header (RFC 6265 §4.2); undefined if there is none. */
export const sessionToken = (cookies: string | undefined) => cookieOf(cookies, SESSION, TOKEN);

/** The sign-in that this browser started and has not completed. */
export const pendingSignIn = (cookies: string | undefined) => cookieOf(cookies, PENDING, /^[\w.-]{1,4000}$/);

/**
 * The Set-Cookie header of a session: no script reads it, no page of another site sends it, and it needs TLS (browsers
 * count loopback as safe). It ends with the browser; the server ends it sooner.
 *
 * @param token undefined removes the cookie
 */
export const sessionCookie = (token: string | undefined) => setCookie(SESSION, token, 'Strict');

/** The same for a pending sign-in. The redirect from the provider comes from another site, so it must be Lax. */
export const pendingCookie = (value: string | undefined) => setCookie(PENDING, value, 'Lax', PENDING_SECONDS);

function cookieOf(cookies: string | undefined, wanted: string, form: RegExp): string | undefined {
  for (const pair of cookies?.split(';') ?? []) {
    const [name = '', value = ''] = pair.trim().split('=', 2);
    if (name === wanted && form.test(value)) return value;
  }
  return undefined;
}

function setCookie(name: string, value: string | undefined, sameSite: string, seconds?: number): string {
  const maxAge = value === undefined ? 0 : seconds;
  const end = maxAge === undefined ? '' : `; Max-Age=${maxAge}`;
  return `${name}=${value ?? ''}; Path=/; HttpOnly; Secure; SameSite=${sameSite}${end}`;
}

/**
 * To a browser whose session is unknown or has ended. The cookie stays: a late answer would remove the cookie of a session
 * that was opened since.
 */
export function signedOut(): Problem {
  return new Problem('signed-out', 'This session has ended, or its key was revoked. Sign in again.');
}

/** The `X-CSRF-Token` that a page must send with each change, derived from the session's token, which no page sees. */
export function csrfTokenOf(token: string): string {
  return createHmac('sha256', token).update('csrf').digest('base64url');
}
