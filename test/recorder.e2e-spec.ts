import type { Service } from '../harness/service.js';
import { dumpOf } from './support/database-dump.js';
import { type Mirror, useMirrors } from './support/service.js';

interface Opened {
  url: string;
}
interface ProblemBody {
  type: string;
  pointer?: string;
  missing?: string[];
  sync?: { state: string };
}

const DOMAIN = 'https://recorder.example.org';
const BACK = 'https://ehr.example.org';

const newMirror = useMirrors();
let mirror: Mirror;
let service: Service;

beforeAll(async () => {
  mirror = await newMirror({
    env: { PLATFORM_PARTNER_DOMAIN: DOMAIN, REDIRECT_ALLOWED_ORIGINS: BACK, PLATFORM_TIMEOUT_SECONDS: '60' },
  });
  service = await mirror.start();
  for (const id of ['p-1', 'p-2']) {
    const body = { email: `${id}@example.org`, firstName: 'Pia', lastName: 'Ruiz' };
    await service.call('PUT', `/v1/providers/${id}`, { body, wait: 60 });
  }
  const body = { firstName: 'Cleo', lastName: 'Adler', providers: ['p-1'] };
  await service.call('PUT', '/v1/clients/c-1', { body, wait: 60 });
});

const usual = { provider: 'p-1', client: 'c-1', variant: 'in-person' };
const launch = <Body = Opened>(body: object) => service.call<Body>('POST', '/v1/recorder/launches', { body });
const recover = <Body = Opened>(body: object) => service.call<Body>('POST', '/v1/recorder/recoveries', { body });
const idOf = (externalId: string) => mirror.usersOf(externalId)[0]?.userId;
/** Opens an answered address at the simulator, which stands behind the partner's domain here. */
const open = (url: string) => fetch(url.replace(DOMAIN, mirror.simulator.url));

describe('a launch', () => {
  it.each(['in-person', 'virtual'])('%s opens the recorder for the provider and its client', async (variant) => {
    const answer = await launch({ ...usual, variant, redirectUrl: `${BACK}/visits/7?tab=notes&lang=fr#top` });
    expect(answer.status).toBe(201);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const url = new URL(answer.body.url);
    expect([url.origin, url.pathname]).toEqual([DOMAIN, '/recorder']);
    expect(Object.fromEntries(url.searchParams)).toEqual({
      variant,
      contractId: idOf('c-1'),
      sessionToken: expect.stringMatching(/.{20}/),
      redirectUrl: `${BACK}/visits/7?tab=notes&lang=fr#top`,
    });
    expect((await open(answer.body.url)).status).toBe(200);
  });

  it('redirectUrl is optional', async () => {
    const { body } = await launch(usual);
    expect(new URL(body.url).searchParams.has('redirectUrl')).toBe(false);
  });

  it('each launch has a token of its own', async () => {
    const tokens = await Promise.all([launch(usual), launch(usual)]);
    expect(new Set(tokens.map(({ body }) => new URL(body.url).searchParams.get('sessionToken'))).size).toBe(2);
  });

  it.each([
    ['provider is required', { provider: undefined }, '/provider'],
    ['provider is an id', { provider: 7 }, '/provider'],
    ['client is required', { client: undefined }, '/client'],
    ['client is an id', { client: ' c-1' }, '/client'],
    ['variant is required', { variant: undefined }, '/variant'],
    ['variant is in-person or virtual', { variant: 'phone' }, '/variant'],
    ['redirectUrl is a text', { redirectUrl: ['https://ehr.example.org'] }, '/redirectUrl'],
    ['unknown fields are refused', { sessionToken: 'mine' }, '/sessionToken'],
  ])('400: %s', async (_rule, change, pointer) => {
    const answer = await launch<ProblemBody>({ ...usual, ...change });
    expect([answer.status, answer.body.pointer]).toEqual([400, pointer]);
  });

  it.each(['', '/back', 'https://evil.example.org/', `${BACK}.evil.example.org/`, `${BACK}@evil.example.org/`])(
    '422: redirectUrl %p is no full URL with a listed origin, and no token is asked for',
    async (redirectUrl) => {
      const asked = mirror.arrivals('initiateAuth');
      const answer = await launch<ProblemBody>({ ...usual, redirectUrl });
      expect([answer.status, answer.body.type, answer.body.pointer]).toEqual([
        422,
        'urn:notebridge:problem:redirect-not-allowed',
        '/redirectUrl',
      ]);
      expect(mirror.arrivals('initiateAuth')).toBe(asked);
    },
  );

  it.each([
    ['a provider that nobody ever named', { provider: 'p-0' }, 422, 'unknown-provider', '/provider'],
    ['a client that nobody ever named', { client: 'c-0' }, 422, 'unknown-client', '/client'],
    ['a client that the provider does not treat', { provider: 'p-2' }, 422, 'not-treated', '/client'],
  ])('%s is refused without a call', async (_who, change, status, type, pointer) => {
    const asked = mirror.arrivals('initiateAuth');
    const answer = await launch<ProblemBody>({ ...usual, ...change });
    expect([answer.status, answer.body.type, answer.body.pointer]).toEqual([
      status,
      `urn:notebridge:problem:${type}`,
      pointer,
    ]);
    expect(mirror.arrivals('initiateAuth')).toBe(asked);
  });

  it('409: a client that is not mirrored yet, with its sync state', async () => {
    mirror.trouble({ kind: 'forbid', operation: 'createClient', count: 100, match: { partnerUserId: 'c-late' } });
    const body = { firstName: 'Late', lastName: 'Comer', providers: ['p-1'] };
    await service.call('PUT', '/v1/clients/c-late', { body });
    const answer = await launch<ProblemBody>({ ...usual, client: 'c-late' });
    expect([answer.status, answer.body.type]).toEqual([409, 'urn:notebridge:problem:client-not-mirrored']);
    expect(answer.body.sync?.state).toBe('pending');
    mirror.simulator.state.faults.clear();
  });

  it.each([
    ['rejected', { kind: 'status' as const, status: 400 }, 400, 'platform-rejected'],
    ['refused for its key', { kind: 'forbid' as const }, 503, 'platform-unauthorized'],
    ['one too many', { kind: 'rate-limit' as const }, 503, 'platform-rate-limited'],
    ['without an answer', { kind: 'commit-then-cut' as const }, 504, 'platform-unclear'],
  ])('a token that is %s is answered so', async (_what, rule, status, type) => {
    mirror.trouble({ operation: 'initiateAuth', ...rule });
    const answer = await launch<ProblemBody>(usual);
    expect([answer.status, answer.body.type]).toEqual([status, `urn:notebridge:problem:${type}`]);
    expect((await launch(usual)).status).toBe(201);
  });
});

describe('a recovery', () => {
  it('opens the page of unfinished uploads for the provider', async () => {
    const answer = await recover({ provider: 'p-2' });
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([201, 'no-store']);
    const url = new URL(answer.body.url);
    expect([url.origin, url.pathname, [...url.searchParams.keys()]]).toEqual([
      DOMAIN,
      '/unuploaded-sessions',
      ['sessionToken'],
    ]);
    expect(await (await open(answer.body.url)).text()).toContain(idOf('p-2'));
  });

  it.each([
    ['provider is required', {}, 400],
    ['the provider is known', { provider: 'p-0' }, 422],
    ['no client is named', { provider: 'p-1', client: 'c-1' }, 400],
  ])('%s', async (_rule, body, status) => {
    expect((await recover(body)).status).toBe(status);
  });
});

it('the token stands in the answer and nowhere else, and each launch is in the audit trail with ids alone', async () => {
  const [one, two] = [await launch(usual), await recover({ provider: 'p-1' })];
  const tokens = [one, two].map(({ body }) => new URL(body.url).searchParams.get('sessionToken') ?? '');
  const trail = await service.call<{ items: { action: string; subjects: object }[] }>('GET', '/v1/audit?limit=200');
  const issued = trail.body.items.filter(({ action }) => action.includes('/recorder/'));
  expect(issued.slice(0, 2).map(({ action, subjects }) => ({ action, subjects }))).toEqual([
    { action: 'POST /v1/recorder/recoveries', subjects: { provider: ['p-1'] } },
    { action: 'POST /v1/recorder/launches', subjects: { provider: ['p-1'], client: ['c-1'] } },
  ]);
  const kept = `${await dumpOf(mirror.database.url)}\n${service.output()}\n${JSON.stringify(trail.body)}`;
  for (const token of tokens) {
    expect(token.length).toBeGreaterThan(20);
    expect(kept.includes(token)).toBe(false);
  }
});

it('an Idempotency-Key is not honoured: each call has a new token', async () => {
  const key = { authorization: 'Bearer admin-key-of-the-notebridge-tests', 'idempotency-key': 'once' };
  const post = () =>
    fetch(`${service.url}/v1/recorder/launches`, {
      method: 'POST',
      headers: { ...key, 'content-type': 'application/json' },
      body: JSON.stringify(usual),
    }).then((response) => response.json() as Promise<Opened>);
  expect((await post()).url).not.toBe((await post()).url);
});

it('501: without PLATFORM_PARTNER_DOMAIN, which is named', async () => {
  const bare = await mirror.start({ PLATFORM_PARTNER_DOMAIN: undefined });
  const answer = await bare.call<ProblemBody>('POST', '/v1/recorder/launches', { body: usual });
  expect([answer.status, answer.body.type, answer.body.missing]).toEqual([
    501,
    'urn:notebridge:problem:not-configured',
    ['PLATFORM_PARTNER_DOMAIN'],
  ]);
});

it('401 without a key, 403 with one that lacks the scope', async () => {
  const made = await service.call<{ key: string }>('POST', '/v1/api-keys', {
    body: { name: 'notes', scopes: ['notes:read'] },
  });
  const status = async (key: string) =>
    (await service.call('POST', '/v1/recorder/launches', { body: usual, key })).status;
  expect([await status('wrong'), await status(made.body.key)]).toEqual([401, 403]);
});
