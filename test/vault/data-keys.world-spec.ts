import { Logger } from '@nestjs/common';
import { AUDIT_KEYS, DATA_KEYS, FINGERPRINT_KEYS } from '../../harness/world/settings.js';
import { createSession } from '../../simulator/sessions/session-routes.js';
import { takeStep } from '../../simulator/sessions/session-run.js';
import type { HealthReport } from '../../src/operations/overview/health-report.js';
import type { NotesResponse, SessionResponse } from '../../src/sessions/model/session-view.js';
import { useWorld } from '../world/use-world.js';
import { keyPair, rotate } from './rotate.js';

const world = useWorld();

const [K2, K3] = [keyPair('k2', 8), keyPair('k3', 9)];
const SOAP = '11111111-1111-4111-8111-111111111111';

const person = (id: string) => ({ email: `${id}@example.org`, firstName: id, lastName: 'Osei' });
const vaultHealth = async () => (await world.call<HealthReport>('GET', '/health/ready')).body.checks.vault;
const get = (path: string) => world.call<Record<string, unknown>>('GET', path);
const userOf = (id: string) => world.platform.usersOf(id)[0]?.userId ?? '';

async function mirrored(): Promise<void> {
  await world.call('PUT', '/v1/providers/p-1', { body: person('p-1'), wait: 60 });
  for (const id of ['c-1', 'c-2']) {
    const body = { ...person(id), providers: ['p-1'] };
    expect((await world.call('PUT', `/v1/clients/${id}`, { body, wait: 60 })).body.sync.state).toBe('synced');
  }
}

/** A session of c-1 with notes. */
async function sessionWithNotes(): Promise<{ session: SessionResponse; notes: NotesResponse }> {
  const { state } = world.platform.simulator;
  const made = createSession(state, {
    providerUserId: userOf('p-1'),
    clientUserIds: [userOf('c-1')],
    noteTemplateIds: [SOAP],
    input: { kind: 'text', text: 'They discussed the week.' },
    date: '2026-03-01T09:00:00.000Z',
  });
  while (made.nextStep) takeStep(state, made);
  await world.settle();
  const session = (await world.call<SessionResponse>('GET', `/v1/sessions/${made.sessionId}`)).body;
  const notes = (await world.call<NotesResponse>('GET', `/v1/sessions/${session.id}/notes`)).body;
  expect(session).toMatchObject({ clients: ['c-1'], provider: 'p-1' });
  expect(notes.documents).toHaveLength(1);
  return { session, notes };
}

/** @returns the rows that cannot be decrypted */
async function rotateTo(DATA_KEYS: string): Promise<object[]> {
  const { left, unreadable } = await rotate(world, 'data', { DATA_KEYS });
  expect(left).toBe(unreadable.length);
  return unreadable;
}

test('while a data key is missing, no data encrypted with it is sent or processed', async () => {
  await world.call('PUT', '/v1/providers/p-1', { body: person('p-1'), wait: 60 });
  await world.restart({ DATA_KEYS: `${K2},${DATA_KEYS}` });
  // Without an email, an unanswered create would need a review.
  const client = { firstName: 'Cleo', lastName: 'Adler', providers: ['p-1'] };
  expect((await world.call('PUT', '/v1/clients/c-1', { body: client })).status).toBe(202);
  const body = { provider: 'p-1', noteTemplateIds: [SOAP], input: { text: { text: 'Cleo came.' } } };
  const asked = await world.call<SessionResponse>('POST', '/v1/sessions', { body, wait: 0 });
  expect([asked.status, asked.body.state]).toEqual([202, 'Requested']);

  await world.sql('DELETE FROM key_uses'); // like a process that is older than the first use of k2
  await world.restart({ DATA_KEYS: `${K3},${DATA_KEYS}` });
  await world.settle();
  expect(await vaultHealth()).toMatchObject({
    status: 'degraded',
    reason: expect.stringMatching(/DATA_KEYS lacks .*: k2\..*restart/),
  });
  const shown = await get('/v1/clients/c-1');
  expect([shown.status, shown.body]).toMatchObject([
    200,
    { sync: { state: 'pending' }, firstName: null, unreadable: ['email', 'firstName', 'lastName'] },
  ]);
  const request = await world.sql('SELECT state, fault FROM sessions');
  expect(request).toEqual([{ state: 'Requested', fault: 'unreadable' }]);
  expect([world.platform.arrivals('createClient'), world.platform.arrivals('createSession')]).toEqual([0, 0]);

  await world.restart({ DATA_KEYS: `${K3},${K2},${DATA_KEYS}` });
  await world.advance('1 h');
  await world.settle();
  expect((await world.call('GET', '/v1/clients/c-1')).body.sync.state).toBe('synced');
  expect(world.platform.usersOf('c-1')).toHaveLength(1);
  expect((await get(`/v1/sessions/${asked.body.id}`)).body.sessionId).not.toBeNull();
});

test('after a rotation, everything is readable without the first key', async () => {
  await mirrored();
  const { session, notes } = await sessionWithNotes();
  await world.restart({ DATA_KEYS: `${K2},${DATA_KEYS}` });
  const { keys, columns, left } = await rotate(world, 'data', { DATA_KEYS: `${K2},${DATA_KEYS}` });
  expect([left, columns.filter(({ keys }) => Object.keys(keys).some((name) => name !== 'k2'))]).toEqual([0, []]);
  expect(keys).toMatchObject([{ key: 'k2' }, { key: 'k1', values: 0, droppable: true }]);
  expect(keys[0]?.values).toBeGreaterThan(10);
  await world.restart({ DATA_KEYS: K2 });
  expect((await get(`/v1/sessions/${session.id}`)).body).toMatchObject({ clients: ['c-1'], date: session.date });
  expect((await get(`/v1/sessions/${session.id}/notes`)).body.documents).toEqual(notes.documents);
  const body = { email: 'C-1@example.org' };
  const found = await world.call<{ items: unknown[] }>('POST', '/v1/people/search', { body });
  expect(found.body.items).toMatchObject([{ externalId: 'c-1' }]);
  expect((await vaultHealth())?.status).toBe('ok');
});

describe('a start', () => {
  const refusalOf = (settings: Record<string, string>) =>
    world.startAnother(settings).then(
      () => 'started',
      (error: Error) => error.message,
    );

  test.each([
    ['DATA_KEYS', DATA_KEYS, 'k1', 'Add it after the first key.'],
    ['FINGERPRINT_KEYS', FINGERPRINT_KEYS, 'f1', 'Set it to this key alone.'],
    ['AUDIT_KEYS', AUDIT_KEYS, 'a1', 'Add it after the first key.'],
  ])(
    'is refused without a key of %s that stored data needs, or with another key of its id',
    async (name, usual, id, remedy) => {
      await world.startAnother();
      const other = keyPair('x1', 77);
      expect(await refusalOf({ [name]: other })).toBe(
        `${name} lacks the key ${id}, which stored data needs. ${remedy}`,
      );
      expect(await refusalOf({ [name]: keyPair(id, 78) })).toMatch(
        `The key ${id} in ${name} is not the key ${id} that stored data needs.`,
      );
      // A refused start leaves nothing that would refuse the next one.
      expect(await refusalOf({ [name]: usual })).toBe('started');
    },
  );

  test('is accepted without a key that only some processes know', async () => {
    await world.startAnother({ DATA_KEYS: `${DATA_KEYS},${K2}` });
    expect(await refusalOf({ DATA_KEYS })).toBe('started');
    await world.startAnother({ DATA_KEYS: `${K2},${DATA_KEYS}` });
    expect(await refusalOf({ DATA_KEYS })).toMatch('DATA_KEYS lacks the key k2');
  });
});

describe('encrypted values that were changed or moved in the database', () => {
  test('facts moved to another session stay unreadable, and are not replaced by an answer', async () => {
    await mirrored();
    const { session } = await sessionWithNotes();
    const other = (await sessionWithNotes()).session;
    const [kept] = await world.sql<{ facts: Buffer }>('SELECT facts FROM sessions WHERE id = $1', [session.id]);
    const setFacts = (facts: Buffer | undefined) =>
      world.sql('UPDATE sessions SET facts = $2 WHERE id = $1', [session.id, facts]);
    await setFacts(
      (await world.sql<{ facts: Buffer }>('SELECT facts FROM sessions WHERE id = $1', [other.id]))[0]?.facts,
    );
    expect((await get(`/v1/sessions/${session.id}`)).body).toMatchObject({
      ...{ id: session.id, state: 'Done', clients: ['c-1'], date: null, error: null },
      unreadable: expect.arrayContaining(['date', 'error']),
    });
    expect((await vaultHealth())?.reason).toMatch(/cannot be decrypted.*backup/);

    await world.call('POST', '/v1/sessions/refreshes', { body: { session: session.id } });
    await world.settle();
    expect((await get(`/v1/sessions/${session.id}`)).body).toMatchObject({
      ...{ unreadable: expect.arrayContaining(['date', 'error']), nextStep: { what: 'none' } },
    });
    await setFacts(kept?.facts);
    await world.advance('1 h');
    await world.settle();
    const { body } = await get(`/v1/sessions/${session.id}`);
    expect(body).toMatchObject({ date: session.date });
    expect((await vaultHealth())?.status).toBe('ok');
  });

  test('documents moved to another session show no notes', async () => {
    await mirrored();
    const { session, notes } = await sessionWithNotes();
    const other = (await sessionWithNotes()).session;
    const move = 'UPDATE session_documents SET session = $2, ordinal = ordinal + 10 WHERE session = $1';
    await world.sql(move, [session.id, other.id]);
    const shown = (await world.call<NotesResponse>('GET', `/v1/sessions/${other.id}/notes`)).body;
    expect(shown.documents.filter(({ unreadable }) => unreadable)).toMatchObject(
      notes.documents.map(({ documentId }) => ({ documentId, notes: [], unreadable: ['notes'] })),
    );
  });

  test('a changed person is shown with id and state, and the rotation names the row', async () => {
    await mirrored();
    const [row] = await world.sql<{ id: string; profile: Buffer }>(
      `SELECT id, profile FROM people WHERE external_id = 'c-2'`,
    );
    const changed = Buffer.from(row?.profile ?? []);
    changed.writeUInt8(changed.readUInt8(40) ^ 1, 40);
    await world.sql('UPDATE people SET profile = $2 WHERE id = $1', [row?.id, changed]);
    const logged = jest.spyOn(Logger.prototype, 'error');
    expect((await get('/v1/clients/c-2')).body).toMatchObject({
      ...{ externalId: 'c-2', email: null, firstName: null, sync: { state: 'synced' } },
      unreadable: ['email', 'firstName', 'lastName'],
    });
    const { body } = await world.call<{ items: object[] }>('GET', '/v1/clients?limit=5');
    expect(body.items).toContainEqual(expect.objectContaining({ externalId: 'c-2', firstName: null }));
    expect(body.items).toContainEqual(expect.objectContaining({ externalId: 'c-1', firstName: 'c-1' }));
    const place = { table: 'people', column: 'profile', row: row?.id };
    expect(logged).toHaveBeenCalledWith(expect.objectContaining(place));
    expect(JSON.stringify(logged.mock.calls)).not.toMatch(/Osei|example\.org/);
    await world.restart({ DATA_KEYS: `${K2},${DATA_KEYS}` });
    expect(await rotateTo(`${K2},${DATA_KEYS}`)).toEqual([place]);
  });
});
