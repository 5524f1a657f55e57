import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { HealthReport } from '../src/operations/health-checks.js';
import type { TraceResponse } from '../src/people/api/trace.dto.js';
import type { SessionResponse } from '../src/sessions/model/session-view.js';
import { usePrograms } from './support/programs.js';
import { useMirrors } from './support/service.js';
import { settledPerson } from './support/settled-person.js';

const key = (name: string, byte: number) => `${name}:${Buffer.alloc(32, byte).toString('base64')}`;
const SOAP = '11111111-1111-4111-8111-111111111111';
const [K1, K2, K3] = [key('k1', 7), key('k2', 8), key('k3', 9)];

describe('a data key that was dropped too early', () => {
  const newMirror = useMirrors();
  const startProgram = usePrograms();

  test('shows in health and log; nothing is sent or decided about whom it sealed, until it is back', async () => {
    const mirror = await newMirror({ env: { PLATFORM_TIMEOUT_SECONDS: '60' } });
    const stopped = async (service: Service) => expect(await service.kill('SIGTERM')).toBe(0);
    const provider = { email: 'ada@example.org', firstName: 'Ada', lastName: 'Osei' };
    let service = await mirror.start({ DATA_KEYS: K1 });
    await service.call('PUT', '/v1/providers/p-1', { body: provider });
    expect((await settledPerson(service, 'providers/p-1')).sync.state).toBe('synced');
    await stopped(service);

    // A client without an email: had its creation left without an answer, only a person could tell what became of it.
    service = await mirror.start({ DATA_KEYS: `${K2},${K1}`, ROLES: 'api' });
    const client = { firstName: 'Cleo', lastName: 'Adler', providers: ['p-1'] };
    expect((await service.call('PUT', '/v1/clients/c-1', { body: client })).status).toBe(202);
    const session = { provider: 'p-1', noteTemplateIds: [SOAP], input: { text: { text: 'Cleo came.' } } };
    const asked = await service.call<SessionResponse>('POST', '/v1/sessions', { body: session, wait: 0 });
    expect([asked.status, asked.body.state]).toEqual([202, 'Requested']);
    await stopped(service);

    service = await mirror.start({ DATA_KEYS: `${K3},${K1}` });
    const report = await until('the health tells', async () => {
      const { body } = await service.call<HealthReport>('GET', '/health/ready');
      return body.checks.vault?.status === 'degraded' ? body : undefined;
    });
    expect(report.checks.vault).toMatchObject({
      reason: expect.stringMatching(/DATA_KEYS lacks k2.*restart/),
      facts: { missing: 'k2' },
    });
    const traced = await until('the turn is over', async () => {
      const who = { kind: 'client', externalId: 'c-1' };
      const asked = await service.call('GET', '/v1/clients/c-1');
      expect([asked.status, asked.body]).toMatchObject([
        200,
        { sync: { state: 'pending' }, firstName: null, unreadable: ['email', 'firstName', 'lastName'] },
      ]);
      const { body } = await service.call<TraceResponse>('POST', '/v1/people/trace', { body: who });
      return body.history.some(({ outcome }) => outcome === 'unreadable') ? body : undefined;
    });
    expect(traced.state).toBe('pending');
    expect(mirror.arrivals('createClient')).toBe(0);
    // A request that was never sent must not end as one of which nobody knows what became of it.
    const request = async () =>
      (await mirror.sql<Record<string, string>>('SELECT state, fault FROM session_requests'))[0];
    await until('the request is put off', async () => (await request())?.fault === 'unreadable');
    expect((await request())?.state).toBe('Requested');
    expect(mirror.arrivals('createSession')).toBe(0);
    await until('the log tells', () => service.output().includes('DATA_KEYS lacks the key k2'));
    expect(service.output()).not.toMatch(/Cleo|Adler/);
    await stopped(service);

    service = await mirror.start({ DATA_KEYS: `${K3},${K2},${K1}` });
    await until('it goes on', () => mirror.usersOf('c-1').length === 1);
    expect((await settledPerson(service, 'clients/c-1')).sync.state).toBe('synced');
    await until('the session is asked for', () => mirror.arrivals('createSession') === 1);
    await until('its id is known', async () => {
      const { body } = await service.call<SessionResponse>('GET', `/v1/sessions/${asked.body.id}`);
      return body.sessionId !== null;
    });
  });

  test('that sealed what no start can do without: one sentence, and nothing else', async () => {
    const mirror = await newMirror();
    const service = await mirror.start({ DATA_KEYS: K1 });
    expect(await service.kill('SIGTERM')).toBe(0);
    const program = await startProgram({
      file: 'dist/src/main.js',
      env: {
        PLATFORM_BASE_URL: mirror.simulator.url,
        PLATFORM_API_KEY: 'simulator-api-key',
        PLATFORM_WEBHOOK_SECRET: 'webhook-secret-of-the-tests',
        ADMIN_API_KEY: 'admin-key-of-the-notebridge-tests',
        DATABASE_URL: mirror.database.url,
        DATA_KEYS: K2,
        PORT: '0',
      },
    });
    expect(await program.ended()).toBe(1);
    // The log before it warns that the tests have one role for all.
    const said = program.output().replace(/^\{.*\}\n/gm, '');
    expect(said).toMatch(/^DATA_KEYS lacks the key k1, which sealed vault_keys\.wrapped; add it[^\n]*\n$/);
  });
});
