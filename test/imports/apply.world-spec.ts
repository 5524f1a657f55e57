import { randomUUID } from 'node:crypto';
import { type ImportFile, sumOfOutcomes } from '../../harness/service.js';
import { Env } from '../../src/config/env.js';
import { ImportsRepository } from '../../src/imports/model/imports.repository.js';
import { PlanRepository } from '../../src/imports/plan/plan.repository.js';
import { ImportCounts } from '../../src/imports/run/import-counts.repository.js';
import { ImportErasure } from '../../src/imports/run/import-erasure.js';
import { LaterStatements } from '../../src/imports/run/later-statements.js';
import { RowApplier } from '../../src/imports/run/row-applier.js';
import type { PersonResponse } from '../../src/people/api/person-view.js';
import { PlatformUsersRepository } from '../../src/people/store/platform-users.repository.js';
import { limitsOf } from '../../src/queue/work/limiter.js';
import { clientLine, clientsCsv, many, providerLine, providersCsv } from '../support/bulk.js';
import { useWorld } from '../world/use-world.js';
import { importsIn } from './imports.js';
import { openUpload } from './open-upload.js';

const world = useWorld();
const { start, imported, prepared, planned, ended, mirrored, settled, transition, show, rows, outcomes } =
  importsIn(world);

const providers = (...ids: string[]) => providersCsv(ids.map((id) => providerLine(id)));
const clients = (ids: string[], list: string[]) => clientsCsv(ids.map((id) => clientLine(id, list)));

const person = (kind: string, id: string) => world.call('GET', `/v1/${kind}/${id}`);
const put = (path: string, body: object) => world.call('PUT', `/v1/${path}`, { body });
const remove = (path: string) => world.call('DELETE', `/v1/${path}`);
const cleo = (lastName: string, list: string[]) => ({ firstName: 'Cleo', lastName, providers: list });

/** The ids of applied rows, in the order in which they were applied. */
async function applied(importId: string): Promise<string[]> {
  const found = await world.sql<{ id: string }>(
    'SELECT external_id AS id FROM import_rows WHERE import_id = $1 AND applied_at IS NOT NULL ORDER BY applied_at, row_no',
    [importId],
  );
  return found.map(({ id }) => id);
}

/** A running import whose rows were not applied yet. */
async function unapplied(...files: ImportFile[]): Promise<string> {
  const { id } = await planned('dryRun=true', files);
  expect((await transition(id, 'apply')).status).toBe(202);
  return id;
}

describe('a running import', () => {
  test('makes all rows desired at once: providers, clients, deletions of clients and of providers', async () => {
    await mirrored('', [providers('p-old', 'p-1'), clients(many(2, 'old'), ['p-old'])]);
    const { id } = await planned('mode=snapshot', [clients(many(501, 'c'), ['p-new']), providers('p-1', 'p-new')]);
    await transition(id, 'apply', ['deletes']);
    const batches = jest.spyOn(world.get(RowApplier), 'apply');
    await world.work.imports();
    const inFile = new Map((await rows(id)).map(({ row, externalId }) => [row, externalId]));
    const inOrder = batches.mock.calls.map(([{ rowNos }]) => rowNos.map((rowNo) => inFile.get(rowNo)));
    expect(inOrder).toEqual([['p-new'], many(500, 'c'), ['c-501'], ['old-1', 'old-2'], ['p-old']]);
    expect(await world.sql('SELECT 1 FROM people WHERE import_id IS DISTINCT FROM $1 OR urgent', [id])).toHaveLength(1);
  });

  test('lets the good clients pass those that the platform refuses', async () => {
    const [bad, good] = [many(60, 'bad'), many(100, 'good')];
    for (const partnerUserId of bad) {
      const match = { partnerUserId };
      world.platform.injectFault({ operation: 'createClient', kind: 'status', status: 400, match, count: null });
    }
    const before = world.now().getTime();
    const { id } = await prepared('', [providers('p-1'), clients([...bad, ...good], ['p-1'])]);
    await world.settle();
    expect(await show(id)).toMatchObject({ state: 'completed', counts: { created: 101, failed: 60 } });
    // One call each, at the limit of calls: nobody waited for a refused one.
    const { max, duration } = limitsOf(world.get(Env).USER_MANAGEMENT_CALLS_PER_MINUTE);
    expect(world.now().getTime() - before).toBeLessThan(2 * (161 / max) * duration + 5_000);
  });

  test('waits for the deletion of the client that has an email', async () => {
    await imported('', [providers('p-1'), clientsCsv([clientLine('c-1', ['p-1'], 'one@mail.example')])]);
    const { id } = await planned('mode=snapshot', [
      clientsCsv([clientLine('c-new', ['p-1'], 'one@mail.example'), clientLine('c-2', ['p-1'])]),
    ]);
    await transition(id, 'apply');
    await world.work.imports();
    expect(await outcomes(id)).toEqual(['c-new', 'c-2', 'c-1'].map((one) => [one, 'pending', null]));
    await world.settle();
    expect(await show(id)).toMatchObject({ state: 'completed', counts: { created: 2 }, deletes: { deleted: 1 } });
  });

  test('accepts clients whose provider is in an earlier upload that will be planned and applied', async () => {
    const earlier = await start('', [providers('p-9')]);
    await start('dryRun=true', [providers('p-tried')]);
    await start('mode=snapshot', [providers('p-listed')]);
    const lines = ['p-9', 'p-tried', 'p-listed'].map((provider, at) => clientLine(`c-${at}`, [provider]));
    const id = await start('', [clientsCsv(lines)]);
    await world.work.imports();
    expect([await applied(earlier), await applied(id)]).toEqual([['p-9'], ['c-0']]);
    expect(await outcomes(id)).toEqual([
      ['c-0', 'pending', null],
      ['c-1', 'rejected', 'unknown-provider'],
      ['c-2', 'rejected', 'unknown-provider'],
    ]);
  });

  test('skips clients whose provider was in an earlier upload that was not applied', async () => {
    const earlier = await start('', [providers('p-9')]);
    const id = await start('', [clients(['c-1'], ['p-9'])]);
    await transition(earlier, 'cancel');
    await world.work.imports();
    expect(await outcomes(id)).toEqual([['c-1', 'skipped', 'provider-gone']]);
  });

  test('mirrors everyone and stores its totals, which equal the counted ones', async () => {
    const { id } = await prepared('', [providers('p-1'), clients(many(20, 'c'), ['p-1'])]);
    await world.settle();
    const view = await show(id);
    expect(view).toMatchObject({ state: 'completed', counts: { total: 21, created: 21 }, etaSeconds: null });
    expect(world.platform.arrivals()).toBe(view.calls.made);
    const record = await world.get(ImportsRepository).find(id);
    const counted = record && (await world.get(ImportCounts).totals({ ...record, totals: null }));
    expect(record?.totals).toEqual(counted);
  });
});

describe('pause', () => {
  test('stops the calls for people of the import, until it resumes', async () => {
    const { id } = await prepared('', [providers('p-1'), clients(many(3, 'c'), ['p-1'])]);
    expect((await transition(id, 'pause')).body).toMatchObject({ state: 'paused', etaUnknown: 'paused' });
    await put('providers/p-2', { email: 'p-2@mail.example', firstName: 'Pia', lastName: 'Two' });
    await world.settle();
    expect((await person('providers', 'p-2')).body.sync.state).toBe('synced');
    expect(await show(id)).toMatchObject({ state: 'paused', counts: { pending: 4 } });
    expect((await transition(id, 'resume')).body.state).toBe('running');
    await world.settle();
    expect(await show(id)).toMatchObject({ state: 'completed', counts: { created: 4 } });
    expect((await transition(id, 'pause')).status).toBe(409);
  });

  test('keeps rows from being applied', async () => {
    const id = await unapplied(providers('p-1'));
    await transition(id, 'pause');
    await world.settle();
    expect([(await person('providers', 'p-1')).status, await outcomes(id)]).toEqual([404, [['p-1', 'pending', null]]]);
    await transition(id, 'resume');
    await settled(id);
    expect((await person('providers', 'p-1')).body.sync.state).toBe('synced');
  });

  test('does not stop a person whom the EHR or another import has stated since, nor their providers', async () => {
    const { id } = await prepared('', [providers('p-1', 'p-2', 'p-3'), clients(['c-1'], ['p-1'])]);
    await transition(id, 'pause');
    await put('clients/c-1', cleo('Now', ['p-1']));
    const { id: other } = await prepared('', [clients(['c-2'], ['p-2'])]);
    await world.settle();
    const states = ['p-1', 'p-2', 'p-3'].map(async (one) => (await person('providers', one)).body.sync.state);
    expect(await Promise.all(states)).toEqual(['synced', 'synced', 'pending']);
    expect((await person('clients', 'c-1')).body.sync.state).toBe('synced');
    expect((await show(other)).state).toBe('completed');
  });

  test('does not stop a provider whom a client of the EHR waits for, although the import restates it', async () => {
    await world.call('PUT', '/v1/sending', { body: { held: true, reason: 'CASE-1' } });
    await put('providers/p-1', { email: 'p-1@mail.example', firstName: 'Pia', lastName: 'One' });
    await put('clients/c-1', cleo('Now', ['p-1']));
    const { id } = await prepared('', [providers('p-1')]);
    await transition(id, 'pause');
    await world.call('PUT', '/v1/sending', { body: { held: false } });
    await world.settle();
    expect((await person('clients', 'c-1')).body.sync.state).toBe('synced');
  });
});

describe('a row that was not applied', () => {
  const file = clientsCsv([clientLine('c-1', ['p-1'], 'one@mail.example')]);
  beforeEach(() => imported('', [providers('p-1', 'p-2')]));

  test('has no person yet', async () => {
    await unapplied(file);
    expect((await person('clients', 'c-1')).status).toBe(404);
    const query = { email: 'one@mail.example' };
    const { body } = await world.call<{ items: PersonResponse[] }>('POST', '/v1/people/search', { body: query });
    expect(body.items).toEqual([]);
  });

  test('loses against a PUT', async () => {
    const id = await unapplied(file);
    const { status, body } = await put('clients/c-1', cleo('Now', ['p-2']));
    expect([status, body.lastName, body.providers]).toEqual([202, 'Now', ['p-2']]);
    await world.settle();
    expect((await person('clients', 'c-1')).body).toMatchObject({ lastName: 'Now', sync: { state: 'synced' } });
    expect(await outcomes(id)).toEqual([['c-1', 'skipped', 'changed-since-read']]);
  });

  test('loses against a PUT that comes while its batch is applied', async () => {
    const pia = (lastName: string) => ({ email: `${lastName}@mail.example`, firstName: 'Pia', lastName });
    await world.call('PUT', '/v1/sending', { body: { held: true, reason: 'CASE-1' } });
    await put('providers/old', pia('Before'));
    const linked = `externalId,email,firstName,lastName,platformUserId\nnew,n@mail.example,Pia,File,${randomUUID()}`;
    const id = await unapplied({ name: 'providers.csv', type: 'text/csv', content: linked });
    // The person gets the id of the row after the batch has locked its people, and is put after the batch has read them.
    const [later, users] = [world.get(LaterStatements), world.get(PlatformUsersRepository)];
    const outdated = later.outdated.bind(later);
    jest.spyOn(later, 'outdated').mockImplementationOnce(async (...rows) => {
      await world.call('POST', '/v1/providers/old/rename', { body: { externalId: 'new' } });
      return outdated(...rows);
    });
    const describeUser = users.describe.bind(users);
    const asked = jest.spyOn(users, 'describe').mockImplementationOnce(async (...user) => {
      expect((await put('providers/new', pia('Now'))).status).toBe(202);
      return describeUser(...user);
    });
    await world.work.imports();
    expect(asked).toHaveBeenCalled();
    expect((await person('providers', 'new')).body).toMatchObject({ lastName: 'Now' });
    expect(await outcomes(id)).toEqual([['new', 'skipped', 'changed-since-read']]);
  });

  test('is skipped and erased by a DELETE', async () => {
    const id = await unapplied(file);
    expect((await remove('clients/c-1')).status).toBe(404);
    expect(await outcomes(id)).toEqual([['c-1', 'skipped', 'erased']]);
    expect(
      await world.sql(
        'SELECT 1 FROM import_rows WHERE import_id = $1 AND (profile IS NOT NULL OR email_fingerprint IS NOT NULL)',
        [id],
      ),
    ).toEqual([]);
    await world.settle();
    expect(world.platform.usersOf('c-1')).toEqual([]);
    expect(await show(id)).toMatchObject({ state: 'completed' });
  });
});

describe('a DELETE of an unknown id', () => {
  /** Deletes c-1, imports it, and expects that it was not created. */
  async function expectSkipped(id: string): Promise<void> {
    await world.settle();
    expect((await outcomes(id))[0]?.slice(0, 2)).toEqual(['c-1', 'skipped']);
    expect((await show(id)).state).toBe('completed');
    expect((await person('clients', 'c-1')).status).toBe(404);
    expect(await world.sql('SELECT 1 FROM import_rows WHERE profile IS NOT NULL')).toEqual([]);
  }

  test('skips its rows in an upload that is open', async () => {
    await mirrored('', [providers('p-1')]);
    const end = await openUpload(world, 'kind=clients');
    expect((await remove('clients/c-1')).status).toBe(404);
    await expectSkipped(await end(clients(['c-1'], ['p-1']).content as string));
  });

  test('skips its rows in an upload that ends at the same moment', async () => {
    await mirrored('', [providers('p-1')]);
    const end = await openUpload(world, 'kind=clients');
    const erasure = world.get(ImportErasure);
    const erase = erasure.erase.bind(erasure);
    let id = '';
    jest.spyOn(erasure, 'erase').mockImplementationOnce(async (tx, erased) => {
      const result = await erase(tx, erased);
      id = await end(clients(['c-1'], ['p-1']).content as string);
      return result;
    });
    expect((await remove('clients/c-1')).status).toBe(404);
    await expectSkipped(id);
  });

  test('skips its rows in a plan', async () => {
    await mirrored('', [providers('p-1')]);
    const { id } = await planned('dryRun=true', [clients(['c-1'], ['p-1'])]);
    expect((await remove('clients/c-1')).status).toBe(404);
    await transition(id, 'apply');
    await expectSkipped(id);
  });

  test('stays in force when a row of an earlier upload is corrected, and leaves no name in it', async () => {
    await mirrored('', [providers('p-1')]);
    const bad = 'externalId,email,firstName,lastName,providers\nc-1,no mail,Cleo,Lee,p-1';
    const { id } = await planned('dryRun=true', [{ name: 'clients.csv', type: 'text/csv', content: bad }]);
    expect((await remove('clients/c-1')).status).toBe(404);
    const names = { email: 'c-1@mail.example', firstName: 'Cleo', lastName: 'Lee', providers: ['p-1'] };
    const correction = { rows: [{ row: 1, kind: 'client', externalId: 'c-1', ...names }] };
    await world.call('PATCH', `/v1/imports/${id}/rows`, { body: correction });
    await world.work.imports();
    await transition(id, 'apply');
    await expectSkipped(id);
  });

  test('leaves no name in a row that an open upload rejects', async () => {
    await mirrored('', [providers('p-1')]);
    const end = await openUpload(world, 'kind=clients');
    expect((await remove('clients/c-1')).status).toBe(404);
    const id = await end('externalId,email,firstName,lastName,providers\nc-1,no mail,Cleo,Lee,p-1');
    await world.settle();
    expect(await rows(id, 'cells=true')).toMatchObject([{ code: 'bad-email', cells: null }]);
    expect(
      await world.sql('SELECT 1 FROM import_rows WHERE num_nonnulls(cells, profile, email_fingerprint) > 0'),
    ).toEqual([]);
  });

  test('is answered 404 again, and does not keep the id from being used', async () => {
    for (const _ of [1, 2]) expect((await remove('providers/p-1')).status).toBe(404);
    const listed = await world.call<{ items: unknown[] }>('GET', '/v1/providers?state=deleted');
    expect([listed.body.items, (await person('providers', 'p-1')).status]).toEqual([[], 404]);
    await put('providers/p-2', { email: 'p-2@mail.example', firstName: 'Pia', lastName: 'Two' });
    expect((await world.call('POST', '/v1/providers/p-2/rename', { body: { externalId: 'p-1' } })).status).toBe(200);
    expect(
      (await put('providers/p-3', { email: 'p-3@mail.example', firstName: 'Pia', lastName: 'Three' })).status,
    ).toBe(202);
    await world.settle();
    expect((await person('providers', 'p-1')).body.sync.state).toBe('synced');
    const { body } = await world.call<{ items: { type: string }[] }>('GET', '/v1/events?after=0');
    expect(body.items.filter(({ type }) => type === 'person.deleted')).toEqual([]);
  });

  test('does not keep a later upload from creating the person', async () => {
    await mirrored('', [providers('p-1')]);
    const end = await openUpload(world, 'kind=clients');
    await remove('clients/c-1');
    await end(clients(['c-2'], ['p-1']).content as string);
    const { id } = await prepared('', [clients(['c-1'], ['p-1'])]);
    expect(await applied(id)).toEqual(['c-1']);
  });
});

describe('the later of two imports', () => {
  /** Two plans, the second one uploaded later; neither was applied. */
  async function plans(first: string[], second: string[], mode = 'upsert') {
    await mirrored('', [providers('p-1', 'p-2'), clients(['known'], ['p-1'])]);
    const earlier = await planned('dryRun=true', [clientsCsv(first)]);
    const later = await planned(`dryRun=true&mode=${mode}`, [clientsCsv(second)]);
    return { earlier: earlier.id, later: later.id };
  }
  const codes = async (id: string) => (await outcomes(id)).map(([externalId, , code]) => [externalId, code]);

  test.each([
    ['first', ['later', 'earlier']],
    ['last', ['earlier', 'later']],
  ] as const)('wins if it is applied %s', async (_, order) => {
    const ids = await plans(
      [clientLine('c-1', ['p-1']), clientLine('known', ['p-2']), clientLine('c-2', ['p-1'])],
      [clientLine('c-1', ['p-2']), clientLine('known', ['p-1']), 'c-2,no mail,Cleo,c-2,p-1'],
    );
    for (const one of order) await transition(ids[one], 'apply');
    await world.work.imports();
    // A rejected row says nothing.
    expect(await codes(ids.earlier)).toEqual([
      ['c-1', 'changed-since-read'],
      ['known', 'changed-since-read'],
      ['c-2', null],
    ]);
    expect((await codes(ids.later)).map(([, code]) => code)).toEqual([null, null, 'bad-email']);
  });

  test.each([
    ['first', ['later', 'earlier']],
    ['last', ['earlier', 'later']],
  ] as const)('wins over people that it does not name as a snapshot applied %s', async (_, order) => {
    const ids = await plans(
      [clientLine('c-1', ['p-1']), clientLine('c-2', ['p-1']), clientLine('c-3', ['p-1'])],
      [clientLine('c-2', ['p-1']), clientLine('known', ['p-1']), 'c-3,no mail,A,B,p-1'],
      'snapshot',
    );
    for (const one of order) expect((await transition(ids[one], 'apply')).status).toBe(202);
    await world.work.imports();
    expect(await codes(ids.earlier)).toEqual([
      ['c-1', 'changed-since-read'],
      ['c-2', 'changed-since-read'],
      ['c-3', null],
    ]);
  });

  test('takes no one from the earlier one while a row of its snapshot is unclear', async () => {
    const ids = await plans([clientLine('c-1', ['p-1'])], [',,A,B,p-1', clientLine('known', ['p-1'])], 'snapshot');
    for (const one of ['earlier', 'later'] as const) await transition(ids[one], 'apply');
    await world.work.imports();
    expect(await codes(ids.earlier)).toEqual([['c-1', null]]);
  });

  test('is applied to people of the earlier one', async () => {
    await mirrored('', [providers('p-1', 'p-2')]);
    const earlier = await planned('dryRun=true', [clients(['c-1'], ['p-1'])]);
    const later = await planned('dryRun=true', [clients(['c-1'], ['p-2'])]);
    for (const { id } of [earlier, later]) {
      await transition(id, 'apply');
      await world.work.imports();
    }
    expect((await person('clients', 'c-1')).body.providers).toEqual(['p-2']);
  });
});

describe('people that a snapshot deletes', () => {
  test('lose names and email when their deletion is first sent, even if it fails', async () => {
    world.platform.simulator.state.users.add({
      ...{ role: 'Client' as const, email: 'one@mail.example', firstName: 'A', lastName: 'B', providerUserIds: [] },
    });
    await imported('', [
      providers('p-1'),
      clientsCsv([clientLine('c-1', ['p-1'], 'one@mail.example'), clientLine('c-2', ['p-1'], 'two@mail.example')]),
    ]);
    const { id } = await planned('mode=snapshot', [clients(['c-3'], ['p-1'])]);
    world.platform.injectFault({ kind: 'status', operation: 'deleteUser', status: 503, count: null });
    // The account was linked by email, and the plan does not cover a change since.
    await world.sql(`UPDATE people SET wanted_version = wanted_version + 1 WHERE external_id = 'c-1'`);
    await transition(id, 'apply', ['deletes']);
    await world.settle(200).catch(() => undefined);
    const people = await Promise.all(['c-1', 'c-2'].map((one) => person('clients', one)));
    expect(people.map(({ body }) => [body.sync.state, body.firstName, body.lastName, body.email])).toEqual([
      ['needs-review', '', '', null],
      ['deleting', '', '', null],
    ]);
    const kept = `SELECT external_id AS id FROM people WHERE NOT wanted AND (profile IS NOT NULL OR email_fingerprint IS NOT NULL
      OR applied_profile IS NOT NULL OR unsettled_profile IS NOT NULL)`;
    expect(await world.sql(kept)).toEqual([{ id: 'c-1' }]);
    await world.call('POST', '/v1/clients/c-1/resolve', { body: { action: 'delete' } });
    await world.settle(200).catch(() => undefined);
    expect(await world.sql(kept)).toEqual([]);
  });
});

describe('a retry', () => {
  test('releases rows that failed or need review, and plans nothing again', async () => {
    const bad = { operation: 'createProvider', status: 400, match: { partnerUserId: 'p-1' }, count: null };
    world.platform.injectFault({ kind: 'status', ...bad });
    const { id } = await imported('', [
      providers('p-1', 'p-2'),
      clientsCsv([clientLine('c-1', ['p-1']), clientLine('c-2', ['p-2'])]),
    ]);
    expect(await outcomes(id)).toEqual([
      ['p-1', 'failed', 'rejected'],
      ['p-2', 'created', null],
      ['c-1', 'needsReview', 'provider-not-mirrored'],
      ['c-2', 'created', null],
    ]);
    const before = world.platform.arrivals();
    world.platform.release();
    const plan = jest.spyOn(world.get(PlanRepository), 'plan');
    const again = await ended(id, 'retry');
    expect([again.counts.created, sumOfOutcomes(again), world.platform.arrivals() - before]).toEqual([4, 4, 3]);
    expect(plan).not.toHaveBeenCalled();
    // Nothing is left to retry: the import stays finished, and the feed gets no third event.
    expect((await ended(id, 'retry')).finishedAt).toBe(again.finishedAt);
    const feed = await world.call<{ items: { type: string; data: object }[] }>('GET', '/v1/events?after=0&limit=200');
    const finished = feed.body.items.filter(({ type }) => type === 'import.finished');
    expect(finished).toMatchObject(Array(2).fill({ data: { id, state: 'completed' } }));
  });

  test('takes more people than one statement may name, in batches', async () => {
    world.platform.injectFault({ operation: 'createClient', kind: 'status', status: 400 });
    const { id } = await imported('', [providers('p-1'), clients(['c-1'], ['p-1'])]);
    await world.sql(
      `INSERT INTO people (id, kind, external_id, state, fault, error_code, stated_at, import_id)
       SELECT gen_random_uuid(), 'client', 'more-' || n, 'failed', 'rejected', 'rejected', i.opened_at, i.id
       FROM generate_series(1, 33000) n, imports i WHERE i.id = $1`,
      [id],
    );
    await world.sql(
      `INSERT INTO import_rows (import_id, row_no, file, line, kind, external_id, says, planned, applied_at, person_id, outcome, code)
       SELECT $1::uuid, 100 + row_number() OVER (), 0, 1, kind, external_id, 'present', 'create-or-link', now(), id, 'failed', 'rejected'
       FROM people WHERE external_id LIKE 'more-%'`,
      [id],
    );
    expect((await transition(id, 'retry')).status).toBe(200);
    expect(await world.sql(`SELECT FROM people WHERE state = 'failed'`)).toEqual([]);
  });

  test('leaves rows alone whose people were deleted since', async () => {
    world.platform.injectFault({ operation: 'createClient', kind: 'status', status: 400, count: null });
    const { id } = await imported('', [providers('p-1'), clients(['c-1'], ['p-1'])]);
    await world.call('DELETE', '/v1/clients/c-1', { wait: 60 });
    expect((await ended(id, 'retry')).counts).toMatchObject({ failed: 1, created: 1 });
    expect(await world.sql('SELECT 1 FROM import_rows WHERE profile IS NOT NULL')).toEqual([]);
  });
});

describe('an import that meets a fault', () => {
  const broken = () => {
    throw new RangeError('a fault of the program');
  };
  const unavailable = () => {
    throw Object.assign(new Error('terminating connection due to administrator command'), { code: '57P01' });
  };

  test('fails if it cannot be planned, and others continue', async () => {
    jest.spyOn(world.get(PlanRepository), 'plan').mockImplementationOnce(async () => broken());
    const bad = await start('', [providers('p-1')]);
    const good = await start('', [providers('p-2')]);
    await world.settle();
    expect(await show(bad)).toMatchObject({ state: 'failed', error: { code: 'plan-failed' }, counts: { skipped: 1 } });
    expect((await show(good)).state).toBe('completed');
  });

  test('fails only the row whose application throws, until a retry', async () => {
    const id = await unapplied(providers('p-1'), clients(many(3, 'c'), ['p-1']));
    const [kept] = await world.sql<{ profile: Buffer }>(`SELECT profile FROM import_rows WHERE external_id = 'c-2'`);
    const store = (profile: unknown) =>
      world.sql(`UPDATE import_rows SET profile = $1 WHERE external_id = 'c-2'`, [profile]);
    await store(Buffer.from('damaged'));
    await world.settle();
    expect(await show(id)).toMatchObject({ state: 'completed', counts: { created: 3, failed: 1 } });
    expect((await outcomes(id))[2]).toEqual(['c-2', 'failed', 'apply-failed']);
    await store(kept?.profile);
    expect((await ended(id, 'retry')).counts).toMatchObject({ created: 4, failed: 0 });
  });

  test('is retried while the database is unavailable, without counting as a crash', async () => {
    const id = await start('', [providers('p-1')]);
    const plan = jest.spyOn(world.get(PlanRepository), 'plan').mockImplementation(async () => unavailable());
    for (let outages = 0; outages < 5; outages += 1) {
      await expect(world.work.imports()).rejects.toThrow('terminating connection');
      await world.advance('5 s');
    }
    plan.mockRestore();
    await world.settle();
    expect((await show(id)).state).toBe('completed');
  });

  test('fails after three plans that crashed their process', async () => {
    const id = await start('', [providers('p-1')]);
    const imports = world.get(ImportsRepository);
    for (let crashes = 1; crashes <= 3; crashes += 1) expect(await imports.beginPlan(id, true)).toBe(crashes);
    await world.work.imports();
    expect(await show(id)).toMatchObject({ state: 'failed', error: { code: 'plan-crashed' } });
  });

  test('does not fail because other processes find its plan in progress', async () => {
    const id = await start('', [providers('p-1')]);
    const imports = world.get(ImportsRepository);
    const plans = world.get(PlanRepository);
    const plan = plans.plan.bind(plans);
    jest.spyOn(plans, 'plan').mockImplementationOnce(async (...parameters) => {
      for (let processes = 0; processes < 4; processes += 1) expect(await imports.beginPlan(id, true)).toBeUndefined();
      return plan(...parameters);
    });
    await world.work.imports();
    expect((await show(id)).state).toBe('running');
  });
});

describe('the estimated end of an import', () => {
  const shown = async (id: string) => {
    const { etaSeconds, etaMinSeconds, etaUnknown, calls } = await show(id);
    return { etaSeconds, etaMinSeconds, etaUnknown, remaining: calls.remaining };
  };

  test('follows the limit of calls', async () => {
    const file = [providers('p-1'), clients(many(12, 'c'), ['p-1'])];
    const { max, duration } = limitsOf(world.get(Env).USER_MANAGEMENT_CALLS_PER_MINUTE);
    const { id: later } = await planned('dryRun=true', file);
    const { id } = await prepared('', file);
    for (const one of [later, id]) {
      const { etaSeconds, remaining, etaUnknown } = await shown(one);
      expect([etaSeconds, etaUnknown]).toEqual([Math.ceil((remaining.max * duration) / max / 1_000), null]);
    }
  });

  test('is unknown while calls pause, or no worker runs', async () => {
    const { id } = await prepared('', [providers('p-1')]);
    await world.work.jobs();
    await world.sql(
      `UPDATE platform_pauses SET paused_until = now() + interval '1 minute', reason = 'unauthorized', failing_since = now()
       WHERE key = 'user-management'`,
    );
    expect(await shown(id)).toMatchObject({ etaSeconds: null, etaUnknown: 'platform-unauthorized' });
    await world.sql('UPDATE platform_pauses SET paused_until = NULL, reason = NULL, failing_since = NULL');
    await world.sql(`UPDATE workers SET alive_until = alive_until - interval '1 minute'`);
    expect(await shown(id)).toMatchObject({ etaSeconds: null, etaUnknown: 'no-worker' });
  });

  test('is unknown once the import has ended', async () => {
    const { id } = await prepared('', [providers('p-1')]);
    await transition(id, 'cancel');
    expect(await shown(id)).toMatchObject({ etaSeconds: null, etaUnknown: null });
  });
});
