import { randomUUID } from 'node:crypto';
import type {
  BrowserSessionResponse,
  ListedSessionPageResponse,
} from '../../src/access/sign-in/browser-session.dto.js';
import type { AuditPageResponse } from '../../src/audit/audit.dto.js';
import { ADMIN_KEY } from '../support/app.js';
import { HttpBrowser, useOpenId } from '../support/openid.js';

const { world, provider } = useOpenId();

const SESSION = '__Host-notebridge_session';
const PENDING = '__Host-notebridge_sign_in';
const bearer = (key: string = ADMIN_KEY) => ({ authorization: `Bearer ${key}` });

const browser = () => new HttpBrowser(world.url);
const signedIn = async (login: string, query?: string) => {
  const made = browser();
  await world.advance('1 ms');
  expect(target(await made.signIn(login, query))).toBe('/console');
  return made;
};
const session = (of: HttpBrowser) => of.ask<BrowserSessionResponse>('GET', '/v1/browser-session');
const sessions = async (of: HttpBrowser) =>
  (await of.ask<ListedSessionPageResponse>('GET', '/v1/browser-sessions')).body.items;
const entries = async (action: string) =>
  (await world.call<AuditPageResponse>('GET', `/v1/audit?action=${encodeURIComponent(action)}`)).body.items;
/** The target of a redirect. */
const target = (answer: Response) => answer.headers.get('location');
const refusal = (answer: Response) => target(answer)?.split('/console/sign-in?refused=')[1];
const CALLBACK = 'GET /v1/sign-in/callback';

describe('sign-in at the OpenID provider', () => {
  test('opens a session with the scopes of the groups, and leads back to the page', async () => {
    const ada = browser();
    const answer = await ada.signIn('ada', '?returnTo=%2Fconsole%2Fkeys%3Fa%3D1%26b%3D2');
    expect(target(answer)).toBe('/console/keys?a=1&b=2');
    const [cookie] = answer.headers.getSetCookie().filter((line) => line.startsWith(SESSION));
    expect(cookie).toMatch(/; Path=\/; HttpOnly; Secure; SameSite=Strict$/);
    expect(ada.cookie(PENDING)).toBeUndefined();
    const { body } = await session(ada);
    const caller = { id: 'ada', name: 'Ada Osei', issuer: provider.issuer };
    expect(body.caller).toMatchObject({ ...caller, scopes: expect.arrayContaining(['admin', 'notes:read']) });
    expect((await ada.ask('GET', '/v1/api-keys')).status).toBe(200);
    expect(await entries(CALLBACK)).toMatchObject([
      { keyId: 'ada', keyName: 'Ada Osei', issuer: provider.issuer, outcome: 'ok' },
    ]);
    expect(await entries('GET /v1/api-keys')).toMatchObject([{ keyId: 'ada', keyName: 'Ada Osei' }]);
  });

  test('asks with PKCE, state and nonce, and for the scope that is named as the claim', async () => {
    const someone = browser();
    const { searchParams } = new URL((await someone.go('/v1/sign-in')).headers.get('location') ?? '');
    expect(Object.fromEntries(searchParams)).toEqual({
      client_id: 'notebridge',
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
      nonce: expect.stringMatching(/^[\w-]{43}$/),
      redirect_uri: `${world.url}/v1/sign-in/callback`,
      response_type: 'code',
      scope: 'openid profile groups',
      state: expect.stringMatching(/^[\w-]{43}$/),
    });
  });

  test('rejects a route whose scope the groups lack', async () => {
    const cleo = await signedIn('cleo');
    expect((await cleo.ask('GET', '/v1/clients')).status).toBe(200);
    expect(await cleo.ask('GET', '/v1/api-keys')).toMatchObject({ status: 403, problem: 'forbidden-scope' });
    expect(await entries('GET /v1/api-keys')).toMatchObject([{ keyName: 'Cleo Brandt', outcome: 'forbidden-scope' }]);
  });

  test('rejects a person without a known group, and records who it was', async () => {
    const zoe = browser();
    const answer = await zoe.signIn('zoe');
    expect(refusal(answer)).toBe('no-scopes');
    expect(zoe.cookie(SESSION)).toBeUndefined();
    expect(await entries(CALLBACK)).toMatchObject([{ keyName: 'Zoe Lindqvist', outcome: 'no-scopes' }]);
  });

  test("does not repeat the provider's error message", async () => {
    const ada = browser();
    const answer = await ada.signIn('refuse');
    expect(target(answer)).toBe('/console/sign-in?refused=provider-refused');
    expect(ada.cookie(SESSION)).toBeUndefined();
  });

  /** Attacks on the callback; each gets the browser that started the sign-in and the address that the provider gave. */
  const attacks: Record<string, (ada: HttpBrowser, callback: URL) => Promise<Response>> = {
    'a wrong state': (ada, callback) => {
      callback.searchParams.set('state', 'x'.repeat(43));
      return ada.go(callback.href);
    },
    'a wrong code': (ada, callback) => {
      callback.searchParams.set('code', 'x'.repeat(43));
      return ada.go(callback.href);
    },
    'another issuer': (ada, callback) => {
      callback.searchParams.set('iss', 'https://evil.example');
      return ada.go(callback.href);
    },
    'another browser': (_, callback) => browser().go(callback.href),
    'a browser that started its own sign-in': async (_, callback) => {
      const other = browser();
      await other.toProvider();
      return other.go(callback.href);
    },
    'a changed cookie': (ada, callback) => {
      const [text = '', mac] = (ada.cookie(PENDING) ?? '').split('.');
      const changed = { ...JSON.parse(Buffer.from(text, 'base64url').toString()), returnTo: '/console/keys' };
      ada.setCookie(PENDING, `${Buffer.from(JSON.stringify(changed)).toString('base64url')}.${mac}`);
      return ada.go(callback.href);
    },
    'a sign-in that took over ten minutes': async (ada, callback) => {
      await world.advance('601 s');
      return ada.go(callback.href);
    },
  };
  test.each(Object.entries(attacks))('rejects %s', async (_, attack) => {
    const ada = browser();
    const callback = await ada.choose('ada', await ada.toProvider());
    const answer = await attack(ada, new URL(callback));
    expect(['expired', 'provider-refused']).toContain(refusal(answer));
    expect(answer.headers.getSetCookie().join()).not.toContain(SESSION);
    expect(await world.sql('SELECT FROM browser_sessions')).toEqual([]);
  });

  test('rejects the nonce of another sign-in', async () => {
    const ada = browser();
    const page = await ada.toProvider('', (asked) => asked.searchParams.set('nonce', 'x'.repeat(43)));
    const answer = await ada.go(await ada.choose('ada', page));
    expect([refusal(answer), ada.cookie(SESSION)]).toEqual(['provider-refused', undefined]);
  });

  test('accepts a code once', async () => {
    const ada = browser();
    const callback = await ada.choose('ada', await ada.toProvider());
    const pending = ada.cookie(PENDING) ?? '';
    expect(target(await ada.go(callback))).toBe('/console');
    expect(refusal(await ada.go(callback))).toBe('expired');
    ada.setCookie(PENDING, pending);
    expect(refusal(await ada.go(callback))).toBe('provider-refused');
    expect(await world.sql('SELECT FROM browser_sessions')).toHaveLength(1);
  });

  test.each([
    '//evil.example',
    'https://evil.example/console',
    '/console/..//evil.example',
    '/\\evil.example',
    '/docs',
  ])('leads to the console instead of %s', async (place) => {
    const answer = await browser().signIn('cleo', `?returnTo=${encodeURIComponent(place)}`);
    expect(target(answer)).toBe('/console');
  });

  test('accepts a name without control characters, or uses the id if there is none', async () => {
    provider.people.set('p-1', { name: '\u001b[31mAda\u202e\n Osei', groups: ['admins'] });
    provider.people.set('p-2', { groups: ['admins'] });
    expect((await session(await signedIn('p-1'))).body.caller.name).toBe('[31mAda Osei');
    expect((await session(await signedIn('p-2'))).body.caller.name).toBe('p-2');
  });

  test('reports that the provider does not answer, and works again once it does', async () => {
    await world.restart({ OIDC_ISSUER: 'http://localhost:1' });
    const answer = await browser().go('/v1/sign-in');
    expect(refusal(answer)).toBe('provider-unavailable');
  });

  test('is off without settings, and starts with all of them or none', async () => {
    const none = { OIDC_CLIENT_ID: undefined, OIDC_CLIENT_SECRET: undefined, OIDC_SCOPES: undefined };
    await expect(world.startAnother({ OIDC_SCOPES: '{"admins": ["root"]}' })).rejects.toThrow(
      'admins has the unknown scope root',
    );
    await expect(world.startAnother(none)).rejects.toThrow(/OIDC_CLIENT_ID is not set: it must be set/);
    await world.restart({ ...none, OIDC_ISSUER: undefined, OIDC_SCOPES_CLAIM: undefined });
    expect((await world.call('GET', '/v1/sign-in/methods')).body).toEqual({ key: true, provider: null });
    expect(refusal(await browser().go('/v1/sign-in'))).toBe('not-configured');
  });
});

describe('a session', () => {
  test('ends without use, even if a page refreshes its data', async () => {
    const ada = await signedIn('ada');
    for (let minutes = 0; minutes < 28; minutes += 7) {
      await world.advance('7 min');
      expect((await session(ada)).status).toBe(200);
    }
    await world.advance('121 s');
    expect((await session(ada)).problem).toBe('signed-out');
  });

  test('lasts with use, until eight hours after the sign-in', async () => {
    const ada = await signedIn('ada');
    const use = { headers: { 'notebridge-in-use': 'true' } };
    for (let minutes = 0; minutes < 460; minutes += 20) {
      await world.advance('20 min');
      expect((await ada.ask('GET', '/v1/capabilities', use)).status).toBe(200);
    }
    await world.advance('19 min');
    expect((await session(ada)).status).toBe(200);
    await world.advance('61 s');
    expect((await session(ada)).problem).toBe('signed-out');
  });

  test('is replaced if its browser signs in again', async () => {
    const ada = await signedIn('ada');
    const before = ada.cookie(SESSION) ?? '';
    expect(target(await ada.signIn('ada', '?fresh=true'))).toBe('/console');
    expect((await session(ada)).status).toBe(200);
    ada.setCookie(SESSION, before);
    expect((await session(ada)).problem).toBe('signed-out');
  });

  const CHANGES = {
    scopes: `scopes = '{admin,notes:read}'`,
    subject: `subject = 'ada'`,
    name: `name = 'Ada Osei'`,
    issuer: `issuer = 'https://evil.example'`,
    'sign-in time': `created_at = created_at + interval '1 hour'`,
    end: `ends_at = ends_at + interval '1 day'`,
    'last use': `last_seen_at = last_seen_at + interval '1 minute'`,
    'step-up': `authenticated_at = authenticated_at + interval '1 day'`,
    key: `key_hash = sha256('${ADMIN_KEY}'), scopes = '{}'`,
    'MAC of another row': `mac = (SELECT mac FROM browser_sessions WHERE subject = 'ada')`,
  };
  test.each(Object.entries(CHANGES))('grants nothing after a change of its %s in the database', async (_, change) => {
    await signedIn('ada');
    const cleo = await signedIn('cleo');
    await world.sql(`UPDATE browser_sessions SET ${change} WHERE subject = 'cleo'`);
    expect((await session(cleo)).problem).toBe('signed-out');
    const { checks } = (await world.call<{ checks: Record<string, { status: string }> }>('GET', '/health/ready')).body;
    expect(checks.grants).toMatchObject({ status: 'degraded' });
  });

  const TOKEN = 'T'.repeat(43);
  test.each([
    [
      'inserts it into the database',
      () =>
        world.sql(
          `INSERT INTO browser_sessions (id, token_hash, issuer, subject, name, scopes, created_at, authenticated_at,
             last_seen_at, ends_at, mac)
           VALUES ($1, sha256($2::bytea), $3, 'ada', 'Ada', '{admin}', now(), now(), now(), now() + interval '1 hour', '\\x00')`,
          [randomUUID(), TOKEN, provider.issuer],
        ),
    ],
    [
      'gives it another token',
      async () => {
        await signedIn('ada');
        await world.sql('UPDATE browser_sessions SET token_hash = sha256($1::bytea)', [TOKEN]);
      },
    ],
  ])('grants nothing if an attacker %s', async (_, forge) => {
    await forge();
    const thief = browser();
    thief.setCookie(SESSION, TOKEN);
    expect((await session(thief)).problem).toBe('signed-out');
  });

  test('is listed for its owner, and for administrators', async () => {
    const [ada, cleo, again] = [await signedIn('ada'), await signedIn('cleo'), await signedIn('cleo')];
    expect((await sessions(ada)).map(({ caller, isCurrent }) => [caller.id, isCurrent])).toEqual([
      ['cleo', false],
      ['cleo', false],
      ['ada', true],
    ]);
    expect((await sessions(cleo)).map(({ isCurrent }) => isCurrent)).toEqual([false, true]);
    const page = await ada.ask<ListedSessionPageResponse>('GET', '/v1/browser-sessions?limit=2');
    const next = await ada.ask<ListedSessionPageResponse>('GET', `/v1/browser-sessions?cursor=${page.body.nextCursor}`);
    expect(next.body.items).toMatchObject([{ caller: { id: 'ada' } }]);
    await again.ask('DELETE', '/v1/browser-session');
    expect(await sessions(cleo)).toHaveLength(1);
  });

  test('is ended by its owner or an administrator, and the audit log names them', async () => {
    const [ada, cleo] = [await signedIn('ada'), await signedIn('cleo')];
    const idOf = async (of: HttpBrowser) => (await sessions(of)).find(({ isCurrent }) => isCurrent)?.id;
    const [adaId, cleoId] = [await idOf(ada), await idOf(cleo)];
    const end = (by: HttpBrowser, id?: string) => by.ask('DELETE', `/v1/browser-sessions/${id}`);
    expect(await end(cleo, adaId)).toMatchObject({ status: 404, problem: 'no-browser-session' });
    expect((await end(ada, cleoId)).status).toBe(204);
    expect((await session(cleo)).problem).toBe('signed-out');
    expect((await end(ada, adaId)).status).toBe(204);
    const ended = await entries('DELETE /v1/browser-sessions/:id');
    expect(ended.map(({ keyName, outcome, subjects }) => [keyName, outcome, subjects['browser-session']])).toEqual([
      ['Ada Osei', 'ok', [adaId]],
      ['Ada Osei', 'ok', [cleoId]],
      ['Cleo Brandt', 'no-browser-session', undefined],
    ]);
  });

  test('is rejected without its CSRF token', async () => {
    const ada = await signedIn('ada');
    const [{ id } = { id: '' }] = await sessions(ada);
    for (const path of [`/v1/browser-sessions/${id}`, '/v1/browser-session'])
      expect((await ada.go(path, { method: 'DELETE' })).status).toBe(403);
  });
});

describe('keys', () => {
  const open = () => fetch(`${world.url}/v1/browser-session`, { method: 'POST', headers: bearer() });

  test('end with their sessions', async () => {
    const { id, key } = (
      await world.call<{ id: string; key: string }>('POST', '/v1/api-keys', { body: { name: 'k', scopes: ['admin'] } })
    ).body;
    const mine = browser();
    await mine.go('/v1/browser-session', { method: 'POST', headers: bearer(key) });
    expect((await session(mine)).body.caller).toMatchObject({ id, name: 'k', issuer: null });
    await world.call('DELETE', `/v1/api-keys/${id}`);
    expect((await session(mine)).problem).toBe('signed-out');
  });

  test('open no session where CONSOLE_KEY_SIGN_IN is false, and open ones end', async () => {
    const before = browser();
    await before.go('/v1/browser-session', { method: 'POST', headers: bearer() });
    expect((await session(before)).status).toBe(200);
    await world.restart({ CONSOLE_KEY_SIGN_IN: 'false' });
    const answer = await open();
    expect([answer.status, await answer.json()]).toMatchObject([
      403,
      { type: 'urn:notebridge:problem:key-sign-in-off' },
    ]);
    const mine = browser();
    mine.setCookie(SESSION, before.cookie(SESSION) ?? '');
    expect((await session(mine)).problem).toBe('signed-out');
    const { host } = new URL(provider.issuer);
    expect((await world.call('GET', '/v1/sign-in/methods')).body).toEqual({ key: false, provider: host });
    await signedIn('ada');
  });

  test('must name their end user if REQUIRE_ON_BEHALF_OF is true, people need not', async () => {
    await world.restart({ REQUIRE_ON_BEHALF_OF: 'true' });
    const status = async (headers = {}) => (await world.call('GET', '/v1/clients', { headers })).status;
    expect([await status(), await status({ 'notebridge-on-behalf-of': 'u-17' })]).toEqual([400, 200]);
    expect((await (await signedIn('ada')).ask('GET', '/v1/clients')).status).toBe(200);
    expect((await world.call('GET', '/v1/sign-in/methods')).body).toMatchObject({ key: false });
  });
});
