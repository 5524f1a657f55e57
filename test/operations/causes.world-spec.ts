import type { WorldService } from '../../harness/world/world-service.js';
import { Api } from '../../src/cli/api/api.js';
import { exitCodeOf, readStatus, statusLines } from '../../src/cli/commands/status.js';
import { serviceFinding } from '../../src/cli/doctor/reach-checks.js';
import type { ServiceHealth } from '../../src/cli/output/causes.js';
import { HEALTH_TEXTS, type ReasonCode, utc } from '../../src/monitoring/health-texts.js';
import type { OverviewResponse } from '../../src/operations/overview/overview.dto.js';
import { ADMIN_KEY } from '../support/app.js';
import { startBehindProxy } from '../support/behind-proxy.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

const HEADERS = { authorization: `Bearer ${ADMIN_KEY}` };

const healthOf = async ({ url }: Pick<WorldService, 'url'>) => {
  const answer = await fetch(`${url}/health/ready`);
  return { code: answer.status, ...((await answer.json()) as ServiceHealth) };
};

/** The reports of a service whose key needs no database, by every channel. */
async function reportsOf(service: Pick<WorldService, 'url'>) {
  const { url } = service;
  const health = await healthOf(service);
  const overview = (await (await fetch(`${url}/v1/overview`, { headers: HEADERS })).json()) as OverviewResponse;
  const status = await readStatus(new Api(() => ({ url, key: ADMIN_KEY })));
  const { state, advice } = await serviceFinding(url, 'npm start');
  return { health, overview, status: statusLines(status), exitCode: exitCodeOf(status), doctor: { state, advice } };
}

/** Expects one cause, in the same words everywhere, before anything else. */
function expectOneCause({ health, overview, status, doctor }: Awaited<ReturnType<typeof reportsOf>>, code: ReasonCode) {
  expect(health.causes.map((cause) => cause.code)).toEqual([code]);
  const [{ cause, action, affects } = { cause: '', action: '', affects: [] }] = health.causes;
  expect(cause).toContain(HEALTH_TEXTS[code].cause.split('{')[0]);
  expect(action).toBe(HEALTH_TEXTS[code].action);
  expect(overview.causes).toMatchObject([{ code, cause, action, affects }]);
  expect(status.split('\n').slice(0, 3)).toEqual([
    `✗ notebridge is ${health.status}`,
    `  ✗ ${cause}`,
    expect.stringMatching(/^ {4}.+ (Since|First seen) 20/),
  ]);
  expect(doctor.state).toBe('faulty');
  expect(doctor.advice.slice(0, 2)).toEqual([cause, expect.stringContaining(action)]);
}

/** The parts that no place may call healthy. */
const unhealthy = ({ parts }: OverviewResponse) =>
  parts.filter(({ status }) => status !== 'ok').map(({ name }) => name);

const age = (role: string) =>
  world.sql(`UPDATE workers SET alive_until = alive_until - interval '40 seconds' WHERE $1 = ANY (roles)`, [role]);

test('an unreachable database is one cause, and everything that needs it follows', async () => {
  const { proxy, service } = await startBehindProxy(world);
  try {
    expect((await healthOf(service)).status).toBe('ok');
    await proxy.cut();
    const all = await reportsOf(service);
    expectOneCause(all, 'database-unavailable');
    expect([all.health.code, all.health.status, all.exitCode]).toEqual([503, 'down', 1]);
    expect(all.status).not.toContain('capabilit');
    expect(all.status.split('\n')).toHaveLength(4);
    expect(all.overview.parts.filter(({ status }) => status === 'ok').map(({ name }) => name)).toEqual(['vault']);
    expect([all.overview.decisions, all.overview.inbox]).toEqual([null, null]);

    await proxy.restore();
    await world.eventually('it is healthy again', async () => (await healthOf(service)).status === 'ok');
  } finally {
    await proxy.close();
  }
});

test('without a worker, that is the cause, and no part that needs one is healthy', async () => {
  const api = await world.startAnother({ ROLES: 'api' });
  expect((await healthOf(api)).status).toBe('ok');
  await age('worker');
  const all = await reportsOf(api);
  expectOneCause(all, 'no-worker');
  expect([all.health.code, all.health.status, all.exitCode]).toEqual([200, 'degraded', 2]);
  const [cause] = all.health.causes;
  expect(Date.parse(cause?.since ?? '')).toBeLessThan(world.now().getTime() - 30_000);
  expect(unhealthy(all.overview).sort()).toEqual(['worker', ...(cause?.affects ?? [])].sort());
  expect(cause?.affects).toEqual(expect.arrayContaining(['people', 'sessions', 'audit-chain']));
  const metrics = await (await fetch(`${api.url}/metrics`, { headers: HEADERS })).text();
  expect(metrics).toContain('notebridge_health_status{check="worker",caused_by=""} 1');
  expect(metrics).toContain('notebridge_health_status{check="people",caused_by="worker"} 1');
});

test('a worker reports that no api process is running', async () => {
  const worker = await world.startAnother({ ROLES: 'worker' });
  expect((await healthOf(worker)).status).toBe('ok');
  await age('api');
  expect(await healthOf(worker)).toMatchObject({
    code: 200,
    status: 'degraded',
    causes: [{ code: 'no-api', ...HEALTH_TEXTS['no-api'], affects: [] }],
  });
});

test('an operation that pauses is a cause with its next probe', async () => {
  const [since, until] = [-3_600_000, 60_000].map((ms) => new Date(world.now().getTime() + ms)) as [Date, Date];
  await world.sql(
    `INSERT INTO platform_pauses (key, paused_until, reason, failing_since)
     VALUES ('createClient', $1, 'unauthorized', $2)`,
    [until, since],
  );
  const all = await reportsOf(world);
  expectOneCause(all, 'platform-unauthorized');
  expect(all.health.causes).toMatchObject([{ since: since.toISOString(), hasKnownStart: true }]);
  expect(all.status).toContain(`rejects PLATFORM_API_KEY: createClient (next probe at ${utc(until)}).`);
});

test('a person in review and a request with an unknown outcome are causes, but reject no requests', async () => {
  await world.sql(
    `INSERT INTO people (id, kind, external_id, profile, profile_hash, state)
     VALUES (gen_random_uuid(), 'client', 'c-1', '', '', 'needs-review')`,
  );
  await world.sql(`INSERT INTO sessions (id, state, requested_at) VALUES (gen_random_uuid(), 'Unknown', now())`);
  await world.advance('3 s');
  const { health, overview, status, exitCode } = await reportsOf(world);
  expect([health.code, health.status, exitCode]).toEqual([200, 'degraded', 2]);
  const texts = [
    ['client-needs-review', 'Clients that need a decision: 1.'],
    ['session-unknown', 'Session requests with an unknown outcome: 1.'],
  ];
  expect(health.causes.map(({ code, cause }) => [code, cause])).toEqual(texts);
  expect(overview.decisions?.map(({ kind, cause }) => [kind, cause])).toEqual(texts);
  for (const [, cause] of texts) expect(status).toContain(`  ✗ ${cause}\n    See npx notebridge `);
});
