import { Injectable, Logger } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import * as oidc from 'openid-client';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { Random } from '../../config/random.js';
import { isLoopbackHost } from '../../config/urls.js';
import { Macs } from '../../vault/macs.js';
import type { Principal } from '../identity/scopes.js';
import { type GroupScopes, readGroupScopes, scopesOfGroups } from './group-scopes.js';
import { PENDING_SECONDS, pendingCookie, pendingSignIn } from './session-cookie.js';

const TIMEOUT_SECONDS = 10;

/** A fresh sign-in must not be older: the provider asks again for the password or the second factor. */
const FRESH_SECONDS = 300;

/** Maximum length of the path that a sign-in leads back to. A cookie holds 4 kB. */
const MAX_RETURN_LENGTH = 1_500;

const MAX_NAME_LENGTH = 100;

/** Why a sign-in failed. The console has a sentence for each. */
type RefusalCode = 'expired' | 'no-scopes' | 'not-configured' | 'provider-refused' | 'provider-unavailable';

export class SignInRefused extends Error {
  /** @param person the person that the provider identified */
  constructor(
    readonly code: RefusalCode,
    readonly person?: Principal,
  ) {
    super(code);
  }
}

/** A sign-in in progress at the provider. The browser keeps it in a cookie, so only that browser can complete it. */
interface Pending {
  state: string;
  nonce: string;
  verifier: string;
  /** A path of the console. */
  returnTo: string;
  isFresh: boolean;
  /** The session that the new one replaces. */
  replaces?: string;
  endsAt: number;
}

/** Sign-in of people at an OpenID provider: authorization code with PKCE, state and nonce (OpenID Connect Core §3.1). */
@Injectable()
export class OpenIdConnect {
  private readonly log = new Logger(OpenIdConnect.name);
  private readonly groups: GroupScopes;
  private discovered: Promise<oidc.Configuration> | undefined;

  /** @throws {Error} for an OIDC_SCOPES that is not usable */
  constructor(
    private readonly env: Env,
    private readonly clock: Clock,
    private readonly random: Random,
    private readonly macs: Macs,
  ) {
    this.groups = env.OIDC_SCOPES === undefined ? new Map() : readGroupScopes(env.OIDC_SCOPES);
  }

  /** The provider's host; null if there is none. */
  get provider(): string | null {
    return this.env.OIDC_ISSUER === undefined ? null : new URL(this.env.OIDC_ISSUER).host;
  }

  /** @returns the provider's page, and the cookie of the pending sign-in @throws {SignInRefused} */
  async start(request: FastifyRequest, replaces?: string): Promise<{ url: string; cookie: string }> {
    const query = new URL(request.url, 'http://localhost').searchParams;
    const isFresh = query.get('fresh') === 'true';
    const [state, nonce, verifier] = [this.secret(), this.secret(), this.secret()];
    const endsAt = this.clock.now().getTime() + PENDING_SECONDS * 1_000;
    const returnTo = consolePath(query.get('returnTo'));
    const redirectUri = this.redirectUri(request).href;
    const configuration = await this.discover();
    const claim = this.env.OIDC_SCOPES_CLAIM ?? '';
    const hasOwnScope = configuration.serverMetadata().scopes_supported?.includes(claim);
    const url = oidc.buildAuthorizationUrl(configuration, {
      ...{ redirect_uri: redirectUri, scope: `openid profile${hasOwnScope ? ` ${claim}` : ''}`, state, nonce },
      ...{ code_challenge: await oidc.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256' },
      ...(isFresh && { prompt: 'login', max_age: String(FRESH_SECONDS) }),
    });
    const pending = this.seal({ state, nonce, verifier, returnTo, isFresh, replaces, endsAt });
    return { url: url.href, cookie: pendingCookie(pending) };
  }

  /** Completes the sign-in that this browser started. @throws {SignInRefused} */
  async complete(request: FastifyRequest) {
    const pending = this.open(pendingSignIn(request.headers.cookie));
    if (!pending) throw new SignInRefused('expired');
    const url = this.redirectUri(request);
    url.search = new URL(request.url, url).search;
    const configuration = await this.discover();
    const claims = await oidc
      .authorizationCodeGrant(configuration, url, {
        ...{ expectedState: pending.state, expectedNonce: pending.nonce, pkceCodeVerifier: pending.verifier },
        ...{ idTokenExpected: true, ...(pending.isFresh && { maxAge: FRESH_SECONDS }) },
      })
      .then((tokens) => tokens.claims() as oidc.IDToken)
      .catch((error: unknown) => this.refuse(error));
    const { sub: id, iss: issuer, name, preferred_username: userName, auth_time: time } = claims;
    const scopes = scopesOfGroups(this.groups, claims[this.env.OIDC_SCOPES_CLAIM ?? '']);
    const by: Principal = { id, name: displayName(name ?? userName) ?? id, issuer, scopes };
    if (scopes.size === 0) throw new SignInRefused('no-scopes', by);
    const { returnTo, replaces } = pending;
    // The provider's clock may be ahead.
    const authenticatedAt = time === undefined ? null : new Date(Math.min(time * 1_000, this.clock.now().getTime()));
    return { by, authenticatedAt, returnTo, replaces };
  }

  /** The provider's metadata: asked for once, and again after a failure. */
  private discover(): Promise<oidc.Configuration> {
    const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId = '', OIDC_CLIENT_SECRET: secret = '' } = this.env;
    if (issuer === undefined) throw new SignInRefused('not-configured');
    const [post, basic] = [oidc.ClientSecretPost(secret), oidc.ClientSecretBasic(secret)];
    const authenticate: oidc.ClientAuth = (server, ...more) =>
      (server.token_endpoint_auth_methods_supported?.includes('client_secret_post') ? post : basic)(server, ...more);
    const execute = isLoopbackHost(new URL(issuer).hostname) ? [oidc.allowInsecureRequests] : [];
    this.discovered ??= oidc
      .discovery(new URL(issuer), clientId, undefined, authenticate, { execute, timeout: TIMEOUT_SECONDS })
      .catch((error: unknown) => {
        this.discovered = undefined;
        return this.refuse(error);
      });
    return this.discovered;
  }

  /** Logs the library's code of a failure: the provider's own message could contain a name. */
  private refuse(error: unknown): never {
    const { code = 'unknown', name } = error as Error & { code?: string };
    const isRefused = error instanceof oidc.AuthorizationResponseError;
    const isUnavailable = !isRefused && (name === 'TypeError' || name === 'TimeoutError' || code === 'OAUTH_TIMEOUT');
    this.log.warn({ msg: 'the OpenID provider did not complete a sign-in', code, name });
    throw new SignInRefused(isUnavailable ? 'provider-unavailable' : 'provider-refused');
  }

  /** The URL to which the provider redirects the browser. Only a loopback host is trusted to be this service's own. */
  private redirectUri({ protocol, host, hostname }: FastifyRequest): URL {
    const own = isLoopbackHost(hostname) ? `${protocol}://${host}` : undefined;
    const base = this.env.PUBLIC_URL ?? own;
    if (base === undefined) throw new SignInRefused('not-configured');
    return new URL('/v1/sign-in/callback', base);
  }

  private secret(): string {
    return this.random.bytes(32).toString('base64url');
  }

  private seal(pending: Pending): string {
    const text = Buffer.from(JSON.stringify(pending)).toString('base64url');
    return `${text}.${this.macs.sign('pending-sign-in', [text]).toString('base64url')}`;
  }

  private open(cookie = ''): Pending | undefined {
    const [text = '', mac = ''] = cookie.split('.');
    if (!this.macs.verify('pending-sign-in', [text], Buffer.from(mac, 'base64url'))) return undefined;
    const pending = JSON.parse(Buffer.from(text, 'base64url').toString()) as Pending;
    return pending.endsAt > this.clock.now().getTime() ? pending : undefined;
  }
}

/** A path of the console; `/console` for anything else, so that no link leads on to another site. */
function consolePath(asked: string | null): string {
  const own = 'http://localhost';
  const url = URL.canParse(asked ?? '', own) ? new URL(asked ?? '', own) : undefined;
  if (url?.origin !== own || !/^\/console(\/|$)/.test(url.pathname)) return '/console';
  const path = url.pathname + url.search;
  return path.length > MAX_RETURN_LENGTH ? '/console' : path;
}

/** A name without control characters; undefined for none. */
function displayName(name: unknown): string | undefined {
  if (typeof name !== 'string') return undefined;
  return [...name.replace(/[\p{C}\p{Z}]+/gu, ' ').trim()].slice(0, MAX_NAME_LENGTH).join('') || undefined;
}
