import pg from 'pg';
import { sumOfOutcomes } from '../../harness/service.js';
import { SeededRandom } from '../../simulator/seeded-random.js';
import { Database } from '../../src/database/database.js';
import type { Page } from '../../src/http/request/page.js';
import type { ImportResponse } from '../../src/imports/api/import-view.js';
import { ImportsService } from '../../src/imports/api/imports.service.js';
import { ImportsRepository } from '../../src/imports/model/imports.repository.js';
import { ImportRunner } from '../../src/imports/run/import-runner.service.js';
import type { PersonResponse } from '../../src/people/api/person-view.js';
import { breakerOf } from '../../src/people/model/circuit-breaker.js';
import { ClaimRepository } from '../../src/people/reconcile/claim.repository.js';
import { clientLine, clientsCsv, many, providerLine, providersCsv } from '../support/bulk.js';
import { backendPid, pidsBlockedBy } from '../support/databases.js';
import { useWorld } from '../world/use-world.js';
import { importsIn } from './imports.js';

const SEED = Number(process.env.SEED);

const world = useWorld();
const { imported, prepared, planned, ended, steer, show, rows, outcomes, makeCalls } = importsIn(world);

const providers = (...ids: string[]) => providersCsv(ids.map((id) => providerLine(id)));
const clients = (ids: string[], list: string[]) => clientsCsv(ids.map((id) => clientLine(id, list)));

test('pause: the call in flight ends, no other starts, a waiting caller is served; resume finishes', async () => {
  const ids = many(4, 'p');
  const { id } = await prepared('kind=clients', [providers(...ids), clients(many(4, 'c'), ['p-4'])]);
  const held = await world.untilHeld({ operation: 'createProvider' });
  expect((await steer(id, 'pause')).body.state).toBe('paused');
  const before = world.platform.arrivals();
  await held.answer();
  expect(world.platform.arrivals()).toBe(before);
  expect((await show(id)).calls.remaining.min).toBeGreaterThan(0);

  // A clinician needs a client whose provider the paused import holds back.
  const [unsent = ''] = ids.filter((one) => world.platform.usersOf(one).length === 0);
  const body = { firstName: 'Cleo', lastName: 'Now', providers: [unsent] };
  const answer = await world.call('PUT', '/v1/clients/c-now', { body, wait: 60 });
  expect([answer.status, answer.body.sync.state, world.platform.arrivals()]).toEqual([200, 'synced', before + 3]);

  expect((await steer(id, 'resume')).body.state).toBe('running');
  await world.settle();
  expect(await show(id)).toMatchObject({ state: 'completed', counts: { created: 8, total: 8 } });
  expect((await steer(id, 'pause')).status).toBe(409);
});

test('a running import shows bounds of its remaining calls, which narrow, and how long they take', async () => {
  // Two people are on the platform already, which only their checks can tell.
  for (const [id, role] of [['p-1', 'HealthcareProvider'] as const, ['c-1', 'Client'] as const]) {
    const user = { email: `${id}@example.org`, firstName: 'A', lastName: 'B', providerUserIds: [] };
    world.platform.simulator.state.users.add({ role, ...user });
  }
  const { id } = await prepared('kind=clients', [
    providers('p-1', 'p-2'),
    clientsCsv(many(4, 'c').map((one) => clientLine(one, ['p-1', 'p-2'], `${one}@example.org`))),
  ]);
  const looks: ImportResponse[] = [];
  for (const calls of [3, 4, 4]) {
    await makeCalls(calls);
    looks.push(await show(id));
  }
  await world.settle();
  const view = await show(id);
  // A linked provider takes one call, a new one two; a linked client two, a new one three.
  expect([view.state, view.calls.made, world.platform.arrivals()]).toEqual(['completed', 1 + 2 + 2 + 3 * 3, 14]);
  expect([view.calls.remaining, view.etaSeconds]).toEqual([{ min: 0, max: 0 }, null]);
  expect(looks.map(({ calls }) => calls.made)).toEqual([3, 7, 11]);
  for (const { calls, etaSeconds } of looks) {
    const left = 14 - calls.made;
    expect(calls.remaining.min).toBeLessThanOrEqual(left);
    expect(calls.remaining.max).toBeGreaterThanOrEqual(left);
    expect(etaSeconds).toBeGreaterThan(0);
  }
  const most = looks.map(({ calls }) => calls.remaining.max);
  expect(most).toEqual([...new Set(most)].sort((left, right) => right - left));
});

/** The state of a circuit breaker that is open. */
const openBecauseOf = (code: string) => ({
  ...breakerOf({}, 'createClient'),
  block: { code, status: null, failures: 1, since: 0, until: 0, probe: null, person: null },
});

test('an import shows why its end cannot be estimated', async () => {
  const { id } = await prepared('kind=providers', [providers('p-1')]);
  const shown = async () => {
    const { etaSeconds, etaUnknown } = await show(id);
    return [etaSeconds === null, etaUnknown];
  };
  expect(await shown()).toEqual([false, null]);
  for (const code of ['platform-unauthorized', 'platform-fault']) {
    await world.sql(`INSERT INTO circuit_breakers (operation, state) VALUES ('createClient', $1)`, [
      openBecauseOf(code),
    ]);
    expect(await shown()).toEqual([true, code]);
    await world.sql('DELETE FROM circuit_breakers');
  }
  await steer(id, 'pause');
  expect(await shown()).toEqual([true, 'paused']);
  await steer(id, 'cancel');
  expect(await shown()).toEqual([true, null]);
});

describe('a cancelled import', () => {
  const changes = async (): Promise<number> =>
    (await world.sql(`SELECT 1 FROM platform_calls WHERE lane = 'bulk' AND operation ~ '^(create|delete)'`)).length;

  async function everyone(): Promise<Map<string, PersonResponse>> {
    const lists = ['providers', 'clients'].map((kind) =>
      world.call<Page<PersonResponse>>('GET', `/v1/${kind}?limit=200`),
    );
    const people = (await Promise.all(lists)).flatMap(({ body }) => body.items);
    return new Map(people.map((one) => [one.externalId, one]));
  }

  test.each([1, 2, 3, 4])(`restores everyone who was not sent (SEED=${SEED}, round %d)`, async (round) => {
    await imported('kind=clients', [providers(...many(4, 'p')), clients(many(8, 'c'), ['p-1', 'p-2'])]);
    await world.call('DELETE', '/v1/clients/c-8', { wait: 60 });
    const before = await everyone();
    const { id } = await planned('kind=clients&mode=snapshot', [
      providers(...many(3, 'p'), ...many(3, 'new-p')),
      clientsCsv([
        ...many(3, 'c').map((one) => clientLine(one, ['p-3'])),
        clientLine('c-8', ['p-1']),
        ...many(3, 'new-c').map((one) => clientLine(one, ['new-p-1', 'p-1'], `${one}@example.org`)),
      ]),
    ]);
    expect((await steer(id, 'apply', ['deletes', 'providerRemovals'])).status).toBe(202);
    await world.work.imports();
    await makeCalls(Math.floor(new SeededRandom(SEED + round).fraction() * 22));
    const held = await world.untilHeld({});
    expect((await steer(id, 'cancel')).status).toBe(200);
    const atCancel = await changes();
    await world.work.people();
    expect(await changes()).toBe(atCancel);
    await held.answer();
    const view = await show(id);
    expect([view.state, view.counts.pending, sumOfOutcomes(view)]).toEqual(['cancelled', 0, view.counts.total]);

    // Changed lists are restored, which takes calls; but no one else is created or deleted.
    expect(await changes()).toBe(atCancel);
    const after = await everyone();
    for (const { externalId, outcome, code } of await rows(id)) {
      const [was, is] = [before.get(externalId ?? ''), after.get(externalId ?? '')];
      // A person deleted before the cancel stays deleted: nobody gets a second user on the platform.
      if (outcome === 'deleted') expect([externalId, is]).toEqual([externalId, undefined]);
      if (outcome !== 'skipped') continue;
      const shown = (person?: PersonResponse) => person && [person.providers, person.platformUserId];
      expect([externalId, code, shown(is)]).toEqual([externalId, 'cancelled', shown(was)]);
    }
    const { users } = world.platform.simulator.state;
    const ids = users.list().map(({ partnerUserId }) => partnerUserId);
    expect(ids.sort()).toEqual([...after.keys()].sort());
    for (const { externalId, providers: list = [], platformUserId, sync } of after.values()) {
      const listed = list.map((one) => after.get(one)?.platformUserId);
      const user = users.find(platformUserId ?? '');
      expect([externalId, sync.state, user?.providerUserIds]).toEqual([externalId, 'synced', listed]);
    }
  });

  test('takes its providers from later plans: rows that name them are skipped', async () => {
    await imported('kind=providers', [providers('p-1')]);
    const first = await prepared('kind=providers', [providers('new-1')]);
    const later = await planned('kind=clients&dryRun=true', [
      clientsCsv([clientLine('c-1', ['p-1']), clientLine('c-2', ['p-1', 'new-1']), clientLine('c-3', ['new-1'])]),
    ]);
    await steer(first.id, 'cancel');
    await world.work.imports();
    await ended(later.id, 'apply');
    expect(await outcomes(later.id)).toEqual([
      ['c-1', 'created', null],
      ['c-2', 'skipped', 'changed-since-plan'],
      ['c-3', 'skipped', 'changed-since-plan'],
    ]);
  });

  test('takes nothing from a later import of the same people', async () => {
    const ids = many(6, 'c');
    await imported('kind=providers', [providers('p-1', 'p-2')]);
    const first = await prepared('kind=clients', [clients(ids, ['p-1'])]);
    await makeCalls(2);
    const second = await prepared('kind=clients', [clients(ids.slice(2), ['p-2'])]);
    await makeCalls(1);
    expect((await steer(first.id, 'cancel')).status).toBe(200);
    await world.settle();
    expect(await show(second.id)).toMatchObject({ state: 'completed', counts: { total: 4, pending: 0 } });
    const one = await show(first.id);
    expect([sumOfOutcomes(one), one.counts.pending]).toEqual([6, 0]);
    const p2 = world.platform.usersOf('p-2')[0]?.userId;
    for (const id of ids.slice(2))
      expect([id, world.platform.usersOf(id).map((user) => user.providerUserIds)]).toEqual([id, [[p2]]]);
  });
});

describe('a large import that is steered', () => {
  /** Two and a half batches. */
  const MANY = 2_500;
  const ID = '3f2a1c9e-0000-4000-8000-000000000001';

  let holder: pg.Client;
  let imports: ImportsService;
  let runner: ImportRunner;

  beforeAll(async () => {
    holder = new pg.Client({ connectionString: world.database.url });
    await holder.connect();
    [imports, runner] = [world.get(ImportsService), world.get(ImportRunner)];
  });

  afterAll(() => holder.end());

  afterEach(() => holder.query('ROLLBACK'));

  /** A running import whose people were not sent yet. */
  async function running(count: number): Promise<void> {
    await world.sql(
      `INSERT INTO imports (id, kind, mode, dry_run, state, staged_at, applied_at)
       VALUES ($1, 'clients', 'upsert', false, 'running', now(), now())`,
      [ID],
    );
    await world.sql(
      `INSERT INTO people (id, kind, external_id, profile, profile_hash, email_fingerprint, state, lane, step, due_at)
       SELECT gen_random_uuid(), 'provider', 'p-' || n, '', '', decode(md5('p' || n), 'hex'), 'pending', 'bulk', 'checkUser',
         now() - interval '1 hour' + n * interval '1 microsecond' FROM generate_series(1, $1) AS n`,
      [count],
    );
    await world.sql(
      `INSERT INTO import_rows (import_id, row_no, file, line, kind, external_id, planned, person_id, person_wanted_at, applied)
       SELECT $1, substr(external_id, 3)::int, 1, 1, kind, external_id, 'create-or-link', id, wanted_at, true FROM people`,
      [ID],
    );
    const database = world.get(Database);
    await database.transaction((tx) => world.get(ImportsRepository).analyse(tx));
  }

  const paused = async () => (await world.sql('SELECT 1 FROM people WHERE paused_by_import = $1', [ID])).length;

  /** People that each transaction of `work` updated, without those that updated none. */
  async function updatesOfEach(work: () => Promise<unknown>): Promise<number[]> {
    const counted: number[] = [];
    const database = world.get(Database);
    const transaction = database.transaction.bind(database);
    const spy = jest.spyOn(database, 'transaction').mockImplementation((body, size) =>
      transaction(async (tx) => {
        const touched = async () =>
          Number(
            (await tx.query(`SELECT n_tup_upd AS rows FROM pg_stat_xact_user_tables WHERE relname = 'people'`)).rows[0]
              ?.rows ?? 0,
          );
        const before = await touched();
        const result = await body(tx);
        const more = (await touched()) - before;
        if (more > 0) counted.push(more);
        return result;
      }, size),
    );
    await work().finally(() => spy.mockRestore());
    return counted;
  }

  const waiter = async () => (await pidsBlockedBy(world.database.pool, await backendPid(holder)))[0];
  const bulkMayGo = () => holder.query('UPDATE call_budgets SET bulk_next_at = now()');

  const turn = async (): Promise<string | undefined> => {
    await world.advance('1 ms');
    return (await world.get(ClaimRepository).claim())?.row.person.externalId;
  };

  test('changes one row of the import; its people follow in batches of a thousand', async () => {
    await running(MANY);
    for (const [verb, held] of [['pause', MANY] as const, ['resume', 0] as const, ['cancel', MANY] as const]) {
      expect(await updatesOfEach(() => imports[verb](ID))).toEqual([]);
      expect(await updatesOfEach(() => runner.steerAll())).toEqual([1_000, 1_000, 500]);
      expect([verb, await paused()]).toEqual([verb, held]);
    }
  });

  test.each(['pause', 'cancel'] as const)('sends nobody once a %s was answered', async (verb) => {
    await running(MANY);
    expect(await turn()).toBe('p-1');
    await imports[verb](ID);
    await bulkMayGo();
    // Nobody was paused yet: people found at the head of the queue are, a bounded number in each transaction.
    const updates = await updatesOfEach(async () => expect(await turn()).toBeUndefined());
    expect(Math.max(...updates)).toBeLessThanOrEqual(50);
    expect(await paused()).toBe(MANY - 1);
    await world.sql(
      `INSERT INTO people (id, kind, external_id, profile, profile_hash, email_fingerprint, lane, due_at, step)
       VALUES (gen_random_uuid(), 'provider', 'another', '', '', '\\x01', 'bulk', now(), 'checkUser')`,
    );
    await runner.steerAll();
    expect([await paused(), await turn()]).toEqual([MANY, 'another']);
  });

  test('answers a pause after the grant that is being decided, and before any other', async () => {
    await running(3);
    expect(await turn()).toBe('p-1');
    await holder.query('BEGIN');
    await holder.query('SELECT 1 FROM call_budgets FOR UPDATE');
    let answered = false;
    const pausing = imports.pause(ID).then(() => {
      answered = true;
    });
    await world.eventually('the pause waits', waiter);
    expect(answered).toBe(false);
    await holder.query('COMMIT');
    await pausing;
    await bulkMayGo();
    expect(await turn()).toBeUndefined();
  });

  test('pauses nobody once it is finished, though its last call ended during the pause', async () => {
    await running(2);
    await imports.pause(ID);
    await runner.countAll();
    await world.sql(`UPDATE people SET state = 'synced', origin = 'created', step = NULL, due_at = NULL`);
    await world.settle();
    expect([(await imports.show(ID)).state, await paused()]).toEqual(['completed', 0]);
  });
});
