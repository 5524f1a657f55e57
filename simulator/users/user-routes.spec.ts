import { callSimulator, newSimulatedClient, newSimulatedProvider } from '../../test/support/simulator-call.js';
import { buildSimulator, type Simulator } from '../app.js';
import type { ArrivalStats } from '../gate/arrivals.js';

let simulator: Simulator;

beforeAll(async () => {
  // On this clock all calls of a test arrive in one window.
  simulator = await buildSimulator({ seed: 1, nowMs: () => 1_800_000_000_000, settings: { stepMs: 0 } });
});
afterEach(() => {
  jest.restoreAllMocks();
  simulator.state.reset();
});
afterAll(() => simulator.close());

const call = (method: string, path: string, body?: unknown, key?: string) =>
  callSimulator(simulator, method, path, body, key);
const statusOf = async (method: string, path: string, body?: unknown) => (await call(method, path, body)).status;
const newProvider = (email?: string) => newSimulatedProvider(simulator, email);
const newClient = (therapist: string, more?: object) => newSimulatedClient(simulator, therapist, more);
const stats = async (query = '') => (await call('GET', `/_simulator/stats${query}`)).json<ArrivalStats>();
const order = (...rules: object[]) => call('POST', '/_simulator/faults', rules);
const people = async () =>
  (await call('GET', '/_simulator/users')).json<{ total: number; duplicates: Record<string, string[]> }>();
const ADA = { email: 'ada@example.test', firstName: 'Ada', lastName: 'Byron' };

describe('users', () => {
  it('creates a provider with an invite URL and finds it by email in any case', async () => {
    const created = await call('POST', '/users/providers', { ...ADA, partnerUserId: 'p-1' });
    expect([created.status, created.json()]).toEqual([
      201,
      { userId: expect.any(String), inviteUrl: expect.stringMatching(/^http/) },
    ]);
    const check = async (email: string) => (await call('POST', '/users/check', { email })).json();
    expect(await check('Ada@Example.test')).toEqual({ isUserExists: true, userId: created.json().userId });
    expect(await check('no@example.test')).toEqual({ isUserExists: false });
  });

  it('rejects unreadable users and fault rules with 400 and a message', async () => {
    const provider = await newProvider();
    const client = await newClient(provider);
    for (const [path, body] of [
      ['/users/check', {}],
      ['/users/check', { email: 'nobody' }],
      ['/users/check', []],
      ['/users/providers', { firstName: 'A', lastName: 'B' }],
      ['/users/providers', { email: 'a@b.test', lastName: 'B' }],
      ['/users/providers', { email: 'a@b.test', firstName: 'A', lastName: 'B', partnerUserId: 7 }],
      ['/users/clients', { firstName: 'A', lastName: 'B' }],
      ['/users/clients', { firstName: 'A', lastName: 'B', therapistUserId: client }],
      [`/users/${client}/providers`, {}],
      [`/users/${client}/providers`, { providerUserIds: [''] }],
      [`/users/${client}/providers`, { providerUserIds: ['nobody'] }],
      ['/_simulator/faults', [{ kind: 'explode' }]],
      ['/_simulator/faults', [{ kind: 'slow', ms: -1 }]],
    ] as const) {
      const { status, json } = await call('POST', path, body);
      expect([path, body, status, json()]).toEqual([path, body, 400, { message: expect.any(String) }]);
    }
  });

  it('rejects an email in use, or creates a second user if duplicates are allowed', async () => {
    const provider = await newProvider('one@example.test');
    const again = { ...ADA, email: 'ONE@example.test' };
    expect(await statusOf('POST', '/users/providers', again)).toBe(400);
    await call('PATCH', '/_simulator/settings', { duplicateEmails: 'allow' });
    expect(await statusOf('POST', '/users/providers', again)).toBe(201);
    for (const _ of [1, 2]) await newClient(provider, { partnerUserId: 'c-1' });
    expect((await people()).duplicates).toEqual({ emails: ['one@example.test'], partnerUserIds: ['c-1'] });
  });

  it("replaces a client's providers, and forgets a deleted user", async () => {
    const [first, second] = [await newProvider('1@example.test'), await newProvider('2@example.test')];
    const client = await newClient(first);
    expect(await statusOf('POST', `/users/${client}/providers`, { providerUserIds: [second] })).toBe(204);
    expect(simulator.state.users.find(client)?.providerUserIds).toEqual([second]);
    expect(await statusOf('DELETE', `/users/${client}`)).toBe(204);
    expect(await statusOf('DELETE', `/users/${client}`)).toBe(404);
    expect(await statusOf('POST', `/users/${client}/providers`, { providerUserIds: [] })).toBe(404);
  });
});

describe('the gate', () => {
  it.each([
    ['seconds', /^\d+$/],
    ['date', /GMT$/],
    ['absent', /^none$/],
  ])('returns 429 over the limit, with Retry-After as %s; a wrong key does not count', async (form, wanted) => {
    await call('PATCH', '/_simulator/settings', { callsPerWindow: 2, retryAfter: form });
    expect((await call('POST', '/users/check', { email: 'a@b.test' }, 'wrong')).status).toBe(403);
    await call('POST', '/users/check', { email: 'a@b.test' });
    await call('DELETE', '/users/nobody');
    const answer = await call('POST', '/users/clients', {});
    expect([answer.status, answer.headers.get('retry-after') ?? 'none']).toEqual([429, expect.stringMatching(wanted)]);
    expect(await stats('?arrivals=true')).toMatchObject({
      calls: { createClient: { 429: 1 } },
      userManagement: { arrivals: 4, accepted: 2, rateLimited: 1, largestWindow: { accepted: 2, all: 4 } },
      arrivals: [{ status: 403 }, { status: 200 }, { status: 404 }, { status: 429, accepted: false }],
    });
  });

  it.each([
    [{ kind: 'commit-then-cut' }, 'cut', 1],
    [{ kind: 'refuse' }, 'cut', 0],
    [{ kind: 'commit-then-500' }, 500, 1],
    [{ kind: 'bad-json' }, 200, 1],
    [{ kind: 'status', status: 503 }, 503, 0],
  ])('the fault %j returns %s and leaves %d users', async (rule, status, total) => {
    await order({ operation: 'createProvider', count: 1, ...rule });
    const answer = await call('POST', '/users/providers', ADA).catch(() => undefined);
    expect([answer?.status ?? 'cut', (await people()).total]).toEqual([status, total]);
    if (rule.kind === 'bad-json') expect(() => answer?.json()).toThrow();
    expect((await stats()).calls.createProvider).toEqual({ [status]: 1 });
  });

  it('commits late, after the configured delay', async () => {
    const later = jest.spyOn(simulator.state.timers, 'later').mockReturnValue();
    await order({ operation: 'createProvider', kind: 'commit-late', ms: 30, count: 1 });
    await expect(newProvider()).rejects.toThrow();
    expect(await people()).toMatchObject({ total: 0 });
    const [[ms, commit] = []] = later.mock.calls;
    commit?.();
    expect([ms, await people()]).toEqual([30, expect.objectContaining({ total: 1 })]);
  });

  it('an injected 429 does not count towards the limit', async () => {
    await order({ kind: 'rate-limit', retryAfterSeconds: 7, count: 1 });
    const answer = await call('POST', '/users/check', { email: 'a@b.test' });
    expect(answer.headers.get('retry-after')).toBe('7');
    expect((await stats()).userManagement).toMatchObject({ accepted: 0 });
  });

  it('a fault can match one person, by body field or by the user in the path', async () => {
    const provider = await newProvider();
    const client = await newClient(provider, { partnerUserId: 'c-1' });
    await order({ kind: 'forbid', match: { partnerUserId: 'c-1' } });
    const body = { firstName: 'A', lastName: 'B', therapistUserId: provider };
    expect(await statusOf('POST', '/users/clients', { ...body, partnerUserId: 'c-1' })).toBe(403);
    expect(await statusOf('POST', '/users/clients', { ...body, partnerUserId: 'c-2' })).toBe(201);
    expect(await statusOf('DELETE', `/users/${client}`)).toBe(403);
  });
});
