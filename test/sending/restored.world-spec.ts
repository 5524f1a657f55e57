import type { SimulatedSession } from '../../simulator/sessions/session.js';
import { takeStep } from '../../simulator/sessions/session-run.js';
import type { SelectionResponse } from '../../src/people/api/people.dto.js';
import type { SendingResponse } from '../../src/sending/sending.dto.js';
import type { SessionResponse } from '../../src/sessions/model/session-view.js';
import { importsIn } from '../imports/imports.js';
import { peopleOf } from '../people/mirroring.js';
import { backUp, putBack } from '../support/restore.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();
const { begin, put, get, remove, resolve, verdict, verdicts, settled } = peopleOf(world);
const { start, prepared, show } = importsIn(world);

const UNKNOWN = ['needs-review', 'restored-unknown'];
const NO_WAIT = { prefer: 'wait=0' };
const SYNCED = ['synced', null];
const usersOf = (externalId: string) => world.platform.usersOf(externalId);
const email = (id: string) => ({ email: `${id}@example.org` });

const sending = async (body: object) => (await world.call<SendingResponse>('PUT', '/v1/sending', { body })).body;
const release = async (more: object = { restored: true }) => {
  await sending({ held: false, ...more });
  await world.settle();
};
const resolveAll = async (body: object) => {
  const selection = { code: 'restored-unknown', action: 'create', ...body };
  const ask = async (more: object) =>
    (await world.call<SelectionResponse>('POST', '/v1/people/resolve', { body: { ...selection, ...more } })).body;
  return ask({ count: (await ask({ dryRun: true })).count });
};
const link = async (externalId: string) => {
  const content = `kind,externalId,platformUserId\nclient,${externalId},${usersOf(externalId)[0]?.userId}`;
  await start('', [{ name: 'links.csv', type: 'text/csv', content }]);
  await world.settle();
};

/** Replaces the database by a backup, and starts the service on it, which holds by its setting. */
async function restore(backup: Awaited<ReturnType<typeof backUp>>, settings: object = { HOLD_SENDING: 'true' }) {
  await world.database.empty();
  await putBack(world.database.url, backup);
  await world.restart({ ...settings });
  await world.settle();
}

beforeEach(() => put('providers/home'));
afterEach(() => {
  expect(world.platform.simulator.state.users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });
});

describe('after the restore of a backup', () => {
  it('no one is there twice, whether from the backup or sent since', async () => {
    await put('clients/old');
    await begin('clients/queued');
    const backup = await backUp(world.database.url);
    await world.settle();
    await put('clients/mail', email('mail'));
    await put('clients/blind');
    await put('providers/late');

    await restore(backup);
    // The EHR sends everyone again.
    for (const path of ['clients/old', 'clients/queued', 'clients/blind', 'clients/fresh']) await put(path);
    await put('clients/mail', email('mail'));
    await put('providers/late');
    for (const id of ['mail', 'late']) expect(usersOf(id)).toHaveLength(1);
    expect((await get('clients/mail')).platformUserId).toBe(usersOf('mail')[0]?.userId);

    await world.restart();
    await world.settle();
    expect(usersOf('fresh')).toEqual([]);
    await release();
    expect(await verdicts(['clients/old', 'clients/mail', 'providers/late'])).toEqual([SYNCED, SYNCED, SYNCED]);
    expect(await verdicts(['clients/queued', 'clients/blind', 'clients/fresh'])).toEqual([UNKNOWN, UNKNOWN, UNKNOWN]);
    await link('blind');
    expect(await resolveAll({ externalIds: ['fresh'] })).toMatchObject({ count: 1 });
    await world.settle();
    expect(await verdicts(['clients/blind', 'clients/fresh'])).toEqual([SYNCED, SYNCED]);
    for (const id of ['old', 'queued', 'blind', 'mail', 'fresh']) expect(usersOf(id)).toHaveLength(1);
    await put('clients/new');
    expect(await verdict('clients/new')).toEqual(SYNCED);
  });

  it('a client that no one resolves stays in review, whatever the EHR sends', async () => {
    const backup = await backUp(world.database.url);
    for (const id of ['blind', 'named']) await put(`clients/${id}`);
    await restore(backup);
    for (const id of ['blind', 'named']) await put(`clients/${id}`);
    await world.restart();
    await release();
    await put('clients/blind');
    await resolve('clients/blind', { action: 'retry' });
    expect((await settled('clients/blind')).sync.error?.code).toBe('restored-unknown');
    await put('clients/named', email('named'));
    expect(await verdicts(['clients/blind', 'clients/named'])).toEqual([UNKNOWN, UNKNOWN]);
    await link('blind');
    expect([await verdict('clients/blind'), usersOf('blind')]).toEqual([SYNCED, [expect.anything()]]);
  });

  it('the hold stays when the setting is removed, until a release', async () => {
    const before = await sending({ held: true, reason: 'CASE-1' });
    const backup = await backUp(world.database.url);
    await world.advance('1 min');
    await restore(backup);
    const { since } = (await world.call<SendingResponse>('GET', '/v1/sending')).body;
    expect(since).not.toEqual(before.since);
    await world.restart();
    expect((await world.call<SendingResponse>('GET', '/v1/sending')).body).toMatchObject({
      ...{ held: true, heldBySetting: false, since, by: 'setting', reason: 'HOLD_SENDING' },
    });
    await put('clients/blind');
    expect([(await get('clients/blind')).sync.state, usersOf('blind')]).toEqual(['pending', []]);
  });

  it('an old check, an old rejection and an old decision do not allow a create', async () => {
    for (const id of ['checked', 'rejected', 'ignored']) await begin(`clients/${id}`);
    await begin('clients/mail', email('mail'));
    await world.sql(`UPDATE people SET checked_absent_at = clock_timestamp() WHERE external_id IN ('checked', 'mail')`);
    await world.sql(
      `UPDATE people SET fault = external_id, state = 'failed', step = NULL, due_at = NULL, error_code = external_id WHERE external_id IN ('rejected', 'ignored')`,
    );
    const backup = await backUp(world.database.url);
    for (const id of ['checked', 'rejected', 'ignored']) await put(`clients/${id}`);
    await put('clients/mail', email('mail'));
    await restore(backup);
    await world.restart();
    await release();
    expect(await verdicts(['clients/checked', 'clients/rejected', 'clients/ignored'])).toEqual([
      UNKNOWN,
      UNKNOWN,
      UNKNOWN,
    ]);
    expect(usersOf('mail')).toHaveLength(1);
  });

  it('an unfinished import is cancelled, and says that its files are to be uploaded again', async () => {
    const found = Array.from({ length: 70 }, (_, at) => `m-${at},m-${at}@example.org,Pia,Ruiz,home`);
    const content = ['externalId,email,firstName,lastName,providers', ...found, 'blind,,Pia,Ruiz,home'].join('\n');
    const { id } = await prepared('', [{ name: 'clients.csv', type: 'text/csv', content }]);
    const backup = await backUp(world.database.url);
    await world.settle();
    await restore(backup);
    await world.restart();
    await release();
    expect(await show(id)).toMatchObject({
      state: 'cancelled',
      error: { code: 'restored', message: expect.stringMatching(/Upload its files again.*platformUserId/) },
    });
    expect([await verdicts(['clients/blind']), usersOf('blind')]).toEqual([[UNKNOWN], [expect.anything()]]);
  });

  it('a deleted client may be on the platform, which an operator finds out', async () => {
    await begin('clients/gone');
    const backup = await backUp(world.database.url);
    await put('clients/gone');
    await restore(backup);
    await world.restart();
    await release();
    await remove('clients/gone');
    expect(await verdict('clients/gone')).toEqual(['needs-review', 'delete-unknown']);
  });

  it('a request that the backup contains as unsent is unknown, and not sent again', async () => {
    const wish = { provider: 'home', noteTemplateIds: ['soap'], input: { text: { text: 'They spoke.' } } };
    const { id } = (await world.call<SessionResponse>('POST', '/v1/sessions', { body: wish, headers: NO_WAIT })).body;
    const backup = await backUp(world.database.url);
    await world.settle();
    const sent = () => world.platform.arrivals('createSession');
    expect(sent()).toBe(1);
    await restore(backup);
    await world.restart();
    await world.settle();
    await release();
    expect(sent()).toBe(1);
    expect((await world.call<SessionResponse>('GET', `/v1/sessions/${id}`)).body.state).toBe('Unknown');
  });

  describe('a request for a session that was sent after the backup', () => {
    const WISH = { provider: 'home', noteTemplateIds: [SOAP], input: { text: { text: 'They spoke.' } } };
    const ask = async (options: object) => {
      const body = { ...WISH, partnerAppointmentId: 'visit-1' };
      return (await world.call<SessionResponse>('POST', '/v1/sessions', { body, ...options })).body;
    };
    const stateOf = async (id: string) => (await world.call<SessionResponse>('GET', `/v1/sessions/${id}`)).body.state;
    let id: string;
    let made: SimulatedSession;
    const nextEvent = async () => {
      takeStep(world.platform.simulator.state, made);
      await world.settle();
    };

    beforeEach(async () => {
      ({ id } = await ask({ headers: NO_WAIT }));
      const backup = await backUp(world.database.url);
      await world.settle();
      made = world.platform.simulator.state.sessions.list()[0] as SimulatedSession;
      await restore(backup);
      await world.restart();
      await release();
      expect(await stateOf(id)).toBe('Unknown');
    });

    it('is settled by the next event of its session', async () => {
      await nextEvent();
      expect(await stateOf(id)).toBe('Processing');
    });

    it('keeps its session from its successor, once it was abandoned', async () => {
      await world.call('POST', `/v1/sessions/${id}/resolve`, { body: { action: 'abandon' } });
      world.platform.injectFault({ operation: 'createSession', kind: 'refuse' });
      const successor = await ask({ wait: 60 });
      await nextEvent();
      expect(await stateOf(successor.id)).toBe('Unknown');
    });
  });
});

describe('without a restore', () => {
  it('a hold of an operator keeps clients without an email pending', async () => {
    await sending({ held: true, reason: 'CASE-1' });
    await put('clients/blind');
    expect((await get('clients/blind')).sync.state).toBe('pending');
    await release({});
    expect(await verdict('clients/blind')).toEqual(SYNCED);
  });

  it('a release after HOLD_SENDING changes no one', async () => {
    const content = 'externalId,firstName,lastName,providers\nrow,Pia,Ruiz,home';
    await world.restart({ HOLD_SENDING: 'true' });
    await put('clients/blind');
    const { id } = await prepared('', [{ name: 'clients.csv', type: 'text/csv', content }]);
    await world.restart();
    await release({});
    expect(await verdicts(['clients/blind', 'clients/row'])).toEqual([SYNCED, SYNCED]);
    expect((await show(id)).state).toBe('completed');
  });
});
