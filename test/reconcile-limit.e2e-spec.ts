import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { ImportResponse } from '../src/imports/report/import-view.js';
import { describeOnBothBackends } from './support/backends.js';
import { type Mirror, useMirrors } from './support/service.js';

/** The minute, scaled down. */
const WINDOW_SECONDS = 2;
const CALLS = 30;
/** Answers of up to a quarter of the window: what is late for one window counts in the next. */
const LATENCY_MS: [number, number] = [0, (WINDOW_SECONDS * 1_000) / 4];

/** Work of an import for minutes. */
const IMPORTED = 3_000;

/** More at once would only wait for the database, and be answered 503 on a busy machine. */
const CONNECTIONS = 12;

describeOnBothBackends('three worker processes and the platform’s strict limit', (backend) => {
  const newMirror = useMirrors();
  let mirror: Mirror;
  let api: Service;
  let created = 0;

  beforeAll(async () => {
    const platform = { latencyMs: LATENCY_MS };
    // A call that is given up may arrive later than its permit says.
    const env = { PLATFORM_TIMEOUT_SECONDS: '60' };
    mirror = await newMirror({ backend, calls: CALLS, windowSeconds: WINDOW_SECONDS, platform, env });
    [api] = await Promise.all([mirror.start(), mirror.start({ ROLES: 'worker' }), mirror.start({ ROLES: 'worker' })]);
    await putProvider('home');
    await until('the provider is mirrored', async () => {
      const { body } = await api.call('GET', '/v1/providers/home', { wait: 1 });
      return body.sync.state === 'synced';
    });
  });

  afterEach(() => {
    const { rateLimited, largestWindow } = mirror.simulator.state.arrivals.stats(WINDOW_SECONDS).userManagement;
    expect([rateLimited, Math.max(CALLS, largestWindow.all)]).toEqual([0, CALLS]);
  });

  const putProvider = async (externalId: string) => {
    const body = { email: `${externalId}@example.org`, firstName: 'Pia', lastName: 'Ruiz' };
    const { status } = await api.call('PUT', `/v1/providers/${externalId}`, { body });
    expect([200, 202]).toContain(status);
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
  const creates = () => mirror.arrivals('createClient');
  const allCreated = () => until('all are created', () => creates() >= created);

  test('never exceed it under bursts, with answers of up to a quarter of the window', async () => {
    await burst(1.5 * CALLS);
    await until('the second window has begun', () => creates() > CALLS);
    await burst(1.5 * CALLS);
    await allCreated();
  });

  test('never exceed it when one call is followed by a full window just before its own ends', async () => {
    const occupied = 'SELECT 1 FROM platform_calls WHERE expires_at > clock_timestamp()';
    await until('every permit is free', async () => (await mirror.sql(occupied)).length === 0);
    await burst(1);
    await allCreated();
    // A pause until just before its end holds the others together.
    await mirror.sql(
      `UPDATE call_budgets SET blocked_until = $1 * interval '1 second' - interval '150 milliseconds' +
         (SELECT max(granted_at) FROM platform_calls)`,
      [WINDOW_SECONDS],
    );
    await burst(CALLS);
    await allCreated();
  });

  test('let who waits at a screen overtake an import: one call of it that was being granted may come first', async () => {
    const content = ['externalId,email,firstName,lastName']
      .concat(Array.from({ length: IMPORTED }, (_, n) => `i-${n},i-${n}@example.org,Pia,Ruiz`))
      .join('\n');
    const { id } = await api.startImport('kind=providers', [{ name: 'providers.csv', type: 'text/csv', content }]);
    const bulk = () => mirror.sql(`SELECT 1 FROM platform_calls WHERE lane = 'bulk'`);
    await until('the import is under way', async () => (await bulk()).length > CALLS / 2);

    for (let screen = 1; screen <= 5; screen++) {
      const externalId = `now-${screen}`;
      await putProvider(externalId);
      // Whatever is granted after this was decided on when the wish was there, but for the one under way.
      const [last] = await mirror.sql<{ id: string }>('SELECT max(id) AS id FROM platform_calls');
      expect((await api.call('GET', `/v1/providers/${externalId}`, { wait: 60 })).status).toBe(200);
      const overtook = await mirror.sql(
        `SELECT 1 FROM platform_calls WHERE lane = 'bulk' AND id > $1 AND id <
           (SELECT min(c.id) FROM platform_calls c JOIN people p ON p.id = c.person_id WHERE p.external_id = $2)`,
        [last?.id, externalId],
      );
      expect([externalId, overtook.length > 1]).toEqual([externalId, false]);
    }
    // There was always work of the import to do.
    expect((await api.call<ImportResponse>('GET', `/v1/imports/${id}`)).body.finishedAt).toBeNull();
    expect((await api.call('POST', `/v1/imports/${id}/cancel`)).status).toBe(200);
  });
});
