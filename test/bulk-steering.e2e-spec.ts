import pg from 'pg';
import { type Service, sumOfOutcomes } from '../harness/service.js';
import { until } from '../harness/until.js';
import { SeededRandom } from '../simulator/seeded-random.js';
import type { ImportView } from '../src/imports/import-view.js';
import {
  clientLine,
  clientsCsv,
  everybody,
  imported,
  importIs,
  importOf,
  many,
  planned,
  providerLine,
  providersCsv,
  rowsOf,
} from './support/bulk.js';
import { type Mirror, useMirrors } from './support/service.js';

const SEED = Number(process.env.SEED);
/** Cancelled imports in the test of the law. */
const ROUNDS = Number(process.env.ROUNDS ?? 4);

const newMirror = useMirrors();

/** About twenty calls a second, so that there is a middle to steer in; answers take their time. */
async function slow(): Promise<[Mirror, Service]> {
  const mirror = await newMirror({ calls: 1_200, platform: { latencyMs: [20, 120] } });
  return [mirror, await mirror.start()];
}

const steer = (service: Service, id: string, verb: string) =>
  service.call<ImportView>('POST', `/v1/imports/${id}/${verb}`, { body: {} });

const arrived = (mirror: Mirror, calls: number) =>
  until(`${calls} calls have arrived`, () => mirror.arrivals() >= calls);

/** Calls that were granted have arrived and are answered: the slowest takes 120 ms. */
async function quiet(mirror: Mirror): Promise<void> {
  let seen = { calls: -1, at: 0 };
  await until('no call arrives any more', () => {
    const calls = mirror.arrivals();
    if (calls !== seen.calls) seen = { calls, at: Date.now() };
    return Date.now() - seen.at > 600;
  });
}

describe('a running import', () => {
  test('pauses: what is under way ends, nothing else starts; who is waited for goes on; resume goes on', async () => {
    const [mirror, service] = await slow();
    const { id } = await service.startImport('kind=clients', [
      providersCsv(many(30, 'p').map((one) => providerLine(one))),
      clientsCsv(many(30, 'c').map((one) => clientLine(one, ['p-30']))),
    ]);
    await arrived(mirror, 8);
    expect((await steer(service, id, 'pause')).body.state).toBe('paused');
    await quiet(mirror);
    const before = mirror.arrivals();
    expect((await importOf(service, id)).calls.remaining.min).toBeGreaterThan(0);

    // A clinician needs a client of a provider whom the paused import holds back.
    const body = { firstName: 'Cleo', lastName: 'Now', providers: ['p-29'] };
    const answer = await service.call('PUT', '/v1/clients/c-now', { body, wait: 60 });
    expect([answer.status, answer.body.sync.state]).toEqual([200, 'synced']);
    expect(mirror.arrivals() - before).toBe(3);

    expect((await steer(service, id, 'resume')).body.state).toBe('running');
    const ended = await importIs(service, id, 'completed');
    expect([ended.counts.created, sumOfOutcomes(ended), ended.counts.total]).toEqual([60, 60, 60]);
    expect((await steer(service, id, 'pause')).status).toBe(409);
  });

  test(
    'that is cancelled gives everybody who was not sent the wish back that they had before',
    async () => {
      process.stderr.write(`seed ${SEED}\n`);
      const random = new SeededRandom(SEED);
      for (let round = 0; round < ROUNDS; round++) await cancelledSomewhere(random);
    },
    40_000 + ROUNDS * 20_000,
  );
});

/** How many calls that create somebody were granted. */
async function createsGranted(mirror: Mirror): Promise<number> {
  const client = new pg.Client({ connectionString: mirror.database.url });
  await client.connect();
  const { rows } = await client
    .query<{ n: number }>(`SELECT count(*)::int AS n FROM platform_calls WHERE operation LIKE 'create%'`)
    .finally(() => client.end());
  return rows[0]?.n ?? 0;
}

/** One import of every kind of change, cancelled at a random moment. */
async function cancelledSomewhere(random: SeededRandom): Promise<void> {
  const mirror = await newMirror({ calls: 2_400, platform: { latencyMs: [5, 80] } });
  const service = await mirror.start();
  await imported(service, 'kind=clients', [
    providersCsv(many(6, 'p').map((one) => providerLine(one))),
    clientsCsv(many(16, 'c').map((one) => clientLine(one, ['p-1', 'p-2']))),
  ]);
  await service.call('DELETE', '/v1/clients/c-16', { wait: 60 });
  const wishes = async () => new Map((await everybody(service)).map((one) => [one.externalId, one]));
  const before = await wishes();
  const plan = await planned(service, 'kind=clients&mode=snapshot', [
    providersCsv([...many(5, 'p'), ...many(6, 'new-p')].map((one) => providerLine(one))),
    clientsCsv([
      ...many(6, 'c').map((one) => clientLine(one, ['p-3'])),
      clientLine('c-16', ['p-1']),
      ...many(8, 'new-c').map((one) => clientLine(one, ['new-p-1', 'p-1'], `${one}@example.org`)),
    ]),
  ]);
  const begun = mirror.arrivals();
  const override = { body: { override: ['deletes', 'providerRemovals'] } };
  await service.call('POST', `/v1/imports/${plan.id}/apply`, override);
  await arrived(mirror, begun + Math.floor(random.fraction() * 50));
  const steered = await steer(service, plan.id, 'cancel');
  if (steered.status === 409) return; // it had ended
  const atCancel = await createsGranted(mirror);
  const ended = await service.importEnded(plan.id);
  expect(ended.state).toBe('cancelled');
  expect([ended.counts.pending, sumOfOutcomes(ended)]).toEqual([0, ended.counts.total]);
  // Lists that were changed are given back, which takes calls; but nobody is created any more.
  expect(await createsGranted(mirror)).toBe(atCancel);

  const after = await until('everybody is at rest', async () => {
    const people = await wishes();
    return [...people.values()].every(({ sync }) => sync.state === 'synced') ? people : undefined;
  });
  for (const row of await rowsOf(service, plan.id)) {
    const id = row.externalId ?? '';
    const [was, is] = [before.get(id), after.get(id)];
    const shown = [id, row.planned, row.outcome, row.code];
    // Whoever was deleted before the cancel could stop it stays deleted: nobody gets a second user on the platform.
    if (row.outcome === 'skipped' && was?.platformUserId) expect(is?.platformUserId).toBe(was.platformUserId);
    if (row.outcome === 'skipped') {
      expect([...shown, is?.providers]).toEqual([id, row.planned, 'skipped', 'cancelled', was?.providers]);
      expect([id, is === undefined]).toEqual([id, was === undefined]);
    } else if (row.outcome === 'deleted') expect([...shown, is]).toEqual([...shown, undefined]);
    else expect([...shown, is?.sync.state]).toEqual([...shown, 'synced']);
  }
  // What is wanted is what the platform has, and nobody is there twice.
  const users = mirror.simulator.state.users;
  expect(users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });
  expect(
    users
      .list()
      .map(({ partnerUserId }) => partnerUserId)
      .sort(),
  ).toEqual([...after.keys()].sort());
  for (const { externalId, providers = [], platformUserId } of after.values()) {
    const ids = providers.map((one) => after.get(one)?.platformUserId);
    expect([externalId, users.find(platformUserId ?? '')?.providerUserIds]).toEqual([externalId, ids]);
  }
}

test('a plan that is cancelled was never wanted: its people stay as they are', async () => {
  const [mirror, service] = await slow();
  await imported(service, 'kind=clients', [
    providersCsv([providerLine('p-1')]),
    clientsCsv([clientLine('c-1', ['p-1'])]),
  ]);
  const before = mirror.arrivals();
  const plan = await planned(service, 'kind=clients&dryRun=true', [
    providersCsv([providerLine('p-2')]),
    clientsCsv([clientLine('c-1', ['p-2'])]),
  ]);
  await steer(service, plan.id, 'cancel');
  const ended = await service.importEnded(plan.id);
  expect([ended.state, ended.counts.skipped, ended.counts.total]).toEqual(['cancelled', 2, 2]);
  const people = await everybody(service);
  expect(people.map(({ externalId, providers, sync }) => [externalId, providers, sync.state])).toEqual([
    ['p-1', undefined, 'synced'],
    ['c-1', ['p-1'], 'synced'],
  ]);
  expect(mirror.arrivals()).toBe(before);
});

test('a provider whom a cancelled import takes back is missed by a plan that names it, not left out of a list', async () => {
  const [, service] = await slow();
  await imported(service, 'kind=providers', [providersCsv([providerLine('p-1')])]);
  const first = await service.startImport('kind=providers', [
    providersCsv(many(40, 'new').map((one) => providerLine(one))),
  ]);
  await importIs(service, first.id, 'running');
  const later = await planned(service, 'kind=clients&dryRun=true', [
    clientsCsv([clientLine('c-1', ['p-1']), clientLine('c-2', ['p-1', 'new-40']), clientLine('c-3', ['new-40'])]),
  ]);
  await steer(service, first.id, 'cancel');
  await service.importEnded(first.id);
  await steer(service, later.id, 'apply');
  await service.importEnded(later.id);
  const rows = (await rowsOf(service, later.id)).map(({ externalId, outcome, code }) => [externalId, outcome, code]);
  expect(rows).toEqual([
    ['c-1', 'created', null],
    ['c-2', 'skipped', 'changed-since-plan'],
    ['c-3', 'skipped', 'changed-since-plan'],
  ]);
});

test('two imports at once are ordered: the later wish stands, and a cancelled first takes nothing from the second', async () => {
  const [mirror, service] = await slow();
  await imported(service, 'kind=providers', [providersCsv(many(2, 'p').map((one) => providerLine(one)))]);
  const clients = many(20, 'c');
  const first = await service.startImport('kind=clients', [clientsCsv(clients.map((one) => clientLine(one, ['p-1'])))]);
  const second = await service.startImport('kind=clients', [
    clientsCsv(clients.slice(5).map((one) => clientLine(one, ['p-2']))),
  ]);
  await importIs(service, second.id, 'running').catch(() => undefined);
  await steer(service, first.id, 'cancel');
  const ended = await importIs(service, second.id, 'completed');
  expect([ended.counts.total, sumOfOutcomes(ended), ended.counts.pending]).toEqual([15, 15, 0]);
  const one = await service.importEnded(first.id);
  expect([sumOfOutcomes(one), one.counts.pending]).toEqual([20, 0]);
  const p2 = mirror.usersOf('p-2')[0]?.userId;
  for (const id of clients.slice(5)) {
    expect([id, mirror.usersOf(id).map((user) => user.providerUserIds)]).toEqual([id, [[p2]]]);
  }
});

test('retry takes up what failed, and a client whose provider failed ends as needsReview', async () => {
  const [mirror, service] = await slow();
  const bad = { operation: 'createProvider', status: 400, match: { partnerUserId: 'p-1' } };
  mirror.trouble({ kind: 'status', ...bad });
  const { id } = await service.startImport('kind=clients', [
    providersCsv(many(2, 'p').map((one) => providerLine(one))),
    clientsCsv([clientLine('c-1', ['p-1']), clientLine('c-2', ['p-2'])]),
  ]);
  const ended = await importIs(service, id, 'completed');
  const outcomes = async () => (await rowsOf(service, id)).map((row) => [row.externalId, row.outcome, row.code]);
  expect([ended.counts.failed, ended.counts.needsReview, ended.counts.created]).toEqual([1, 1, 2]);
  expect(await outcomes()).toEqual([
    ['p-1', 'failed', 'rejected'],
    ['p-2', 'created', null],
    ['c-1', 'needsReview', 'provider-not-mirrored'],
    ['c-2', 'created', null],
  ]);
  const calls = mirror.arrivals();
  expect((await steer(service, id, 'retry')).status).toBe(200);
  const again = await importIs(service, id, 'completed');
  expect([again.counts.created, sumOfOutcomes(again)]).toEqual([4, 4]);
  expect(mirror.arrivals() - calls).toBe(3);

  // Nothing is left to take up: it stays finished, and nobody is told once more.
  const idle = await steer(service, id, 'retry');
  expect([idle.status, idle.body.state, idle.body.finishedAt]).toEqual([200, 'completed', again.finishedAt]);
  const feed = await service.call<{ items: { type: string; subject: string; data: object }[] }>(
    'GET',
    '/v1/events?after=0&limit=200',
  );
  const finished = feed.body.items.filter(({ type }) => type === 'import.finished');
  expect(finished).toMatchObject(Array(2).fill({ subject: `imports/${id}`, data: { id, state: 'completed' } }));
});
