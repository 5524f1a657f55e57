import { type ImportFile, sumOfOutcomes } from '../../harness/service.js';
import { Database } from '../../src/database/database.js';
import { ImportsRepository } from '../../src/imports/model/imports.repository.js';
import { PlanRepository } from '../../src/imports/plan/plan.repository.js';
import { ImportErasure } from '../../src/imports/run/import-erasure.js';
import { ImportRunner } from '../../src/imports/run/import-runner.service.js';
import { OutcomesRepository } from '../../src/imports/run/outcomes.repository.js';
import { RowStarter } from '../../src/imports/run/row-starter.js';
import type { PersonResponse } from '../../src/people/api/person-view.js';
import type { TraceResponse } from '../../src/people/api/trace.dto.js';
import { breakerOf } from '../../src/people/model/circuit-breaker.js';
import { RECORDER_VARIANTS } from '../../src/platform/contract/wire-types.js';
import { clientLine, clientsCsv, many, providerLine, providersCsv } from '../support/bulk.js';
import { useWorld } from '../world/use-world.js';
import { importsIn } from './imports.js';
import { openUpload } from './open-upload.js';

const world = useWorld({ settings: { PLATFORM_PARTNER_DOMAIN: 'https://recorder.example.org' } });
const { start, imported, prepared, planned, ended, mirrored, transition, show, rows, outcomes, makeCalls } =
  importsIn(world);

const providers = (...ids: string[]) => providersCsv(ids.map((id) => providerLine(id)));
const clients = (ids: string[], list: string[]) => clientsCsv(ids.map((id) => clientLine(id, list)));

const person = (kind: string, id: string) => world.call('GET', `/v1/${kind}/${id}`);
const put = (path: string, body: object) => world.call('PUT', `/v1/${path}`, { body });
const remove = (path: string) => world.call('DELETE', `/v1/${path}`);
const cleo = (lastName: string, list: string[]) => ({ firstName: 'Cleo', lastName, providers: list });

/** The ids of started rows, in the order in which they started. */
async function started(importId: string): Promise<string[]> {
  const found = await world.sql<{ id: string }>(
    'SELECT external_id AS id FROM import_rows WHERE import_id = $1 AND started_at IS NOT NULL ORDER BY started_at, row_no',
    [importId],
  );
  return found.map(({ id }) => id);
}

/** Marks all providers, and the first clients that are due, as mirrored without a call. */
async function finish(clientCount: number): Promise<void> {
  await world.sql(
    `UPDATE people SET state = 'synced', step = NULL, due_at = NULL, origin = 'created', platform_user_id = 'u-' || external_id
     WHERE kind = 'provider' OR id IN (
       SELECT id FROM people WHERE kind = 'client' AND due_at IS NOT NULL ORDER BY due_at, external_id LIMIT $1)`,
    [clientCount],
  );
  await world.advance('1 ms');
  await world.work.imports();
}

/** Adds unfinished clients: by default, as many as imports may have. */
const occupy = (count = 60) =>
  world.sql(
    `INSERT INTO people (id, kind, external_id, profile, profile_hash, lane, stated_at, due_at)
     SELECT gen_random_uuid(), 'client', 'busy-' || n, '', NULL, 'bulk', now() + interval '1 day', now() + interval '1 day'
     FROM generate_series(1, $1) AS n`,
    [count],
  );

/** A running import whose clients have not started, because others are unfinished. */
async function waiting(...files: ImportFile[]): Promise<string> {
  await imported('', [providers('p-1', 'p-2')]);
  await occupy();
  return (await prepared('', files)).id;
}

describe('a running import', () => {
  test('starts all providers, and at most 60 clients over all imports', async () => {
    const { id } = await prepared('', [providers(...many(65, 'p')), clients(many(70, 'c'), ['p-1'])]);
    expect(await started(id)).toEqual([...many(65, 'p'), ...many(60, 'c')]);
    const { id: other } = await prepared('', [providers('p-new'), clients(['other-1', 'other-2'], ['p-new'])]);
    expect(await started(other)).toEqual(['p-new']);

    // More start once half of them are finished: of the import with the fewest rows left first.
    await finish(29);
    expect([(await started(id)).length, await started(other)]).toEqual([125, ['p-new']]);
    await finish(1);
    expect([(await started(id)).length, await started(other)]).toEqual([125, ['p-new', 'other-1', 'other-2']]);
    await finish(2);
    expect(await started(id)).toHaveLength(135);
  });

  test('starts providers, clients, deletions of clients and of providers in this order', async () => {
    await mirrored('', [providers('p-old', 'p-1'), clients(many(2, 'old'), ['p-old'])]);
    const { id } = await planned('mode=snapshot', [clients(many(61, 'c'), ['p-new']), providers('p-1', 'p-new')]);
    await transition(id, 'apply', ['deletes']);
    await world.work.imports();
    const phases = async () => (await started(id)).map((one) => one.replace(/^c-.*/, 'c'));
    expect(new Set(await phases())).toEqual(new Set(['p-new', 'c']));
    await finish(60);
    expect((await phases()).slice(-4)).toEqual(['c', 'old-1', 'old-2', 'p-old']);
  });

  test('does not count people who wait for a provider or for an operator', async () => {
    const { id } = await prepared('', [providers('p-1'), clients(many(61, 'c'), ['p-1'])]);
    await world.sql(`UPDATE people SET state = 'waiting', due_at = NULL WHERE kind = 'client' AND external_id < 'c-4'`);
    await world.sql(
      `UPDATE people SET state = 'needs-review', due_at = NULL WHERE kind = 'client' AND external_id >= 'c-4'`,
    );
    await world.work.imports();
    expect(await started(id)).toHaveLength(62);
  });

  test('waits for the deletion of the client that has an email, even if it has not started', async () => {
    await imported('', [providers('p-1'), clientsCsv([clientLine('c-1', ['p-1'], 'one@mail.example')])]);
    const { id } = await planned('mode=snapshot', [
      clientsCsv([
        clientLine('c-new', ['p-1'], 'one@mail.example'),
        ...['c-2', 'c-3'].map((one) => clientLine(one, ['p-1'])),
      ]),
    ]);
    await occupy(30);
    await transition(id, 'apply');
    await world.work.imports();
    await makeCalls(1);
    await world.work.imports();
    expect((await rows(id)).map(({ externalId, outcome }) => [externalId, outcome])).toEqual([
      ['c-new', 'pending'],
      ['c-2', 'created'],
      ['c-3', 'pending'],
      ['c-1', 'pending'],
    ]);
    await world.sql(`DELETE FROM people WHERE external_id LIKE 'busy-%'`);
    await world.settle();
    expect(await show(id)).toMatchObject({ state: 'completed', counts: { created: 3 }, deletes: { deleted: 1 } });
  });

  test('accepts clients whose provider is in an earlier upload that will be planned and applied', async () => {
    const earlier = await start('', [providers('p-9')]);
    await start('dryRun=true', [providers('p-tried')]);
    await start('mode=snapshot', [providers('p-listed')]);
    const lines = ['p-9', 'p-tried', 'p-listed'].map((provider, at) => clientLine(`c-${at}`, [provider]));
    const id = await start('', [clientsCsv(lines)]);
    await world.work.imports();
    expect([await started(earlier), await started(id)]).toEqual([['p-9'], ['c-0']]);
    expect(await outcomes(id)).toEqual([
      ['c-0', 'pending', null],
      ['c-1', 'rejected', 'unknown-provider'],
      ['c-2', 'rejected', 'unknown-provider'],
    ]);
  });

  test('skips clients whose provider was in an earlier upload that did not start', async () => {
    const earlier = await start('', [providers('p-9')]);
    const id = await start('', [clients(['c-1'], ['p-9'])]);
    await transition(earlier, 'cancel');
    await world.work.imports();
    expect(await outcomes(id)).toEqual([['c-1', 'skipped', 'provider-gone']]);
  });

  test('starts clients whose provider a paused import has not started', async () => {
    await mirrored('', [providers('p-1')]);
    const { id: paused } = await planned('dryRun=true', [providers('p-9')]);
    await transition(paused, 'apply');
    await transition(paused, 'pause');
    const { id } = await prepared('', [clients(['c-1'], ['p-9'])]);
    expect([await started(paused), await started(id)]).toEqual([['p-9'], ['c-1']]);
  });

  test('mirrors everyone and stores its totals, which equal the counted ones', async () => {
    const { id } = await prepared('', [providers('p-1'), clients(many(62, 'c'), ['p-1'])]);
    await world.settle();
    const view = await show(id);
    expect(view).toMatchObject({ state: 'completed', counts: { total: 63, created: 63 }, etaSeconds: null });
    expect(world.platform.arrivals()).toBe(view.calls.made);
    const record = await world.get(ImportsRepository).find(id);
    const counted = record && (await world.get(OutcomesRepository).totals({ ...record, totals: null }));
    expect(record?.totals).toEqual(counted);
  });
});

describe('pause', () => {
  test('starts no one, while started people finish; resume starts the others', async () => {
    const { id } = await prepared('', [providers('p-1'), clients(many(61, 'c'), ['p-1'])]);
    expect((await transition(id, 'pause')).body).toMatchObject({ state: 'paused', etaUnknown: 'paused' });
    await finish(60);
    expect(await show(id)).toMatchObject({ state: 'paused', counts: { created: 61, pending: 1 } });
    expect((await transition(id, 'resume')).body.state).toBe('running');
    await world.work.imports();
    expect((await started(id)).at(-1)).toBe('c-61');
    await finish(1);
    expect(await show(id)).toMatchObject({ state: 'completed', counts: { created: 62 } });
    expect((await transition(id, 'pause')).status).toBe(409);
  });
});

describe('cancel', () => {
  test('skips rows that have not started, while started people finish', async () => {
    const { id } = await prepared('', [providers('p-1'), clients(many(62, 'c'), ['p-1'])]);
    expect((await transition(id, 'cancel')).status).toBe(200);
    await world.work.imports();
    expect(await show(id)).toMatchObject({ finishedAt: null, counts: { pending: 61, skipped: 2 } });
    await finish(60);
    const view = await show(id);
    expect([view.state, view.counts.created, sumOfOutcomes(view)]).toEqual(['cancelled', 61, 63]);
    expect(await rows(id, 'code=cancelled')).toMatchObject([{ externalId: 'c-61' }, { externalId: 'c-62' }]);
    expect(await world.sql(`SELECT 1 FROM people WHERE external_id = 'c-61'`)).toEqual([]);
  });
});

describe('a row that has not started', () => {
  const file = clientsCsv([clientLine('c-1', ['p-1'], 'one@mail.example')]);

  test('is shown as pending', async () => {
    await waiting(file);
    expect((await person('clients', 'c-1')).body).toMatchObject({
      ...{ externalId: 'c-1', email: 'one@mail.example', lastName: 'c-1', providers: ['p-1'] },
      sync: { state: 'pending', error: { code: 'waits-in-import' } },
    });
    for (const query of [{ email: 'ONE@mail.example' }, { externalId: 'c-1' }]) {
      const { body } = await world.call<{ items: PersonResponse[] }>('POST', '/v1/people/search', { body: query });
      expect(body.items.map(({ externalId, sync }) => [externalId, sync.state])).toEqual([['c-1', 'pending']]);
    }
    const { body: trace } = await world.call<TraceResponse>('POST', '/v1/people/trace', {
      body: { kind: 'client', externalId: 'c-1' },
    });
    expect(trace).toMatchObject({ nextStep: { what: 'none' }, history: [] });
  });

  test('is shown as pending although its person was deleted before the upload', async () => {
    await imported('', [providers('p-1'), clients(['c-1'], ['p-1'])]);
    await world.call('DELETE', '/v1/clients/c-1', { wait: 60 });
    expect((await person('clients', 'c-1')).body.sync.state).toBe('deleted');
    await occupy();
    await prepared('', [file]);
    expect((await person('clients', 'c-1')).body).toMatchObject({ lastName: 'c-1', sync: { state: 'pending' } });
  });

  test('refuses sessions and recordings with client-not-mirrored', async () => {
    await waiting(file);
    const named = { provider: 'p-1', client: 'c-1' };
    const requests = {
      sessions: { ...named, noteTemplateIds: ['t-1'], input: { text: { text: 'A note.' } } },
      'recorder/launches': { ...named, variant: RECORDER_VARIANTS[0] },
    };
    for (const [path, body] of Object.entries(requests)) {
      const answer = await world.call<{ type: string }>('POST', `/v1/${path}`, { body });
      expect([path, answer.status, answer.body.type]).toEqual([
        path,
        409,
        'urn:notebridge:problem:client-not-mirrored',
      ]);
    }
  });

  test('starts before a PUT, which wins', async () => {
    const id = await waiting(file);
    const { status, body } = await put('clients/c-1', cleo('Now', ['p-2']));
    expect([status, body.lastName, body.providers, await started(id)]).toEqual([202, 'Now', ['p-2'], ['c-1']]);
    await world.settle();
    expect((await person('clients', 'c-1')).body).toMatchObject({ lastName: 'Now', sync: { state: 'synced' } });
    expect(await outcomes(id)).toEqual([['c-1', 'created', null]]);
  });

  test('starts before a new list, a rename and a resolve', async () => {
    const id = await waiting(clients(['c-1', 'c-2', 'c-3'], ['p-1']));
    expect((await put('clients/c-1/providers', { providers: ['p-2'] })).body.providers).toEqual(['p-2']);
    const renamed = await world.call('POST', '/v1/clients/c-2/rename', { body: { externalId: 'c-9' } });
    expect([renamed.status, renamed.body.externalId]).toEqual([200, 'c-9']);
    const resolved = await world.call('POST', '/v1/clients/c-3/resolve', {
      body: { action: 'retry' },
    });
    expect([resolved.status, resolved.body.externalId]).toEqual([200, 'c-3']);
    expect(await started(id)).toEqual(['c-1', 'c-2', 'c-3']);
  });

  test('is skipped and erased by a DELETE', async () => {
    const id = await waiting(file);
    expect((await remove('clients/c-1')).status).toBe(200);
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

  test('starts if its provider is named by a PUT', async () => {
    await mirrored('', [providers('p-1')]);
    const { id } = await planned('dryRun=true', [providers('p-9')]);
    await transition(id, 'apply');
    expect((await put('clients/c-1', cleo('One', ['p-9']))).body.providers).toEqual(['p-9']);
    expect(await started(id)).toEqual(['p-9']);
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

  test('does not keep a later upload from creating the person', async () => {
    await mirrored('', [providers('p-1')]);
    const end = await openUpload(world, 'kind=clients');
    await remove('clients/c-1');
    await end(clients(['c-2'], ['p-1']).content as string);
    const { id } = await prepared('', [clients(['c-1'], ['p-1'])]);
    expect(await started(id)).toEqual(['c-1']);
  });
});

describe('the later of two imports', () => {
  /** Two plans, the second one uploaded later; neither was applied. */
  async function plans(first: string[], second: string[], mode = 'upsert') {
    await mirrored('', [providers('p-1', 'p-2'), clients(['known'], ['p-1'])]);
    await occupy();
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
    expect(await codes(ids.earlier)).toEqual([
      ['c-1', 'changed-since-read'],
      ['c-2', 'changed-since-read'],
      ['c-3', null],
    ]);
  });

  test('takes no one from the earlier one while a row of its snapshot is unclear', async () => {
    const ids = await plans([clientLine('c-1', ['p-1'])], [',,A,B,p-1', clientLine('known', ['p-1'])], 'snapshot');
    for (const one of ['earlier', 'later'] as const) await transition(ids[one], 'apply');
    expect(await codes(ids.earlier)).toEqual([['c-1', null]]);
  });

  test('is applied to people that the earlier one has started', async () => {
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
  test('lose names and email immediately, even while a fault or a review delays the deletion', async () => {
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
    await world.sql(`UPDATE people SET wanted_at = wanted_at + '1 microsecond' WHERE external_id = 'c-1'`);
    await transition(id, 'apply', ['deletes']);
    await world.settle(200).catch(() => undefined);
    const people = await Promise.all(['c-1', 'c-2'].map((one) => person('clients', one)));
    expect(people.map(({ body }) => [body.sync.state, body.firstName, body.lastName, body.email])).toEqual([
      ['needs-review', '', '', null],
      ['deleting', '', '', null],
    ]);
    const kept = `SELECT 1 FROM people WHERE NOT wanted AND (profile IS NOT NULL OR email_fingerprint IS NOT NULL
      OR applied_profile IS NOT NULL OR attempt_profile IS NOT NULL)`;
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

  test('fails if rows cannot be started, while started people finish', async () => {
    const { id } = await prepared('', [providers('p-1'), clients(many(61, 'c'), ['p-1'])]);
    jest.spyOn(world.get(RowStarter), 'start').mockImplementationOnce(async () => broken());
    await finish(60);
    const view = await show(id);
    expect(view).toMatchObject({
      state: 'failed',
      error: { code: 'start-failed' },
      counts: { created: 61, skipped: 1 },
    });
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
    const crash = () => world.get(Database).transaction((tx) => imports.beginPlan(tx));
    for (let crashes = 0; crashes < 3; crashes += 1) expect((await crash())?.id).toBe(id);
    await world.work.imports();
    expect(await show(id)).toMatchObject({ state: 'failed', error: { code: 'plan-crashed' } });
  });

  test('does not fail because other processes find its plan in progress', async () => {
    const id = await start('', [providers('p-1')]);
    const database = world.get(Database);
    const imports = world.get(ImportsRepository);
    const plans = world.get(PlanRepository);
    const plan = plans.plan.bind(plans);
    jest.spyOn(plans, 'plan').mockImplementationOnce(async (...parameters) => {
      for (let processes = 0; processes < 4; processes += 1)
        expect(await database.transaction((tx) => imports.beginPlan(tx))).toBeUndefined();
      return plan(...parameters);
    });
    await world.get(ImportRunner).run();
    expect((await show(id)).state).toBe('running');
  });
});

describe('the estimated end of an import', () => {
  const shown = async (id: string) => {
    const { etaSeconds, etaMinSeconds, etaUnknown, calls } = await show(id);
    return { etaSeconds, etaMinSeconds, etaUnknown, remaining: calls.remaining };
  };

  test('follows the pace of the last minutes', async () => {
    const { id } = await prepared('', [providers('p-1'), clients(many(12, 'c'), ['p-1'])]);
    expect(await shown(id)).toMatchObject({ etaSeconds: null, etaUnknown: 'no-pace' });
    await makeCalls(6);
    await world.advance('2 min');
    const { etaSeconds, remaining, etaUnknown } = await shown(id);
    // Six calls in two minutes.
    expect(etaUnknown).toBeNull();
    expect(etaSeconds).toBeGreaterThanOrEqual((remaining.max / 6) * 119);
    expect(etaSeconds).toBeLessThanOrEqual((remaining.max / 6) * 125);
  });

  test('ignores the pace before the import began, when there was perhaps nothing to send', async () => {
    await prepared('', [providers('p-1')]);
    await world.settle();
    await world.advance('2 min');
    const { id } = await prepared('', [clients(many(40, 'c'), ['p-1'])]);
    await makeCalls(20);
    await world.advance('20 s');
    const { etaSeconds, remaining } = await shown(id);
    expect(etaSeconds).toBeGreaterThanOrEqual(remaining.max - 1);
    expect(etaSeconds).toBeLessThanOrEqual(remaining.max * 1.5);
  });

  test('is unknown while a breaker is open, or no worker runs', async () => {
    const { id } = await prepared('', [providers('p-1')]);
    await makeCalls(1);
    expect((await shown(id)).etaUnknown).toBeNull();
    const block = {
      code: 'platform-unauthorized',
      status: null,
      failures: 1,
      since: 0,
      until: 0,
      probe: null,
      person: null,
    };
    await world.sql(
      `INSERT INTO circuit_breakers (operation, state) VALUES ('createClient', $1)
      ON CONFLICT (operation) DO UPDATE SET state = excluded.state`,
      [{ ...breakerOf({}, 'createClient'), block }],
    );
    expect(await shown(id)).toMatchObject({ etaSeconds: null, etaUnknown: 'platform-unauthorized' });
    await world.sql('DELETE FROM circuit_breakers');
    await world.sql(`UPDATE workers SET alive_until = alive_until - interval '1 minute'`);
    expect(await shown(id)).toMatchObject({ etaSeconds: null, etaUnknown: 'no-worker' });
  });

  test('is unknown once the import has ended', async () => {
    const { id } = await prepared('', [providers('p-1')]);
    await transition(id, 'cancel');
    expect(await shown(id)).toMatchObject({ etaSeconds: null, etaUnknown: null });
  });
});
