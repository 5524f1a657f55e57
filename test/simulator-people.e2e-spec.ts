import { buildSimulator, type Simulator } from '../simulator/app.js';
import type { ArrivalStats } from '../simulator/gate/arrivals.js';
import { usePrograms } from './support/programs.js';
import { callSimulator, newSimulatedClient, newSimulatedProvider } from './support/simulator-call.js';

const startProgram = usePrograms();
let simulator: Simulator;

beforeAll(async () => {
  // On this clock all calls of a test arrive in one window, however long it takes.
  simulator = await buildSimulator({ seed: 1, nowMs: () => 1_800_000_000_000, settings: { stepMs: 0 } });
});
afterEach(() => {
  jest.restoreAllMocks();
  simulator.state.reset();
});
afterAll(() => simulator.close());

const call = (method: string, path: string, body?: unknown, key?: string) =>
  callSimulator(simulator, method, path, body, key);
const newProvider = (email?: string) => newSimulatedProvider(simulator, email);
const newClient = (therapist: string, more?: object) => newSimulatedClient(simulator, therapist, more);
const stats = async (query = '') => (await call('GET', `/_simulator/stats${query}`)).json<ArrivalStats>();

interface People {
  total: number;
  duplicates: { partnerUserIds: string[]; emails: string[] };
}
const order = (...rules: object[]) => call('POST', '/_simulator/faults', rules);
const people = async () => (await call('GET', '/_simulator/users')).json<People>();

it('a second simulator on one port ends, and says in one sentence what to do', async () => {
  const { port } = new URL(simulator.url);
  const second = await startProgram({ file: 'dist/simulator/main.js', env: { SIMULATOR_PORT: port } });
  expect(await second.ended()).toBe(1);
  expect(second.output()).toMatch(new RegExp(`^[^\\n]*127\\.0\\.0\\.1:${port}; .* set SIMULATOR_PORT [^\\n]*\\n$`));
});

describe('users', () => {
  it('a provider is created with an invite URL and then found by email, whatever its case', async () => {
    const created = await call('POST', '/users/providers', {
      email: 'ada@example.test',
      firstName: 'Ada',
      lastName: 'Byron',
      partnerUserId: 'p-1',
    });
    expect(created.status).toBe(201);
    expect(created.json()).toEqual({ userId: expect.any(String), inviteUrl: expect.stringMatching(/^http/) });
    const found = await call('POST', '/users/check', { email: 'Ada@Example.test' });
    expect(found.json()).toEqual({ isUserExists: true, userId: created.json().userId });
  });

  it('an unknown email does not exist and has no userId', async () => {
    expect((await call('POST', '/users/check', { email: 'no@example.test' })).json()).toEqual({ isUserExists: false });
  });

  it.each([
    ['/users/check', {}],
    ['/users/check', { email: 7 }],
    ['/users/check', { email: 'nobody' }],
    ['/users/check', []],
    ['/users/providers', { firstName: 'A', lastName: 'B' }],
    ['/users/providers', { email: 'a@b.test', lastName: 'B' }],
    ['/users/providers', { email: 'a@b.test', firstName: 'A' }],
    ['/users/providers', { email: 'a@b.test', firstName: 'A', lastName: 'B', partnerUserId: 7 }],
    ['/users/clients', { firstName: 'A', lastName: 'B' }],
    ['/users/clients', { firstName: 'A', lastName: 'B', therapistUserId: 'nobody' }],
  ])('POST %s refuses %j with 400 and a message', async (path, body) => {
    const answer = await call('POST', path, body);
    expect(answer.status).toBe(400);
    expect(answer.json()).toEqual({ message: expect.any(String) });
  });

  it("a client's therapist must be a provider, not a client", async () => {
    const client = await newClient(await newProvider());
    const answer = await call('POST', '/users/clients', { firstName: 'A', lastName: 'B', therapistUserId: client });
    expect(answer.status).toBe(400);
  });

  it('a taken email is refused with 400, and makes a second user when duplicates are allowed', async () => {
    await newProvider('one@example.test');
    const again = { email: 'ONE@example.test', firstName: 'A', lastName: 'B' };
    expect((await call('POST', '/users/providers', again)).status).toBe(400);
    await call('PATCH', '/_simulator/settings', { duplicateEmails: 'allow' });
    expect((await call('POST', '/users/providers', again)).status).toBe(201);
    expect((await people()).duplicates.emails).toEqual(['one@example.test']);
  });

  it("the complete list replaces a client's providers", async () => {
    const [first, second] = [await newProvider('1@example.test'), await newProvider('2@example.test')];
    const client = await newClient(first);
    const answer = await call('POST', `/users/${client}/providers`, { providerUserIds: [second] });
    expect(answer.status).toBe(204);
    expect(simulator.state.users.find(client)?.providerUserIds).toEqual([second]);
  });

  it.each([[{}], [{ providerUserIds: 'x' }], [{ providerUserIds: [''] }], [{ providerUserIds: ['nobody'] }]])(
    'a provider list %j is refused with 400',
    async (body) => {
      const client = await newClient(await newProvider());
      expect((await call('POST', `/users/${client}/providers`, body)).status).toBe(400);
    },
  );

  it('an unknown user is 404, also after its deletion', async () => {
    const provider = await newProvider();
    expect((await call('DELETE', `/users/${provider}`)).status).toBe(204);
    expect((await call('DELETE', `/users/${provider}`)).status).toBe(404);
    expect((await call('POST', `/users/${provider}/providers`, { providerUserIds: [] })).status).toBe(404);
  });

  it('people with one partnerUserId are counted as duplicates', async () => {
    const provider = await newProvider();
    await newClient(provider, { partnerUserId: 'c-1' });
    await newClient(provider, { partnerUserId: 'c-1' });
    expect((await people()).duplicates.partnerUserIds).toEqual(['c-1']);
  });
});

describe('the gate', () => {
  it('a wrong key is 403 and takes no place in the limit', async () => {
    expect((await call('POST', '/users/check', { email: 'a@b.test' }, 'wrong')).status).toBe(403);
    expect((await stats()).userManagement).toMatchObject({ arrivals: 1, accepted: 0 });
  });

  it.each([
    ['seconds', /^\d+$/],
    ['date', /GMT$/],
    ['absent', /^none$/],
  ])('one call over the limit is 429 with Retry-After as %s, whichever the operation', async (retryAfter, form) => {
    await call('PATCH', '/_simulator/settings', { callsPerWindow: 2, retryAfter });
    await call('POST', '/users/check', { email: 'a@b.test' });
    await call('DELETE', '/users/nobody');
    const answer = await call('POST', '/users/clients', {});
    expect(answer.status).toBe(429);
    expect(answer.headers.get('retry-after') ?? 'none').toMatch(form);
    expect(await stats('?arrivals=true')).toMatchObject({
      calls: { createClient: { 429: 1 } },
      userManagement: { arrivals: 3, accepted: 2, rateLimited: 1, largestWindow: { accepted: 2, all: 3 } },
      arrivals: [{ status: 200 }, { status: 404 }, { status: 429, accepted: false }],
    });
  });

  it('a request that creates and then loses its answer is cut and committed', async () => {
    await order({ operation: 'createProvider', kind: 'commit-then-cut', count: 1 });
    await expect(newProvider()).rejects.toThrow();
    expect(await people()).toMatchObject({ total: 1 });
    expect((await stats()).calls.createProvider).toEqual({ cut: 1 });
  });

  it('a refused request is cut and not committed', async () => {
    await order({ operation: '*', kind: 'refuse', count: 1 });
    await expect(newProvider()).rejects.toThrow();
    expect(await people()).toMatchObject({ total: 0 });
  });

  it('a late commit shows as long after the cut as ordered', async () => {
    const later = jest.spyOn(simulator.state.timers, 'later').mockReturnValue();
    await order({ operation: 'createProvider', kind: 'commit-late', ms: 30, count: 1 });
    await expect(newProvider()).rejects.toThrow();
    expect(await people()).toMatchObject({ total: 0 });
    const [[ms, commit] = []] = later.mock.calls;
    commit?.();
    expect([ms, await people()]).toEqual([30, expect.objectContaining({ total: 1 })]);
  });

  it('a 500 after the commit, and JSON that breaks off, leave the user behind', async () => {
    await order({ operation: 'createProvider', kind: 'commit-then-500', count: 1 });
    await order({ operation: 'createProvider', kind: 'bad-json', count: 1 });
    const body = (email: string) => ({ email, firstName: 'A', lastName: 'B' });
    expect((await call('POST', '/users/providers', body('1@b.test'))).status).toBe(500);
    const broken = await call('POST', '/users/providers', body('2@b.test'));
    expect(broken.status).toBe(200);
    expect(() => broken.json()).toThrow();
    expect(await people()).toMatchObject({ total: 2 });
  });

  it('an ordered status is answered without handling', async () => {
    await order({ operation: 'createProvider', kind: 'status', status: 503, count: 1 });
    const answer = await call('POST', '/users/providers', { email: 'a@b.test', firstName: 'A', lastName: 'B' });
    expect(answer.status).toBe(503);
    expect(await people()).toMatchObject({ total: 0 });
  });

  it('an ordered 429 takes no place in the limit', async () => {
    await order({ kind: 'rate-limit', retryAfterSeconds: 7, count: 1 });
    const answer = await call('POST', '/users/check', { email: 'a@b.test' });
    expect(answer.headers.get('retry-after')).toBe('7');
    expect((await stats()).userManagement).toMatchObject({ accepted: 0 });
  });

  it('a fault may be meant for one person: by body field, or by the user that the path names', async () => {
    await order({ kind: 'forbid', match: { partnerUserId: 'c-1' } });
    const provider = await newProvider();
    const body = { firstName: 'A', lastName: 'B', therapistUserId: provider };
    expect((await call('POST', '/users/clients', { ...body, partnerUserId: 'c-1' })).status).toBe(403);
    expect((await call('POST', '/users/clients', { ...body, partnerUserId: 'c-2' })).status).toBe(201);
    await call('DELETE', '/_simulator/faults');
    const client = await newClient(provider, { partnerUserId: 'c-1' });
    await order({ kind: 'forbid', match: { partnerUserId: 'c-1' } });
    expect((await call('DELETE', `/users/${client}`)).status).toBe(403);
  });

  it.each([[{ kind: 'explode' }], [{ kind: 'slow', ms: -1 }], [{ kind: 'refuse', match: { email: 1 } }]])(
    'an unreadable fault %j is refused',
    async (rule) => {
      expect((await order(rule)).status).toBe(400);
    },
  );

  it('an unknown setting is refused by name', async () => {
    const answer = await call('PATCH', '/_simulator/settings', { speed: 1 });
    expect([answer.status, answer.json().message]).toEqual([400, 'There is no setting speed.']);
  });

  it.each([[{ webhookUrl: 'nowhere' }], [{ latencyMs: [5, 1] }], [{ duplicateEmails: 'maybe' }]])(
    'a setting can not have any value: %j',
    async (settings) => {
      expect((await call('PATCH', '/_simulator/settings', settings)).status).toBe(400);
    },
  );

  it('the latency passes partly before the arrival and partly before the answer', async () => {
    await call('PATCH', '/_simulator/settings', { latencyMs: [40, 40] });
    const passed: [ms: number, arrivals: number][] = [];
    jest.spyOn(simulator.state.timers, 'sleep').mockImplementation(async (ms) => {
      passed.push([ms, simulator.state.arrivals.list().length]);
    });
    await call('POST', '/users/check', { email: 'a@b.test' });
    const [[out, before] = [], [back, after] = []] = passed;
    expect([before, after]).toEqual([0, 1]);
    expect((out ?? 0) + (back ?? 0)).toBeCloseTo(40);
    expect(Math.min(out ?? 0, back ?? 0)).toBeGreaterThan(0);
  });

  it('the same seed gives the same ids', async () => {
    const first = await newProvider();
    simulator.state.reset();
    expect(await newProvider()).toBe(first);
    simulator.state.reset(2);
    expect(await newProvider()).not.toBe(first);
    simulator.state.reset(1);
  });
});
