import { generateKeyPairSync } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import Provider, { type JWK } from 'oidc-provider';

/** A person who can sign in. */
interface Person {
  readonly name?: string;
  readonly groups?: unknown;
  /** When the password was entered, if it is not now. */
  readonly authenticatedAt?: Date;
}

const CLIENT = { id: 'notebridge', secret: 'secret-of-the-client' };

/** An OpenID provider on loopback. Its page asks who signs in, and accepts everyone in `people`. */
export class OpenIdProvider {
  /** People by id. */
  readonly people = new Map<string, Person>();

  private constructor(
    private readonly server: Server,
    private readonly now: () => Date,
  ) {}

  /** @param now the time at which people sign in */
  static async start(now: () => Date): Promise<OpenIdProvider> {
    const server = createServer();
    await new Promise<void>((listening) => server.listen(0, 'localhost', listening));
    const own = new OpenIdProvider(server, now);
    const provider = own.configure();
    const answer = provider.callback();
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      if (request.url?.startsWith('/interaction/'))
        own.interact(provider, request, response).catch(() => response.end());
      else void answer(request, response);
    });
    return own;
  }

  /** A host that is another site than 127.0.0.1, so that a browser treats it like a real provider. */
  get issuer(): string {
    return `http://localhost:${(this.server.address() as AddressInfo).port}`;
  }

  /** The settings of a service that uses it. @param scopes of each group */
  settings(scopes: Record<string, readonly string[]>): Record<string, string> {
    return {
      OIDC_ISSUER: this.issuer,
      OIDC_CLIENT_ID: CLIENT.id,
      OIDC_CLIENT_SECRET: CLIENT.secret,
      OIDC_SCOPES_CLAIM: 'groups',
      OIDC_SCOPES: JSON.stringify(scopes),
    };
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((closed) => this.server.close(closed));
  }

  private configure(): Provider {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const key = { ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256' } as JWK;
    const provider = new Provider(this.issuer, {
      jwks: { keys: [key] },
      clients: [
        {
          ...{
            client_id: CLIENT.id,
            client_secret: CLIENT.secret,
            redirect_uris: ['http://127.0.0.1/v1/sign-in/callback'],
          },
          require_auth_time: true,
        },
      ],
      cookies: { keys: ['key-of-the-cookies'] },
      claims: { openid: ['sub'], profile: ['name'], groups: ['groups'] },
      conformIdTokenClaims: false,
      features: { devInteractions: { enabled: false } },
      interactions: { url: (_, { uid }) => `/interaction/${uid}` },
      findAccount: (_, accountId) => ({
        accountId,
        claims: () => {
          const { name, groups } = this.people.get(accountId) ?? {};
          return { sub: accountId, name, groups };
        },
      }),
      // No consent is requested.
      loadExistingGrant: async ({ oidc }) => {
        const grant = new provider.Grant({ clientId: oidc.client?.clientId, accountId: oidc.session?.accountId });
        grant.addOIDCScope('openid profile groups');
        await grant.save();
        return grant;
      },
    });
    // The service uses any free port.
    provider.Client.prototype.redirectUriAllowed = (uri: string) => uri.endsWith('/v1/sign-in/callback');
    return provider;
  }

  private async interact(provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST') {
      response.setHeader('content-type', 'text/html');
      response.end(`<!doctype html><title>Provider</title><h1>Who are you?</h1>
<form method="post"><input name="login" aria-label="Login"><button>Continue</button><button name="refuse" value="1">Refuse</button></form>`);
      return;
    }
    const form = new URLSearchParams(await text(request));
    const accountId = form.get('login') ?? '';
    const person = this.people.get(accountId);
    const ts = Math.floor((person?.authenticatedAt ?? this.now()).getTime() / 1_000);
    const denied = { error: 'access_denied', error_description: `${accountId} <b>may not</b>` };
    const result = person && !form.has('refuse') ? { login: { accountId, ts } } : denied;
    await provider.interactionFinished(request, response, result);
  }
}
