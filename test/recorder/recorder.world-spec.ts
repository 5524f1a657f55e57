import { dumpOf } from '../../harness/database-dump.js';
import { mirroredPeople } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';

interface Opened {
  url: string;
}
interface ProblemBody {
  type: string;
  pointer?: string;
  sync?: { state: string };
}

const DOMAIN = 'https://recorder.example.org';
const BACK = 'https://ehr.example.org';

const world = useWorld({ settings: { PLATFORM_PARTNER_DOMAIN: DOMAIN, REDIRECT_ALLOWED_ORIGINS: BACK } });
let people: Awaited<ReturnType<typeof mirroredPeople>>;
beforeEach(async () => {
  people = await mirroredPeople(world);
});

const usual = { provider: 'p-1', client: 'c-1', variant: 'in-person' };
const launch = <Body = Opened>(body: object = usual, idempotencyKey?: string) =>
  world.call<Body>('POST', '/v1/recorder/launches', { body, idempotencyKey });
const recover = <Body = Opened>(body: object) => world.call<Body>('POST', '/v1/recorder/recoveries', { body });
const tokenOf = ({ body }: { body: Opened }) => new URL(body.url).searchParams.get('sessionToken') ?? '';
/** Opens an answered address at the simulator, which has the pages of the partner's domain. */
const open = (url: string) => fetch(url.replace(DOMAIN, world.platform.url));
const tokensAsked = () => world.platform.arrivals('initiateAuth');

describe('a launch', () => {
  test.each(['in-person', 'virtual'])('%s opens the recorder for the provider and its client', async (variant) => {
    const redirectUrl = `${BACK}/visits/7?tab=notes&lang=fr#top`;
    const { status, headers, body } = await launch({ ...usual, variant, redirectUrl });
    expect([status, headers.get('cache-control')]).toEqual([201, 'no-store']);
    const url = new URL(body.url);
    expect([url.origin, url.pathname]).toEqual([DOMAIN, '/recorder']);
    const sessionToken = expect.stringMatching(/.{20}/);
    expect(Object.fromEntries(url.searchParams)).toEqual({
      ...{ variant, redirectUrl, sessionToken },
      contractId: people.client,
    });
    expect((await open(body.url)).status).toBe(200);
  });

  test('has its own token each time, also with the same Idempotency-Key', async () => {
    const tokens = [await launch(usual, 'once'), await launch(usual, 'once')].map(tokenOf);
    expect(new Set(tokens).size).toBe(2);
  });

  test.each([
    ['no provider', { provider: undefined }, '/provider'],
    ['a provider that is not text', { provider: 7 }, '/provider'],
    ['no client', { client: undefined }, '/client'],
    ['a client id with a blank', { client: ' c-1' }, '/client'],
    ['no variant', { variant: undefined }, '/variant'],
    ['an unknown variant', { variant: 'phone' }, '/variant'],
    ['a redirectUrl that is not text', { redirectUrl: [BACK] }, '/redirectUrl'],
    ['an unknown field', { sessionToken: 'mine' }, '/sessionToken'],
  ])('with %s is answered 400', async (_rule, change, pointer) => {
    const { status, body } = await launch<ProblemBody>({ ...usual, ...change });
    expect([status, body.pointer]).toEqual([400, pointer]);
  });

  test.each([
    ['an empty redirectUrl', { redirectUrl: '' }, 422, 'redirect-not-allowed', '/redirectUrl'],
    ['a redirectUrl elsewhere', { redirectUrl: `${BACK}.evil.example/` }, 422, 'redirect-not-allowed', '/redirectUrl'],
    ['an unknown provider', { provider: 'p-0' }, 422, 'unknown-provider', '/provider'],
    ['an unknown client', { client: 'c-0' }, 422, 'unknown-client', '/client'],
    ['a client of another provider', { provider: 'p-2' }, 422, 'not-treated', '/client'],
  ])('with %s is rejected without a call to the platform', async (_rule, change, status, type, pointer) => {
    const { body, ...answer } = await launch<ProblemBody>({ ...usual, ...change });
    const problem = [answer.status, body.type, body.pointer, tokensAsked()];
    expect(problem).toEqual([status, `urn:notebridge:problem:${type}`, pointer, 0]);
  });

  test('for a client that is not mirrored yet is answered 409 with its sync state', async () => {
    const { status, body } = await launch<ProblemBody>({ ...usual, client: 'c-2' });
    expect([status, body.type, body.sync?.state]).toEqual([
      409,
      'urn:notebridge:problem:client-not-mirrored',
      'waiting',
    ]);
  });

  test.each([
    [{ kind: 'status', status: 400 }, 400, 'platform-rejected'],
    [{ kind: 'forbid' }, 503, 'platform-unauthorized'],
    [{ kind: 'rate-limit' }, 503, 'platform-rate-limited'],
    [{ kind: 'commit-then-cut' }, 504, 'platform-unclear'],
  ] as const)('passes on the platform fault %j, and works a minute later', async (rule, status, type) => {
    world.platform.injectFault({ operation: 'initiateAuth', ...rule });
    const { body, ...answer } = await launch<ProblemBody>();
    expect([answer.status, body.type]).toEqual([status, `urn:notebridge:problem:${type}`]);
    await world.advance('1 min');
    expect((await launch()).status).toBe(201);
  });
});

describe('a recovery', () => {
  test('opens the page of unfinished uploads for the provider', async () => {
    const { status, headers, body } = await recover({ provider: 'p-2' });
    expect([status, headers.get('cache-control')]).toEqual([201, 'no-store']);
    const url = new URL(body.url);
    const parts = [url.origin, url.pathname, [...url.searchParams.keys()]];
    expect(parts).toEqual([DOMAIN, '/unuploaded-sessions', ['sessionToken']]);
    expect(await (await open(body.url)).text()).toContain(people.other);
  });

  test.each([
    ['without a provider', {}, 400],
    ['of an unknown provider', { provider: 'p-0' }, 422],
    ['with a client', { provider: 'p-1', client: 'c-1' }, 400],
  ])('%s is rejected', async (_rule, body, status) => {
    expect((await recover(body)).status).toBe(status);
  });
});

test('tokens are kept nowhere, and each launch is in the audit log with its ids', async () => {
  const tokens = [await launch(), await recover({ provider: 'p-1' })].map(tokenOf);
  const log = await world.call<{ items: { action: string; subjects: object }[] }>('GET', '/v1/audit');
  expect(log.body.items.map(({ action, subjects }) => ({ action, subjects }))).toEqual([
    { action: 'POST /v1/recorder/recoveries', subjects: { provider: ['p-1'] } },
    { action: 'POST /v1/recorder/launches', subjects: { provider: ['p-1'], client: ['c-1'] } },
  ]);
  const kept = `${await dumpOf(world.database.url)}\n${log.text}`;
  for (const token of tokens) {
    const forms = [token, Buffer.from(token).toString('hex')]; // as text, and as a dump shows bytes
    expect([token.length > 20, forms.some((form) => kept.includes(form))]).toEqual([true, false]);
  }
});
