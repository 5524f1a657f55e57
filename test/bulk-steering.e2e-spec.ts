import pg from 'pg';
import { type Service, sumOfOutcomes } from '../harness/service.js';
import { until } from '../harness/until.js';
import { SeededRandom } from '../simulator/seeded-random.js';
import { IMPORT_LOCK } from '../src/imports/model/imports.repository.js';
import type { ImportResponse } from '../src/imports/report/import-view.js';
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
import { callRoom } from './support/call-room.js';
import { query } from './support/databases.js';
import { useSharedService } from './support/shared-service.js';

const SEED = Number(process.env.SEED);
/** Cancelled imports in the test of the law. */
const ROUNDS = 4;

/** Answers take their time, so that calls are under way when somebody steers. */
const shared = useSharedService({
  calls: 3_000,
  platform: { latencyMs: [20, 120] },
  env: { PLATFORM_TIMEOUT_SECONDS: '60' },
});

const steer = (service: Service, id: string, verb: string) =>
  service.call<ImportResponse>('POST', `/v1/imports/${id}/${verb}`, { body: {} });

/** For whom calls were granted and sent, in their order. */
async function granted(): Promise<string[]> {
  const rows = await query<{ id: string }>(
    shared.mirror.database,
    `SELECT p.external_id AS id FROM platform_calls c JOIN people p ON p.id = c.person_id
     WHERE c.outcome IS DISTINCT FROM 'not-sent' ORDER BY c.id`,
  );
  return rows.map(({ id }) => id);
}

describe('a running import', () => {
  test('pauses: what is under way ends, nothing else starts; who is waited for goes on; resume goes on', async () => {
    const { mirror, service } = shared;
    const room = callRoom(mirror);
    await room.leave(12);
    const { id } = await service.startImport('kind=clients', [
      providersCsv(many(30, 'p').map((one) => providerLine(one))),
      clientsCsv(many(30, 'c').map((one) => clientLine(one, ['p-30']))),
    ]);
    await room.arrived(8);
    expect((await steer(service, id, 'pause')).body.state).toBe('paused');
    const atPause = await granted();
    // One whose process was held up after its grant is not sent, and leaves no permit used.
    await until('what was under way has ended', async () => {
      return (await query(mirror.database, 'SELECT 1 FROM platform_calls WHERE outcome IS NULL')).length === 0;
    });
    const before = await granted();
    expect(before.length).toBeLessThanOrEqual(atPause.length);
    await room.free();
    expect((await importOf(service, id)).calls.remaining.min).toBeGreaterThan(0);

    // A clinician needs a client of a provider whom the paused import holds back: the first row goes last.
    const body = { firstName: 'Cleo', lastName: 'Now', providers: ['p-1'] };
    const answer = await service.call('PUT', '/v1/clients/c-now', { body, wait: 60 });
    expect([answer.status, answer.body.sync.state]).toEqual([200, 'synced']);
    expect((await granted()).slice(before.length)).toEqual(['p-1', 'p-1', 'c-now']);
    expect(mirror.arrivals()).toBe(before.length + 3);

    expect((await steer(service, id, 'resume')).body.state).toBe('running');
    const ended = await importIs(service, id, 'completed');
    expect([ended.counts.created, sumOfOutcomes(ended), ended.counts.total]).toEqual([60, 60, 60]);
    expect((await steer(service, id, 'pause')).status).toBe(409);
  });

  test('tells between which bounds the calls are that it still makes, and how long it takes, until its end', async () => {
    const { mirror, service } = shared;
    const [providers, clients] = [many(4, 'p'), many(12, 'c')];
    // Of each kind some are on the platform already, which only their checks can tell.
    for (const id of [...providers.slice(0, 1), ...clients.slice(0, 5)]) {
      const role = id.startsWith('p') ? 'HealthcareProvider' : 'Client';
      const name = { firstName: 'A', lastName: 'B' };
      mirror.simulator.state.users.add({ role, email: `${id}@example.org`, ...name, providerUserIds: [] });
    }
    const room = callRoom(mirror);
    await room.leave(6);
    const { id } = await service.startImport('kind=clients', [
      providersCsv(providers.map((one) => providerLine(one))),
      clientsCsv(clients.map((one) => clientLine(one, ['p-1', 'p-2'], `${one}@example.org`))),
    ]);
    const looks: ImportResponse[] = [];
    for (const calls of [8, 8, 8]) {
      await room.used();
      looks.push(await importOf(service, id));
      await room.leave(calls);
    }
    await room.free();
    const ended = await importIs(service, id, 'completed');
    // Who is there takes a call less.
    expect([ended.calls.made, mirror.arrivals()]).toEqual([1 + 3 * 2 + 5 * 2 + 7 * 3, ended.calls.made]);
    expect([ended.calls.remaining, ended.etaSeconds]).toEqual([{ min: 0, max: 0 }, null]);
    expect(looks.map(({ state, calls }) => [state, calls.made])).toEqual([6, 14, 22].map((made) => ['running', made]));
    for (const { calls, etaSeconds } of looks) {
      const left = ended.calls.made - calls.made;
      expect(calls.remaining.min).toBeLessThanOrEqual(left);
      expect(calls.remaining.max).toBeGreaterThanOrEqual(left);
      expect(etaSeconds).toBeGreaterThan(0);
    }
    const most = looks.map(({ calls }) => calls.remaining.max);
    expect(most).toEqual([...most].sort((a, b) => b - a));
    expect(new Set(most).size).toBe(most.length);
  });

  test.each(Array.from({ length: ROUNDS }, (_, round) => round + 1))(
    `that is cancelled gives everybody who was not sent the wish back that they had before (SEED=${SEED}, round %d)`,
    (round) => cancelledSomewhere(new SeededRandom(SEED + round)),
  );
});

/** How many calls that create or delete somebody were granted to imports. */
async function changesGranted(): Promise<number> {
  const calls = `SELECT 1 FROM platform_calls WHERE lane = 'bulk' AND operation ~ '^(create|delete)'`;
  return (await query(shared.mirror.database, calls)).length;
}

/** Of the calls that the import below takes; the rest is never granted before it is cancelled. */
const MOST_CALLS = 50;

/** One import of every kind of change, cancelled after a random number of calls. */
async function cancelledSomewhere(random: SeededRandom): Promise<void> {
  const { mirror, service } = shared;
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
  // Some calls are made, up to a few more are under way when it is cancelled.
  const room = callRoom(mirror);
  const calls = Math.floor(random.fraction() * MOST_CALLS);
  await room.leave(Math.min(MOST_CALLS, calls + Math.floor(random.fraction() * 6)));
  const override = { body: { override: ['deletes', 'providerRemovals'] } };
  await service.call('POST', `/v1/imports/${plan.id}/apply`, override);
  await importIs(service, plan.id, 'running');
  await room.arrived(calls);
  // While this lock is held nobody is taken back: that nothing else starts is the cancelling's own.
  let atCancel: number;
  const holder = new pg.Client({ connectionString: mirror.database.url });
  await holder.connect();
  try {
    await holder.query('SELECT pg_advisory_lock($1)', [IMPORT_LOCK]);
    expect((await steer(service, plan.id, 'cancel')).status).toBe(200);
    atCancel = await changesGranted();
    await room.free();
    const body = { email: 'p-now@example.org', firstName: 'Pia', lastName: 'Now' };
    const answer = await service.call('PUT', '/v1/providers/p-now', { body, wait: 60 });
    expect(answer.body.sync.state).toBe('synced');
    expect(await changesGranted()).toBe(atCancel);
  } finally {
    await holder.end();
  }
  const ended = await service.importEnded(plan.id);
  expect(ended.state).toBe('cancelled');
  expect([ended.counts.pending, sumOfOutcomes(ended)]).toEqual([0, ended.counts.total]);

  const after = await until('everybody is at rest', async () => {
    const people = await wishes();
    return [...people.values()].every(({ sync }) => sync.state === 'synced') ? people : undefined;
  });
  // Lists that were changed are given back, which takes calls; but nobody is created or deleted any more.
  expect(await changesGranted()).toBe(atCancel);
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
  const { mirror, service } = shared;
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
  const { mirror, service } = shared;
  await imported(service, 'kind=providers', [providersCsv([providerLine('p-1')])]);
  const room = callRoom(mirror);
  await room.leave(0);
  const first = await service.startImport('kind=providers', [
    providersCsv(many(40, 'new').map((one) => providerLine(one))),
  ]);
  await importIs(service, first.id, 'running');
  const later = await planned(service, 'kind=clients&dryRun=true', [
    clientsCsv([clientLine('c-1', ['p-1']), clientLine('c-2', ['p-1', 'new-40']), clientLine('c-3', ['new-40'])]),
  ]);
  await steer(service, first.id, 'cancel');
  await service.importEnded(first.id);
  await room.free();
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
  const { mirror, service } = shared;
  await imported(service, 'kind=providers', [providersCsv(many(2, 'p').map((one) => providerLine(one)))]);
  const clients = many(20, 'c');
  const room = callRoom(mirror);
  await room.leave(6);
  const first = await service.startImport('kind=clients', [clientsCsv(clients.map((one) => clientLine(one, ['p-1'])))]);
  const second = await service.startImport('kind=clients', [
    clientsCsv(clients.slice(5).map((one) => clientLine(one, ['p-2']))),
  ]);
  await importIs(service, second.id, 'running');
  await room.arrived(4);
  expect((await steer(service, first.id, 'cancel')).status).toBe(200);
  await room.free();
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
  const { mirror, service } = shared;
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
