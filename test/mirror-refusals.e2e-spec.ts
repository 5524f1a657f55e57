import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { ArrivalStats } from '../simulator/gate/arrivals.js';
import type { FaultRule } from '../simulator/gate/fault-rule.js';
import type { Trace } from '../src/people/trace.service.js';
import { type Mirror, useMirrors } from './support/service.js';

const newMirror = useMirrors();

const providersCsv = (prefix: string, count: number) =>
  ['externalId,email,firstName,lastName']
    .concat(Array.from({ length: count }, (_, at) => `${prefix}${at},${prefix}${at}@example.org,Pia,Ruiz`))
    .join('\n');

describe('a 403', () => {
  let mirror: Mirror;
  let service: Service;
  beforeAll(async () => {
    mirror = await newMirror();
    service = await mirror.start();
  });
  afterEach(() => mirror.simulator.state.faults.clear());
  const put = async (externalId: string, wait = 0) => {
    const body = { email: `${externalId}@example.org`, firstName: 'Pia', lastName: 'Ruiz' };
    return (await service.call('PUT', `/v1/providers/${externalId}`, { body, wait })).body;
  };
  const show = async (externalId: string, wait = 0) =>
    (await service.call('GET', `/v1/providers/${externalId}`, { wait })).body.sync;

  test('stops its operation alone, burns nobody’s attempts, degrades the health, and ends by itself', async () => {
    mirror.trouble({ operation: 'createProvider', kind: 'forbid', count: null });
    for (const externalId of ['k-1', 'k-2', 'k-3', 'k-4']) await put(externalId);
    await until('the operation is stopped', async () => (await health(service)).status === 'degraded');
    await until('the others are checked', () => mirror.arrivals('checkUser') >= 4);
    const creates = mirror.arrivals('createProvider');
    expect(creates).toBeLessThanOrEqual(4);
    expect((await show('k-4')).state).toBe('pending');
    await until('who was refused says why', async () => {
      const all = await Promise.all(['k-1', 'k-2', 'k-3', 'k-4'].map((externalId) => show(externalId)));
      return all.some(({ step, error }) => step === 'createProvider' && error?.code === 'platform-unauthorized');
    });

    mirror.simulator.state.faults.clear();
    for (const externalId of ['k-1', 'k-2', 'k-3', 'k-4']) {
      expect(await show(externalId, 60)).toMatchObject({ state: 'synced', error: null });
    }
    expect(mirror.arrivals('createProvider')).toBeLessThanOrEqual(creates + 5);
    expect((await health(service)).status).toBe('ok');
  });

  test('of one item is its own: somebody else’s probe goes through, and only it fails as forbidden', async () => {
    mirror.trouble({ operation: 'createProvider', kind: 'forbid', count: null, match: { partnerUserId: 'own' } });
    await put('own');
    await until('it is refused', async () => (await show('own')).error?.code === 'platform-unauthorized');
    for (const externalId of ['by-1', 'by-2']) await put(externalId);
    for (const externalId of ['by-1', 'by-2']) expect((await show(externalId, 60)).state).toBe('synced');
    expect(await show('own', 60)).toMatchObject({ state: 'failed', error: { code: 'forbidden' } });
    expect((await health(service)).status).toBe('ok');
    expect((await put('after', 60)).sync.state).toBe('synced');

    mirror.simulator.state.faults.clear();
    const answer = await service.call('POST', '/v1/providers/own/resolve', { body: { action: 'retry' }, wait: 60 });
    expect(answer.body.sync.state).toBe('synced');
  });
});

describe('a 429', () => {
  let mirror: Mirror;
  let service: Service;
  /** Milliseconds of latency, and a little for the machine: what left before the 429 was answered may still arrive. */
  const LATENCY: [number, number] = [40, 80];
  const UNDER_WAY_MS = 400;

  beforeAll(async () => {
    mirror = await newMirror({ platform: { latencyMs: LATENCY } });
    [service] = await Promise.all([
      mirror.start(),
      mirror.start({ ROLES: 'worker' }),
      mirror.start({ ROLES: 'worker' }),
    ]);
  });
  /** Gives all workers plenty to do. */
  const saturate = async (prefix: string) => {
    const { id } = await service.startImport('kind=providers', [
      { name: 'providers.csv', type: 'text/csv', content: providersCsv(prefix, 200) },
    ]);
    const before = mirror.arrivals();
    await until('calls are made', () => mirror.arrivals() > before + 30);
    return id;
  };
  /** Orders 429s; answers when the first one arrived, and how long it was quiet behind what was under way. */
  const quietAfter = async (...rules: Partial<FaultRule>[]) => {
    const known = mirror.arrivals();
    for (const rule of rules) mirror.trouble({ kind: 'rate-limit', ...rule });
    const later = () => mirror.simulator.state.arrivals.list().slice(known);
    const refused = await until('a 429', () => later().find(({ status }) => status === 429));
    const next = await until('calls go on', () => later().find(({ at }) => at > refused.at + UNDER_WAY_MS));
    return next.at - refused.at;
  };

  test.each<[string, Partial<FaultRule>, [number, number]]>([
    ['in seconds', { retryAfter: 'seconds', retryAfterSeconds: 2 }, [2_000, 3_500]],
    ['as a date', { retryAfter: 'date', retryAfterSeconds: 3 }, [2_000, 4_500]],
    ['by nothing: about a second', { retryAfter: 'absent' }, [750, 2_700]],
  ])('stops every worker at once for as long as it says, %s; then all go on', async (name, rule, [least, most]) => {
    const id = await saturate(`w${name.length}-`);
    const quiet = await quietAfter(rule);
    expect(quiet).toBeGreaterThanOrEqual(least);
    expect(quiet).toBeLessThan(most);
    const ended = await service.importEnded(id);
    expect(ended.counts).toMatchObject({ total: 200, created: 200 });
  });

  test('with a shorter wait never cuts a longer one short', async () => {
    const id = await saturate('x-');
    const seconds = (retryAfterSeconds: number) => ({ retryAfter: 'seconds' as const, retryAfterSeconds });
    expect(await quietAfter(seconds(3), seconds(1))).toBeGreaterThanOrEqual(3_000);
    await service.importEnded(id);
  });

  test('is nobody’s fault: everybody is mirrored once, and the trace shows the refusals', async () => {
    const stats: ArrivalStats = mirror.simulator.state.arrivals.stats(60);
    expect(stats.userManagement.rateLimited).toBeGreaterThanOrEqual(5);
    expect(mirror.simulator.state.users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });
    expect(mirror.simulator.state.users.list()).toHaveLength(800);
    const traces = await Promise.all(
      Array.from({ length: 200 }, async (_, at) => {
        const body = { externalId: `x-${at}`, kind: 'provider' };
        return (await service.call<Trace>('POST', '/v1/people/trace', { body })).body.history;
      }),
    );
    expect(traces.flat().filter(({ status, outcome }) => status === 429 && outcome === 'rate-limited').length).toBe(2);
  });
});

async function health(service: Service): Promise<{ status: string }> {
  return (await service.call<{ status: string }>('GET', '/health/ready')).body;
}
