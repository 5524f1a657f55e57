import { createSession } from '../../simulator/sessions/session-routes.js';
import { beginRegeneration } from '../../simulator/sessions/session-run.js';
import type { Page } from '../../src/http/request/page.js';
import { ClientData, ERASED } from '../../src/people/store/client-data.js';
import type { SessionResponse } from '../../src/sessions/model/session-view.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';
import { useClientsWithRecords } from './clients-with-records.js';
import { openedDumpOf } from './opened-dump.js';

/** Words of one client, unique enough to be found only where its data is stored. */
const GONE = ['Verschwindia', 'Erasowitz', 'Altnamia', 'Plannamia', 'Doppelnamia', 'Fluesternotiz', 'Geheimplanung'];
const MAILS = ['gone@weg.example.org', 'old@weg.example.org', 'plan@weg.example.org', 'twice@weg.example.org'];
const STAYS = ['Bleibtinia', 'stays@hier.example.org', 'Bleibenotiz'];
const [FIRST = '', LAST = '', OLD = '', PLANNED = '', TWICE = '', TEXT = '', PLAN = ''] = GONE;

const world = useWorld();
const { put, newSession, documentsOf, upload } = useClientsWithRecords(world);

/** The given words that the database contains, encrypted or not. */
async function held(...words: string[]): Promise<string[]> {
  const dump = await openedDumpOf(world.database.url);
  return words.filter((word) => dump.includes(word));
}
const show = async (session: string) => (await world.call<SessionResponse>('GET', `/v1/sessions/${session}`)).body;
const rowsOf = async (id: string) => (await world.call<Page<object>>('GET', `/v1/imports/${id}/rows`)).body.items;
const erasures = async () =>
  (await world.call<Page<object>>('GET', '/v1/audit?action=erasure&subject=c-gone')).body.items;
const userOf = (id: string) => world.platform.usersOf(id)[0]?.userId ?? '';
const REMOVED = [{ notes: [], removedAt: expect.any(String) }];

test('a deleted client is erased with every copy; its sessions keep only its external id', async () => {
  await world.restart({ ERASE_NOTES_OF_DELETED_CLIENTS: 'erase' });
  const [mail = '', oldMail, planMail, twiceMail] = MAILS;
  await put('c-gone', OLD, LAST, oldMail);
  await put('c-gone', FIRST, LAST, mail);
  await put('c-stays', 'Bleibtinia', 'Adler', 'stays@hier.example.org');
  const plan = await upload('dryRun=true', `c-gone,${planMail},${PLANNED},${LAST},p-1`);
  await upload('', `c-gone,${twiceMail},${TWICE},${LAST},nobody`); // rejected for its provider
  const session = await newSession('c-gone', TEXT, PLAN);
  const other = await newSession('c-stays', 'Bleibenotiz');
  const { sessionId: joint } = createSession(world.platform.simulator.state, {
    providerUserId: userOf('p-1'),
    clientUserIds: [userOf('c-gone'), userOf('c-stays')],
    noteTemplateIds: [SOAP],
    input: { kind: 'text', text: 'Gemeinsamkeit' },
    date: '2026-03-01T09:00:00.000Z',
    partnerAppointmentId: undefined,
  });
  await world.settle();
  for (const id of [session, other, joint]) expect((await documentsOf(id))[0]?.notes).not.toEqual([]);
  expect(await held(...GONE, ...MAILS, ...STAYS)).toEqual([...GONE, ...MAILS, ...STAYS]);

  const deleted = await world.call('DELETE', '/v1/clients/c-gone');
  expect(deleted).toMatchObject({ status: 202, body: { email: null, firstName: '', lastName: '' } });
  expect(userOf('c-gone')).not.toBe('');
  expect(await held(...GONE, ...MAILS, ...STAYS)).toEqual(STAYS);
  const outcome = expect.stringMatching(/^names and email, .*2 rows of imports/);
  expect(await erasures()).toMatchObject([{ subjects: { client: ['c-gone'], session: [session] }, outcome }]);
  expect(await rowsOf(plan)).toMatchObject([{ externalId: 'c-gone', outcome: 'skipped', code: 'erased' }]);
  expect((await show(session)).clients).toEqual(['c-gone']);
  expect(await documentsOf(session)).toMatchObject(REMOVED);
  for (const kept of [other, joint]) expect((await documentsOf(kept))[0]?.notes).not.toEqual([]);

  await world.settle();
  expect((await world.call('GET', '/v1/clients/c-gone')).body.sync.state).toBe('deleted');
  // New notes from the platform are not stored either.
  const { state } = world.platform.simulator;
  const made = state.sessions.find((await show(session)).sessionId ?? '');
  if (!made) throw new Error('The platform lost the session.');
  beginRegeneration(state, made, [SOAP]);
  await world.settle();
  await world.call('POST', '/v1/sessions/refreshes', { body: { session } });
  await world.settle();
  expect([made.generation, made.state]).toEqual([2, 'Done']);
  expect(await documentsOf(session)).toMatchObject([{ revision: 1, notes: [] }]);
  expect(await held(...GONE, ...MAILS)).toEqual([]);
  expect((await show(session)).clients).toEqual(['c-gone']);
  expect(await erasures()).toHaveLength(1);

  await world.call('DELETE', '/v1/clients/c-stays', { wait: 60 });
  expect(await documentsOf(joint)).toMatchObject(REMOVED);
  expect(await held(...STAYS, 'Gemeinsamkeit')).toEqual([]);
});

test('an erasure empties all erased columns of the list, and all texts of the export', async () => {
  await world.restart({ ERASE_NOTES_OF_DELETED_CLIENTS: 'erase' });
  const [mail = '', other = ''] = MAILS;
  await put('c-gone', FIRST, LAST, mail);
  await newSession('c-gone', TEXT, PLAN);
  const userId = userOf('c-gone');
  const payload = { userId, externalUserId: 'c-gone', role: 'Client', name: OLD };
  world.platform.simulator.state.deliveries.sendRaw(JSON.stringify({ eventType: 'USER_CREATED', payload }));
  await upload('', `c-gone,${other},${TWICE},${LAST},nobody`, `,${mail.toUpperCase()},${PLANNED},${LAST},p-1`);
  await upload('dryRun=true', `c-gone,${mail},${PLANNED},${LAST},p-1`);
  await world.settle();
  world.platform.injectFault({ operation: 'createSession', kind: 'status', status: 500 });
  const request = { provider: 'p-1', client: 'c-gone', noteTemplateIds: [SOAP], input: { text: { text: TEXT } } };
  await world.call('POST', '/v1/sessions', { body: request });
  await world.settle();
  await world.sql(`UPDATE people SET error_text = 'x' WHERE external_id = 'c-gone'`);
  await world.sql(`UPDATE people SET invite_url = 'x' WHERE external_id = 'c-gone'`);
  await world.sql(`UPDATE session_insights SET transcript = topics, analytics = topics`);

  const { kinds } = world.get(ClientData);
  const columns = kinds.flatMap(({ tables }) =>
    Object.entries(tables).flatMap(([table, of]) =>
      Object.entries(of).flatMap(([column, fate]) => (fate === ERASED ? [[table, column] as const] : [])),
    ),
  );
  /** Columns that contain data of the client, who is alone in this world. */
  const filled = async () => {
    const found = new Set<string>();
    for (const [table, column] of columns) {
      const rows = await world.sql(
        `SELECT FROM ${table} WHERE ${column} IS NOT NULL ${table === 'people' ? "AND kind = 'client'" : ''} LIMIT 1`,
      );
      if (rows.length > 0) found.add(`${table}.${column}`);
    }
    return [...found];
  };
  const wordsIn = async () => {
    const { text } = await world.call('GET', '/v1/clients/c-gone/export');
    const body = JSON.parse(text) as Record<string, unknown>;
    return kinds.flatMap(({ section }) => {
      expect(body).toHaveProperty(section);
      const held = JSON.stringify(body[section]);
      return [...GONE, ...MAILS].filter((word) => held.includes(word)).map((word) => `${section}: ${word}`);
    });
  };
  expect(await filled()).toEqual([...new Set(columns.map((names) => names.join('.')))]);
  expect(await wordsIn()).toEqual(
    expect.arrayContaining([`client: ${FIRST}`, `importRows: ${PLANNED}`, `importRows: ${TWICE}`]),
  );
  expect(await held(OLD)).toEqual([OLD]);

  await world.call('DELETE', '/v1/clients/c-gone', { wait: 60 });
  expect(await filled()).toEqual([]);
  expect(await wordsIn()).toEqual([]);
  expect(await held(...GONE, ...MAILS)).toEqual([]);
});

test('a deleted client whose create got no answer keeps its email until it was looked up', async () => {
  const [email, name] = ['lost@weg.example.org', 'Verlorenia'];
  world.platform.injectFault({ operation: 'createClient', kind: 'commit-then-cut' });
  const body = { firstName: name, lastName: name, email, providers: ['p-1'] };
  await world.call('PUT', '/v1/clients/c-lost', { body });
  await world.settle();
  expect(world.platform.usersOf('c-lost')).toHaveLength(1);
  const deleted = await world.call('DELETE', '/v1/clients/c-lost');
  expect(deleted.body).toMatchObject({ email: null, firstName: '' });
  expect(await held(name, email)).toEqual([email]);
  await world.advance('1 h');
  await world.settle();
  expect((await world.call('GET', '/v1/clients/c-lost')).body.sync.state).toBe('deleted');
  expect(world.platform.usersOf('c-lost')).toEqual([]);
  expect(await held(name, email)).toEqual([]);
});

test('a client deleted while its import runs stays deleted when the import is retried', async () => {
  const id = await upload('', 'c-late,late@weg.example.org,Spaetia,Spaetia,p-1');
  const creating = await world.untilHeld({ operation: 'createClient' });
  await world.call('DELETE', '/v1/clients/c-late');
  await creating.answer();
  const row = { externalId: 'c-late', outcome: 'skipped', code: 'erased' };
  expect(await rowsOf(id)).toMatchObject([row]);
  await world.call('POST', `/v1/imports/${id}/retry`, { body: {} });
  await world.settle();
  expect((await world.call<{ state: string }>('GET', `/v1/imports/${id}`)).body.state).toBe('completed');
  expect(await rowsOf(id)).toMatchObject([row]);
});

test('sessions and notes of deleted people stay by default, and are found by external id', async () => {
  const first = await put('c-kept', 'Cleo', 'Adler');
  const session = await newSession('c-kept', 'Notes.');
  const named = async () => {
    const { body } = await world.call<Page<SessionResponse>>('GET', '/v1/sessions?client=c-kept&provider=p-1');
    const { clients, provider } = await show(session);
    return [clients, provider, body.items.map(({ id }) => id), (await documentsOf(session))[0]?.removedAt];
  };
  const remove = async (path: string) => {
    const { status, body } = await world.call('DELETE', path, { wait: 60 });
    expect([status, body.sync.state]).toEqual([200, 'deleted']);
    expect(await named()).toEqual([['c-kept'], 'p-1', [session], null]);
  };
  await remove('/v1/clients/c-kept');
  const again = await put('c-kept', 'Cleo', 'Adler');
  expect(again.body.platformUserId).not.toBe(first.body.platformUserId);
  await remove('/v1/clients/c-kept');
  await remove('/v1/providers/p-1');
});
