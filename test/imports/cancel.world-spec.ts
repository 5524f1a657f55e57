import type { ImportFile } from '../../harness/service.js';
import type { CancellationResponse } from '../../src/imports/api/import-view.js';
import { type Cancellation, cancellationText } from '../../src/imports/model/cancellation.js';
import { RowsToApply } from '../../src/imports/run/rows-to-apply.repository.js';
import { WithdrawalRepository } from '../../src/imports/run/withdrawal.repository.js';
import { UsersClient } from '../../src/platform/clients/users-client.js';
import { PlatformError } from '../../src/platform/contract/platform-errors.js';
import { clientLine, clientsCsv, many, providerLine, providersCsv } from '../support/bulk.js';
import { useWorld } from '../world/use-world.js';
import { importsIn } from './imports.js';

const world = useWorld();
const { imported, prepared, planned, mirrored, transition, show, rows, outcomes } = importsIn(world);

const providers = (...ids: string[]) => providersCsv(ids.map((id) => providerLine(id)));
const clients = (ids: string[], list: string[]) => clientsCsv(ids.map((id) => clientLine(id, list)));
const person = (kind: string, id: string) => world.call('GET', `/v1/${kind}/${id}`);
const stateOf = async (kind: string, id: string) => {
  const { status, body } = await person(kind, id);
  return status === 404 ? 'unknown' : body.sync.state;
};
const put = (path: string, body: object) => world.call('PUT', `/v1/${path}`, { body });
const cleo = (list: string[]) => ({ firstName: 'Cleo', lastName: 'Now', providers: list });
async function preview(id: string): Promise<Cancellation> {
  const { text, ...effect } = (await world.call<CancellationResponse>('GET', `/v1/imports/${id}/cancellation`)).body;
  expect(text).toBe(cancellationText(effect));
  return effect;
}
const nothing: Cancellation = {
  ...{ skipped: 0, withdrawnPeople: 0, withdrawnDeletions: 0, completedDeletions: 0, staying: 0 },
};

/** Cancels an import, and works until it has ended. */
async function cancelled(id: string) {
  expect((await transition(id, 'cancel')).status).toBe(200);
  await world.settle();
  const view = await show(id);
  expect(view).toMatchObject({ state: 'cancelled', counts: { pending: 0 } });
  return view;
}

/** A running import whose rows were not applied yet. */
async function unapplied(...files: ImportFile[]): Promise<string> {
  const { id } = await planned('dryRun=true', files);
  expect((await transition(id, 'apply')).status).toBe(202);
  return id;
}

/** A snapshot that is being applied, and deletes four of five clients. */
async function deleting(): Promise<string> {
  const five = many(5, 'c').map((id) => clientLine(id, ['p-1'], `${id}@mail.example`));
  await imported('', [providers('p-1'), clientsCsv(five)]);
  const { id } = await planned('mode=snapshot', [clientsCsv(five.slice(4))]);
  await transition(id, 'apply', ['deletes']);
  await world.work.imports();
  return id;
}

describe('rows that were not applied', () => {
  test('are skipped', async () => {
    const id = await unapplied(providers('p-1'), clients(['c-1'], ['p-1']));
    expect(await preview(id)).toEqual({ ...nothing, skipped: 2 });
    expect((await cancelled(id)).counts).toMatchObject({ skipped: 2 });
    expect(await rows(id, 'code=cancelled')).toMatchObject([{ externalId: 'p-1' }, { externalId: 'c-1' }]);
    expect(await stateOf('providers', 'p-1')).toBe('unknown');
  });
});

describe('a new person', () => {
  test('is withdrawn as if it had never been named, while nothing was sent for it', async () => {
    const { id } = await prepared('', [providers('p-1'), clients(many(3, 'c'), ['p-1'])]);
    expect(await preview(id)).toEqual({ ...nothing, withdrawnPeople: 4 });
    await cancelled(id);
    expect(await outcomes(id)).toEqual(['p-1', ...many(3, 'c')].map((one) => [one, 'skipped', 'cancelled']));
    expect([await stateOf('providers', 'p-1'), await stateOf('clients', 'c-1')]).toEqual(['unknown', 'unknown']);
    expect([
      world.platform.arrivals(),
      await world.sql('SELECT 1 FROM people UNION ALL SELECT 1 FROM email_claims'),
    ]).toEqual([...[0, []]]);
    const { body } = await world.call<{ items: { type: string }[] }>('GET', '/v1/events?after=0');
    expect(body.items.map(({ type }) => type)).toEqual(['import.finished']);
    expect((await imported('', [providers('p-1')])).counts.created).toBe(1);
  });

  test('is not called any more, although its withdrawal takes a moment', async () => {
    const { id } = await prepared('', [providers('p-1')]);
    const withdrawal = jest.spyOn(world.get(WithdrawalRepository), 'withdrawNext').mockImplementation(async () => {
      throw Object.assign(new Error('terminating connection'), { code: '57P01' });
    });
    await transition(id, 'cancel');
    await world.work.jobs();
    expect([world.platform.arrivals(), await stateOf('providers', 'p-1')]).toEqual([0, 'pending']);
    withdrawal.mockRestore();
    await world.settle();
    expect([world.platform.arrivals(), await stateOf('providers', 'p-1')]).toEqual([0, 'unknown']);
  });

  test('is finished once a call is in flight for it', async () => {
    const { id } = await prepared('', [providers('p-1'), clients(['c-1'], ['p-1'])]);
    const held = await world.untilHeld({ operation: 'createProvider' });
    expect(await preview(id)).toEqual({ ...nothing, withdrawnPeople: 1, staying: 1 });
    await transition(id, 'cancel');
    await held.answer();
    expect([await stateOf('providers', 'p-1'), await stateOf('clients', 'c-1')]).toEqual(['synced', 'unknown']);
    expect((await show(id)).counts).toMatchObject({ created: 1, skipped: 1, pending: 0 });
  });

  test('is finished if its email was looked up, because the disclosure is accounted for', async () => {
    await imported('', [providers('p-1')]);
    const { id } = await prepared('', [clientsCsv([clientLine('c-1', ['p-1'], 'one@mail.example')])]);
    await world.work.nextJob();
    expect([world.platform.arrivals('checkUser'), world.platform.arrivals('createClient')]).toEqual([2, 0]);
    expect(await preview(id)).toEqual({ ...nothing, staying: 1 });
    await cancelled(id);
    expect(await stateOf('clients', 'c-1')).toBe('synced');
    expect((await world.call('GET', '/v1/clients/c-1/disclosures')).status).toBe(200);
  });

  test('is withdrawn if a call could not reach the platform', async () => {
    const { id } = await prepared('', [providers('p-1')]);
    const call = jest.spyOn(world.get(UsersClient), 'checkUser');
    call.mockRejectedValueOnce(new PlatformError('unreachable', 'checkUser'));
    await world.work.nextJob();
    expect(call).toHaveBeenCalledTimes(1);
    expect(await preview(id)).toEqual({ ...nothing, withdrawnPeople: 1 });
  });

  test('stays if someone else has stated it since, and so does the provider that such a client names', async () => {
    const { id } = await prepared('', [providers('p-1', 'p-2'), clients(['c-1', 'c-2'], ['p-1'])]);
    await put('clients/c-1', cleo(['p-1']));
    expect(await preview(id)).toEqual({ ...nothing, withdrawnPeople: 2, staying: 1 });
    await cancelled(id);
    expect(await outcomes(id)).toEqual([
      ['p-1', 'created', null],
      ['p-2', 'skipped', 'cancelled'],
      ['c-1', 'skipped', 'changed-since-read'],
      ['c-2', 'skipped', 'cancelled'],
    ]);
    expect([await stateOf('clients', 'c-1'), await stateOf('clients', 'c-2')]).toEqual(['synced', 'unknown']);
  });

  test('frees its email for the person that waits for it', async () => {
    await imported('', [providers('p-0')]);
    const file = (id: string) => clientsCsv([clientLine(id, ['p-0'], 'one@mail.example')]);
    const { id } = await prepared('', [file('c-1')]);
    await put('clients/c-2', { ...cleo(['p-0']), email: 'one@mail.example' });
    expect(await stateOf('clients', 'c-2')).toBe('needs-review');
    await cancelled(id);
    expect(await stateOf('clients', 'c-2')).toBe('synced');
  });
});

test('an import that is cancelled while its last outcome is stored lets the others go on', async () => {
  const { id } = await prepared('', [providers('p-1')]);
  const rowsToApply = world.get(RowsToApply);
  await world.sql(
    `UPDATE people SET state = 'synced', step = NULL, due_at = NULL, origin = 'created', platform_user_id = 'u-1'`,
  );
  const next = jest.spyOn(rowsToApply, 'next').mockImplementationOnce(async () => {
    expect((await transition(id, 'cancel')).status).toBe(200);
    return [];
  });
  await world.work.imports();
  expect(next).toHaveBeenCalled();
  expect([(await show(id)).state, (await imported('', [providers('p-2')])).counts.created]).toEqual(['cancelled', 1]);
});

describe('a later plan', () => {
  test('creates no client without a provider after the import that named its providers was cancelled', async () => {
    await imported('', [providers('p-1')]);
    const { id } = await prepared('', [clients(['c-1'], ['p-1'])]);
    await transition(id, 'pause');
    const file = {
      ...{ name: 'clients.csv', type: 'text/csv' },
      content: 'externalId,email,firstName,lastName\nc-1,,Cleo,New',
    };
    const { id: later } = await planned('dryRun=true', [file]);
    await cancelled(id);
    await transition(later, 'apply');
    await world.settle();
    expect([await outcomes(later), await stateOf('clients', 'c-1')]).toEqual([
      [['c-1', 'skipped', 'provider-gone']],
      'unknown',
    ]);
  });

  test('creates a person that it names and that was withdrawn since', async () => {
    await imported('', [providers('p-1'), clientsCsv([clientLine('c-0', ['p-1'], 'one@mail.example')])]);
    const file = clientsCsv([clientLine('c-1', ['p-1'], 'one@mail.example')]);
    const { id } = await prepared('', [file, clients(['c-2'], ['p-1'])], 'running');
    const later = await planned('dryRun=true', [file]);
    expect(await outcomes(later.id)).toEqual([['c-1', 'needsReview', 'email-taken']]);
    await cancelled(id);
    expect(await stateOf('clients', 'c-1')).toBe('unknown');
    await transition(later.id, 'apply');
    await world.settle();
    expect(await stateOf('clients', 'c-1')).toBe('needs-review');
  });
});

describe('a person that was known before', () => {
  test('stays as the file says', async () => {
    await imported('', [providers('p-1', 'p-2'), clients(['c-1', 'c-2'], ['p-1'])]);
    const { id } = await prepared('', [clients(['c-1', 'c-2', 'c-3'], ['p-2'])]);
    expect(await preview(id)).toEqual({ ...nothing, withdrawnPeople: 1, staying: 2 });
    expect((await cancelled(id)).counts).toMatchObject({ updated: 2, skipped: 1 });
    expect((await person('clients', 'c-1')).body).toMatchObject({ providers: ['p-2'], sync: { state: 'synced' } });
  });
});

describe('a deletion', () => {
  const named = async (id: string) => {
    const { body } = await person('clients', id);
    return [body.sync.state, body.lastName !== '', body.email !== null];
  };

  /** A later snapshot of some clients, which is applied. */
  async function later(...ids: string[]) {
    const lines = ids.map((one) => clientLine(one, ['p-1'], one === 'c-5' ? 'c-5@mail.example' : ''));
    const snapshot = await planned('mode=snapshot', [clientsCsv(lines)]);
    await transition(snapshot.id, 'apply', ['deletes']);
    await world.work.imports();
    return snapshot;
  }

  const outcomeOf = async (id: string, one: string) =>
    (await rows(id)).find(({ externalId }) => externalId === one)?.outcome;

  test('is withdrawn until it is sent, and then completes', async () => {
    const id = await deleting();
    world.platform.hold({ operation: 'deleteUser' });
    const sent = world.work.nextJob();
    await world.untilCalled('deleteUser');
    expect(await preview(id)).toEqual({ ...nothing, withdrawnDeletions: 3, completedDeletions: 1 });
    await transition(id, 'cancel');
    world.platform.release();
    await sent;
    await world.settle();
    const ended = await Promise.all(many(4, 'c').map(async (one) => [...(await named(one)), await outcomeOf(id, one)]));
    expect(ended.sort()).toEqual([
      ['deleted', false, false, 'deleted'],
      ...Array(3).fill(['synced', true, true, 'skipped']),
    ]);
    expect(world.platform.arrivals('deleteUser')).toBe(1);
  });

  test('leaves the statements before it in force', async () => {
    await mirrored('', [providers('p-1', 'p-2'), clients(many(3, 'c'), ['p-1'])]);
    const earlier = await planned('dryRun=true', [clients(['c-1'], ['p-2'])]);
    const { id } = await planned('mode=snapshot', [clients(['c-3'], ['p-1'])]);
    await transition(id, 'apply', ['deletes']);
    await world.work.imports();
    await cancelled(id);
    await transition(earlier.id, 'apply');
    await world.work.imports();
    expect((await person('clients', 'c-1')).body.providers).toEqual(['p-2']);
  });

  test('needs a decision again if the account was found only by its email', async () => {
    const user = { role: 'Client' as const, firstName: 'A', lastName: 'B', providerUserIds: [] };
    world.platform.simulator.state.users.add({ ...user, email: 'one@mail.example' });
    await imported('', [
      providers('p-1'),
      clientsCsv([clientLine('c-1', ['p-1'], 'one@mail.example'), clientLine('c-2', ['p-1'])]),
    ]);
    const { id } = await planned('mode=snapshot', [clients(['c-2'], ['p-1'])]);
    await transition(id, 'apply', ['deletes']);
    await world.work.imports();
    await cancelled(id);
    await world.call('DELETE', '/v1/clients/c-1');
    await world.settle();
    const { sync } = (await person('clients', 'c-1')).body;
    expect([sync.state, sync.error?.code, world.platform.arrivals('deleteUser')]).toEqual([
      'needs-review',
      'delete-linked',
      0,
    ]);
  });

  test('is withdrawn although another call was in flight for the person', async () => {
    await imported('', [providers('p-1', 'p-2'), clients(['c-1', 'c-2'], ['p-1'])]);
    await put('clients/c-1', cleo(['p-2']));
    const held = await world.untilHeld({ operation: 'setClientProviders' });
    const { id } = await planned('mode=snapshot', [clients(['c-2'], ['p-1'])]);
    await transition(id, 'apply', ['deletes']);
    await world.work.imports();
    expect(await preview(id)).toEqual({ ...nothing, withdrawnDeletions: 1 });
    await transition(id, 'cancel');
    await world.work.imports();
    await held.answer();
    expect(await named('c-1')).toEqual(['synced', true, false]);
    expect(world.platform.arrivals('deleteUser')).toBe(0);
  });

  test('stays if a later snapshot leaves the person out, too', async () => {
    const id = await deleting();
    await transition(id, 'pause');
    await later('c-5');
    expect(await preview(id)).toEqual({ ...nothing, completedDeletions: 4 });
    await cancelled(id);
    expect((await show(id)).deletes).toEqual({ deleted: 4 });
  });

  test('is withdrawn if the later snapshot names the person by a former id', async () => {
    await imported('', [providers('p-1'), clients(['c-0', 'c-2'], ['p-1'])]);
    await world.call('POST', '/v1/clients/c-0/rename', { body: { externalId: 'c-1' } });
    const { id } = await planned('mode=snapshot', [clients(['c-2'], ['p-1'])]);
    await transition(id, 'apply', ['deletes']);
    await world.work.imports();
    await transition(id, 'pause');
    await later('c-0', 'c-2');
    expect(await preview(id)).toEqual({ ...nothing, withdrawnDeletions: 1 });
    await cancelled(id);
    expect(await stateOf('clients', 'c-1')).toBe('synced');
  });

  test('is withdrawn if the later snapshot was cancelled before', async () => {
    const id = await deleting();
    await transition(id, 'pause');
    await cancelled((await later('c-5', 'c-6')).id);
    expect(await preview(id)).toEqual({ ...nothing, withdrawnDeletions: 4 });
    await cancelled(id);
    expect([await named('c-1'), (await show(id)).deletes]).toEqual([['synced', true, true], { skipped: 4 }]);
    expect(world.platform.arrivals('deleteUser')).toBe(0);
  });

  test('is made by the later snapshot if the first one is cancelled before', async () => {
    const id = await deleting();
    await transition(id, 'pause');
    const snapshot = await planned('mode=snapshot', [clientsCsv([clientLine('c-5', ['p-1'], 'c-5@mail.example')])]);
    expect(snapshot.deletes).toEqual({ skipped: 4 });
    await cancelled(id);
    await transition(snapshot.id, 'apply');
    await world.settle();
    expect([await stateOf('clients', 'c-1'), (await show(snapshot.id)).deletes]).toEqual(['deleted', { deleted: 4 }]);
  });

  test('gives the person back to the import that stated it before, which may be paused', async () => {
    await imported('', [providers('p-1', 'p-2'), clients(['c-1', 'c-2'], ['p-1'])]);
    const { id: paused } = await prepared('', [providers('p-3'), clients(['c-1'], ['p-2'])]);
    await transition(paused, 'pause');
    const { id } = await planned('mode=snapshot', [clients(['c-2'], ['p-1'])]);
    await transition(id, 'apply', ['deletes']);
    await world.work.imports();
    await cancelled(id);
    expect([await stateOf('clients', 'c-1'), world.platform.arrivals('setClientProviders')]).toEqual(['pending', 0]);
    await transition(paused, 'resume');
    await world.settle();
    expect([await stateOf('clients', 'c-1'), world.platform.arrivals('setClientProviders')]).toEqual(['synced', 1]);
  });

  test('waits while its import is paused, although a client of another import names the provider', async () => {
    await imported('', [providers('p-1', 'p-2')]);
    const { id: other } = await planned('dryRun=true', [clients(['c-1'], ['p-1'])]);
    const { id } = await planned('mode=snapshot', [providers('p-2')]);
    await transition(id, 'apply', ['deletes']);
    await world.work.imports();
    await transition(id, 'pause');
    await transition(other, 'apply');
    await world.settle();
    expect([await outcomes(other), world.platform.arrivals('deleteUser')]).toEqual([
      [['c-1', 'skipped', 'provider-gone']],
      0,
    ]);
  });

  test('of a client is withdrawn without the provider that a later file leaves out', async () => {
    await imported('', [providers('p-1', 'p-2'), clients(['c-1', 'c-2'], ['p-1', 'p-2'])]);
    const { id } = await planned('mode=snapshot', [providers('p-2'), clients(['c-2'], ['p-2'])]);
    await transition(id, 'apply', ['deletes', 'providerRemovals']);
    await world.work.imports();
    await transition(id, 'pause');
    const { id: snapshot } = await planned('mode=snapshot', [providers('p-2')]);
    await transition(snapshot, 'apply', ['deletes']);
    await world.work.imports();
    expect(await preview(id)).toMatchObject({ withdrawnDeletions: 1, completedDeletions: 1 });
    await cancelled(id);
    expect([(await person('clients', 'c-1')).body.providers, await stateOf('providers', 'p-1')]).toEqual([
      ['p-2'],
      'deleted',
    ]);
  });

  test('completes if no provider of the client is left', async () => {
    await imported('', [providers('p-1', 'p-2'), clientsCsv([clientLine('c-1', ['p-1']), clientLine('c-2', ['p-2'])])]);
    const { id } = await planned('mode=snapshot', [clients(['c-2'], ['p-2'])]);
    await transition(id, 'apply', ['deletes']);
    await world.work.imports();
    await transition(id, 'pause');
    expect((await world.call('DELETE', '/v1/providers/p-1')).status).toBe(202);
    await world.settle();
    expect(await preview(id)).toEqual({ ...nothing, completedDeletions: 1 });
    await cancelled(id);
    expect([await stateOf('clients', 'c-1'), (await show(id)).deletes]).toEqual(['deleted', { deleted: 1 }]);
  });

  test('of a client under a legal hold is withdrawn even after the hold was released', async () => {
    const id = await deleting();
    await transition(id, 'pause');
    await world.call('PUT', '/v1/clients/c-1/legal-hold', { body: { reason: 'CASE-1' } });
    await world.call('DELETE', '/v1/clients/c-1/legal-hold');
    await world.settle();
    expect(world.platform.arrivals('deleteUser')).toBe(0);
    await cancelled(id);
    expect(await named('c-1')).toEqual(['synced', true, true]);
  });

  test('of a provider is withdrawn together with those of its clients', async () => {
    await imported('', [providers('p-1', 'p-2'), clientsCsv([clientLine('c-1', ['p-1']), clientLine('c-2', ['p-2'])])]);
    const { id } = await planned('mode=snapshot', [providers('p-2'), clients(['c-2'], ['p-2'])]);
    await transition(id, 'apply', ['deletes']);
    await world.work.imports();
    expect(await preview(id)).toEqual({ ...nothing, withdrawnDeletions: 2 });
    await cancelled(id);
    expect([await stateOf('providers', 'p-1'), await stateOf('clients', 'c-1')]).toEqual(['synced', 'synced']);
    expect((await person('clients', 'c-1')).body.providers).toEqual(['p-1']);
  });
});
