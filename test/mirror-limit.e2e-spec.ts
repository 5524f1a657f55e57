import { setTimeout as delay } from 'node:timers/promises';
import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { RangeMs } from '../simulator/settings.js';
import { describeOnBothBackends } from './support/backends.js';
import { type Mirror, useMirrors } from './support/service.js';

/**
 * The minute, scaled down. A slot is held from its grant until one window after its answer, so of the budget
 * window ÷ (window + latency + what the service needs itself) can be used: with answers within 120 ms about 97%.
 */
const WINDOW_SECONDS = 4;
const CALLS = 60;
const QUICK: RangeMs = [20, 120];
/** A quarter of the window: what is late for one window counts in the next. */
const SLOW: RangeMs = [0, 1_000];

/** More at once would only wait for the database, and be answered 503 on a busy machine. */
const CONNECTIONS = 12;

const WINDOWS = Number(process.env.ROUNDS ?? 4);

describeOnBothBackends('three worker processes and the platform’s strict limit', (backend) => {
  const newMirror = useMirrors();
  let mirror: Mirror;
  let api: Service;
  let created = 0;
  let screens = 0;

  beforeAll(async () => {
    mirror = await newMirror({ backend, calls: CALLS, windowSeconds: WINDOW_SECONDS, platform: { latencyMs: QUICK } });
    const workers = Array.from({ length: 3 }, () => mirror.start({ ROLES: 'worker' }));
    [api] = await Promise.all([mirror.start({ ROLES: 'api' }), ...workers]);
    expect((await putProvider('home')).status).toBe(200);
  });

  afterEach(() => {
    const { rateLimited, largestWindow } = mirror.simulator.state.arrivals.stats(WINDOW_SECONDS).userManagement;
    expect([rateLimited, Math.max(CALLS, largestWindow.all)]).toEqual([0, CALLS]);
  });

  const putProvider = (externalId: string) => {
    const body = { email: `${externalId}@example.org`, firstName: 'Pia', lastName: 'Ruiz' };
    return api.call('PUT', `/v1/providers/${externalId}`, { body, wait: 60 });
  };
  /** Wants so many more clients, of one call each, as fast as an EHR's few connections allow. */
  const burst = async (count: number) => {
    const last = created + count;
    const send = async () => {
      while (created < last) {
        created += 1;
        const body = { firstName: 'Cleo', lastName: 'Adler', providers: ['home'] };
        const { status } = await api.call('PUT', `/v1/clients/b-${created}`, { body });
        expect([200, 202]).toContain(status);
      }
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, send));
  };
  /** The share of the budget that is used while work waits, and how long who waits at a screen does, in milliseconds. */
  const measured = async () => {
    const [start, before] = [performance.now(), mirror.arrivals()];
    const waits: number[] = [];
    while (performance.now() - start < WINDOWS * WINDOW_SECONDS * 1_000 || waits.length < 20) {
      const asked = performance.now();
      screens += 1;
      const answer = await putProvider(`now-${screens}`);
      waits.push(performance.now() - asked);
      expect([screens, answer.status]).toEqual([screens, 200]);
      await delay(200);
    }
    const budget = (CALLS * (performance.now() - start)) / (WINDOW_SECONDS * 1_000);
    const used = (mirror.arrivals() - before) / budget;
    const p95 = waits.sort((a, b) => a - b)[Math.floor(waits.length * 0.95)] ?? 0;
    const share = `${(used * 100).toFixed(1)}%`;
    console.log(`${backend.name}: ${share} of the budget used; ${waits.length} PUTs, p95 ${p95.toFixed(0)} ms`);
    return { used, p95 };
  };
  const isGood = ({ used, p95 }: { used: number; p95: number }) => used >= 0.9 && p95 < 2_000;
  const allCreated = () => until('all are created', () => mirror.arrivals('createClient') >= created);

  test('never exceed it under bursts, with answers of up to a quarter of the window', async () => {
    mirror.simulator.state.settings.latencyMs = SLOW;
    for (let round = 0; round < 2; round++) {
      await burst(CALLS + 20);
      await delay(WINDOW_SECONDS * 700);
    }
    await allCreated();
  });

  test('never exceed it when one call is followed by a full window just before its own ends', async () => {
    mirror.simulator.state.settings.latencyMs = SLOW;
    for (let round = 0; round < 2; round++) {
      const before = mirror.arrivals();
      await burst(1);
      await until('the one has arrived', () => mirror.arrivals() > before);
      await delay(WINDOW_SECONDS * 1_000 - 200);
      await burst(CALLS);
    }
    await allCreated();
  });

  test('use at least 90% of it while work waits, and who waits at a screen is served within two seconds', async () => {
    mirror.simulator.state.settings.latencyMs = QUICK;
    const rows = Array.from({ length: 700 }, (_, n) => `i-${n},i-${n}@example.org,Pia,Ruiz`);
    const content = ['externalId,email,firstName,lastName', ...rows].join('\n');
    const { id } = await api.startImport('kind=providers', [{ name: 'providers.csv', type: 'text/csv', content }]);
    const checked = mirror.arrivals('checkUser');
    await until('the import is under way for a window', () => mirror.arrivals('checkUser') > checked + CALLS);

    let best = { used: 0, p95: Number.POSITIVE_INFINITY };
    // A machine that others slow down for a while gets another chance; waste of the budget's shows each time.
    for (let chance = 0; chance < 3 && !isGood(best); chance++) best = await measured();
    expect((await api.call('POST', `/v1/imports/${id}/cancel`)).status).toBe(200);
    expect(best.p95).toBeLessThan(2_000);
    expect(best.used).toBeGreaterThanOrEqual(0.9);
  });
});
