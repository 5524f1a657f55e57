import type pg from 'pg';
import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import { createSession } from '../simulator/sessions/session-routes.js';
import { takeStep } from '../simulator/sessions/session-run.js';
import type { NotesResponse, SessionResponse } from '../src/sessions/model/session-view.js';
import { parseDataKeys } from '../src/vault/data-keys.js';
import { sealedInLayout1 } from '../src/vault/layout-1.spec-support.js';
import { ADMIN_KEY, testSettings, WEBHOOK_SECRET } from './support/app.js';
import { inFormerLayout } from './support/former-layout.js';
import { partIs } from './support/health.js';
import { holdEveryKind } from './support/held-work.js';
import { usePrograms } from './support/programs.js';
import { type Mirror, useMirrors } from './support/service.js';

const K1 = testSettings('').DATA_KEYS ?? '';
const K2 = `k2:${Buffer.alloc(32, 8).toString('base64')}`;
const SOAP = '11111111-1111-4111-8111-111111111111';

/** People who make the rotation longer than one batch. */
const MORE_PEOPLE = 1_000;

const newMirror = useMirrors();
const startProgram = usePrograms();

let mirror: Mirror;
let sql: pg.Pool;
let service: Service;
let session: SessionResponse;
let notes: NotesResponse;

/** What the rotation prints. */
interface Report {
  keys: { key: string; values: number; droppable: boolean }[];
  left: number;
  formerSessions: number;
  formerLinks: number;
  unreadable: { table: string; column: string; row: string }[];
}

const person = (name: string) => ({ email: `${name}@example.org`, firstName: name, lastName: 'Osei' });

beforeAll(async () => {
  mirror = await newMirror({
    platform: { stepMs: 0, processingEvents: false, webhookSecret: WEBHOOK_SECRET },
    env: { PLATFORM_TIMEOUT_SECONDS: '60' },
  });
  sql = mirror.database.sql;
  service = await mirror.start({ DATA_KEYS: K1 });
  await fill();
});

/** Something in every table that is sealed. */
async function fill(): Promise<void> {
  const { state } = mirror.simulator;
  state.settings.webhookUrl = `${service.url}/webhooks/platform`;
  const synced = async (path: string, body: object) =>
    expect((await service.call('PUT', path, { body, wait: 60 })).body.sync.state).toBe('synced');
  await synced('/v1/providers/therapist', person('Ada'));
  for (const client of ['c-1', 'c-2']) {
    await synced(`/v1/clients/${client}`, { ...person(client), providers: ['therapist'] });
  }
  const held = await holdEveryKind(mirror, service, 'held');
  mirror.release();
  await held.ended();
  const [provider, client] = ['therapist', 'c-1'].map((id) => mirror.usersOf(id)[0]?.userId ?? '');
  const made = createSession(state, {
    providerUserId: provider ?? '',
    clientUserIds: [client ?? ''],
    noteTemplateIds: [SOAP],
    input: { kind: 'text', text: 'They spoke of the week.' },
    date: '2026-03-01T09:00:00.000Z',
  });
  while (made.nextStep) takeStep(state, made);
  notes = await until('the notes are there', async () => {
    const { status, body } = await service.call<NotesResponse>('GET', `/v1/sessions/${made.sessionId}/notes`);
    return status === 200 && body.documents.length > 0 ? body : undefined;
  });
  session = (await service.call<SessionResponse>('GET', `/v1/sessions/${made.sessionId}`)).body;
  expect(session).toMatchObject({ clients: ['c-1'], provider: 'therapist', date: '2026-03-01T09:00:00.000Z' });
  await service.call('PUT', '/v1/clients/c-3', {
    body: { ...person('c-3'), providers: ['therapist'] },
    idempotencyKey: 'x',
  });
}

const rotation = (keys: string, ...args: string[]) =>
  startProgram({
    file: 'dist/src/cli/main.js',
    args: ['keys', 'rotate-data', ...args],
    env: { ...testSettings(mirror.database.url), DATA_KEYS: keys },
  });

/** What it prints, after the lines of its progress. */
async function rotated(keys: string, ...args: string[]): Promise<[code: number | null, Report]> {
  const program = await rotation(keys, '--json', ...args);
  const code = await program.ended();
  return [code, JSON.parse(program.output().slice(program.output().indexOf('{')))];
}

/** How many rows of people hold a value of a layout and a key. */
async function peopleWith(header: number[], key: string): Promise<number> {
  const begin = Buffer.from([...header, ...Buffer.from(key)]);
  const text = `SELECT count(*)::int AS count FROM people WHERE substring(profile FOR ${begin.length}) = $1`;
  return (await sql.query(text, [begin])).rows[0].count;
}

/** Reads and writes without a pause until it is ended; every answer must be what was asked for. */
function load(): { end(): Promise<number> } {
  let isOver = false;
  let answers = 0;
  const reader = async () => {
    while (!isOver) {
      const [one, list, text] = await Promise.all([
        service.call('GET', '/v1/clients/c-1'),
        service.call<{ items: { unreadable?: string[] }[] }>('GET', '/v1/clients?limit=200'),
        service.call<NotesResponse>('GET', `/v1/sessions/${session.id}/notes`),
      ]);
      expect([one.status, list.status, text.status]).toEqual([200, 200, 200]);
      expect(one.body).toMatchObject({ firstName: 'c-1' });
      expect(list.body.items.filter(({ unreadable }) => unreadable)).toEqual([]);
      expect(text.body.documents).toEqual(notes.documents);
      answers += 1;
    }
  };
  const writer = async () => {
    for (let n = 0; !isOver; n = (n + 1) % 20) {
      const body = { ...person(`new-${n}`), providers: ['therapist'] };
      const { status } = await service.call('PUT', `/v1/clients/more-${n}`, { body, wait: 0 });
      expect([200, 202]).toContain(status);
    }
  };
  const ended = Promise.all([reader(), writer()]);
  return {
    async end() {
      isOver = true;
      await ended;
      return answers;
    },
  };
}

test('what was sealed before layout 2 is read; rotation under load, killed and begun anew, loses no read, and the first key can go', async () => {
  expect(await service.kill('SIGTERM')).toBe(0);
  const [key] = parseDataKeys([K1]);
  if (!key) throw new Error('no key');
  expect(await inFormerLayout(sql, K1)).toBeGreaterThan(20);
  const ids = Array.from({ length: MORE_PEOPLE }, (_, n) => `more-${n}`);
  const place = (id: string) => ({ table: 'people', column: 'profile', row: `client/${id}` });
  await sql.query(
    `INSERT INTO people (id, kind, external_id, profile, profile_hash, state)
     SELECT gen_random_uuid(), 'client', id, profile, '', 'synced' FROM unnest($1::text[], $2::bytea[]) AS more(id, profile)`,
    [ids, ids.map((id) => sealedInLayout1(key, place(id), Buffer.from(JSON.stringify([null, id, 'Osei']))))],
  );
  service = await mirror.start({ DATA_KEYS: `${K2},${K1}` });
  mirror.simulator.state.settings.webhookUrl = `${service.url}/webhooks/platform`;
  const working = load();

  // A row that another transaction has: the rotation goes on around it, and is killed while it waits for that one.
  const holder = await sql.connect();
  await holder.query('BEGIN');
  await holder.query(`SELECT FROM people WHERE external_id = 'c-2' FOR UPDATE`);
  const killed = await startProgram({
    file: 'dist/src/cli/commands/rotate-data.js',
    env: { ...testSettings(mirror.database.url), DATA_KEYS: `${K2},${K1}` },
  });
  await until('all but the locked row are sealed anew', async () => (await peopleWith([1, 2], 'k1')) === 1);
  expect(await killed.kill('SIGKILL')).toBeNull();
  await holder.query('ROLLBACK');
  holder.release();
  const [, between] = await rotated(`${K2},${K1}`, '--dry-run');
  expect(between.keys).toMatchObject([
    { key: 'k2', droppable: false },
    { key: 'k1', droppable: false },
  ]);

  const [code, report] = await rotated(`${K2},${K1}`);
  expect([code, report]).toMatchObject([0, { left: 0, formerSessions: 0, formerLinks: 0, unreadable: [] }]);
  expect(report.keys[1]).toEqual({ key: 'k1', values: 0, droppable: true });
  expect(await working.end()).toBeGreaterThan(0);
  const plain = 'SELECT 1 FROM sessions WHERE date IS NOT NULL OR error_code IS NOT NULL OR facts IS NULL';
  expect((await sql.query(plain)).rowCount).toBe(0);
  const unbound = 'SELECT 1 FROM people WHERE platform_user_id IS NOT NULL AND user_link IS NULL';
  expect((await sql.query(unbound)).rowCount).toBe(0);

  // The first key, which had wrapped the key of the fingerprints, is dropped.
  expect(await service.kill('SIGTERM')).toBe(0);
  service = await mirror.start({ DATA_KEYS: K2 });
  mirror.simulator.state.settings.webhookUrl = `${service.url}/webhooks/platform`;
  expect((await service.call<SessionResponse>('GET', `/v1/sessions/${session.id}`)).body).toMatchObject({
    ...{ clients: ['c-1'], provider: 'therapist', date: session.date, sessionId: session.sessionId },
  });
  const { body } = await service.call<NotesResponse>('GET', `/v1/sessions/${session.id}/notes`);
  expect(body.documents).toEqual(notes.documents);
  const found = await service.call<{ items: unknown[] }>('POST', '/v1/people/search', {
    body: { email: 'C-1@example.org' },
  });
  expect(found.body.items).toMatchObject([{ externalId: 'c-1' }]);
  await partIs(service, 'vault', 'ok');
});

describe('values that were changed or moved in the database', () => {
  const unreadable = async () => {
    const metrics = await (
      await fetch(`${service.url}/metrics`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } })
    ).text();
    const lines = metrics.split('\n').filter((line) => line.startsWith('notebridge_unreadable_values_total{'));
    return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
  };
  const get = (path: string) => service.call<Record<string, unknown>>('GET', path);
  const isRefused = async (path: string) => {
    const { status, body } = await get(path);
    expect([path, status, body.type]).toEqual([path, 503, 'urn:notebridge:problem:data-unreadable']);
  };
  const content = () =>
    ['notes', 'transcript', 'insights', 'recording-url'].map((part) => `/v1/sessions/${session.id}/${part}`);

  test('one UPDATE that puts one client’s session under another shows nothing of it to anybody', async () => {
    const before = await unreadable();
    const other = mirror.usersOf('c-2')[0]?.userId;
    await sql.query('UPDATE sessions SET client_user_ids = ARRAY[$2] WHERE id = $1', [session.id, other]);
    for (const path of content()) await isRefused(path);
    await isRefused(`/v1/sessions/${session.id}/notes/${notes.documents[0]?.documentId}/revisions`);
    const { body } = await service.call<{ items: SessionResponse[] }>('GET', '/v1/sessions?client=c-2');
    expect(body.items).toMatchObject([{ id: session.id, state: 'Done', clients: [], date: null, error: null }]);
    expect(body.items[0]?.unreadable).toContain('clients');
    expect(await unreadable()).toBeGreaterThan(before + 5);
    expect((await partIs(service, 'vault', 'degraded')).reason).toMatch(/do not open.*backup/);
    await until('the log names the row', () =>
      service.output().includes(`"table":"sessions","column":"facts","row":"${session.id}"`),
    );

    // A worker that meets it ends with a fault that names it, and asks the platform no more.
    const due = `UPDATE sessions SET due_at = now(), wanted_generation = wanted_generation + 1 WHERE id = $1`;
    await sql.query(due, [session.id]);
    const row = async () => (await sql.query('SELECT fault, due_at FROM sessions WHERE id = $1', [session.id])).rows[0];
    await until('the fetch has ended', async () => (await row()).fault === 'unreadable');
    expect(await row()).toEqual({ fault: 'unreadable', due_at: null });

    await sql.query('UPDATE sessions SET client_user_ids = ARRAY[$2] WHERE id = $1', [
      session.id,
      mirror.usersOf('c-1')[0]?.userId,
    ]);
    expect((await get(content()[0] ?? '')).status).toBe(200);
    await partIs(service, 'vault', 'ok');
  });

  test('nor do documents under another session, facts that were taken away, or values of the former layout', async () => {
    const [{ id: other }] = (await sql.query('SELECT id FROM sessions WHERE id <> $1 LIMIT 1', [session.id])).rows;
    const moved = 'UPDATE session_documents SET session = $2, ordinal = ordinal + 10 WHERE session = $1';
    await sql.query(moved, [session.id, other]);
    const shown = await service.call<NotesResponse>('GET', `/v1/sessions/${other}/notes`);
    const those = notes.documents.map(({ documentId }) => ({ documentId, notes: [], unreadable: ['notes'] }));
    expect(shown.body.documents.filter(({ unreadable: names }) => names)).toMatchObject(those);
    const back =
      'UPDATE session_documents SET session = $1, ordinal = ordinal - 10 WHERE session = $2 AND ordinal >= 10';
    await sql.query(back, [session.id, other]);
    const [{ facts }] = (await sql.query('SELECT facts FROM sessions WHERE id = $1', [session.id])).rows;
    await sql.query('UPDATE sessions SET facts = NULL WHERE id = $1', [session.id]);
    for (const path of content()) await isRefused(path);
    await sql.query('UPDATE sessions SET facts = $2 WHERE id = $1', [session.id, facts]);
  });

  test('a person who does not open is shown with its ids and state, alone and in lists; rotation names the row and goes on', async () => {
    const [{ id, profile }] = (await sql.query(`SELECT id, profile FROM people WHERE external_id = 'c-2'`)).rows;
    const bent = Buffer.from(profile);
    bent.writeUInt8(bent.readUInt8(40) ^ 1, 40);
    await sql.query('UPDATE people SET profile = $2 WHERE id = $1', [id, bent]);
    const shown = { externalId: 'c-2', email: null, firstName: null, sync: { state: 'synced' } };
    expect((await get('/v1/clients/c-2')).body).toMatchObject({
      ...shown,
      unreadable: ['email', 'firstName', 'lastName'],
    });
    const { body } = await service.call<{ items: { externalId: string }[] }>('GET', '/v1/clients?limit=5');
    expect(body.items).toContainEqual(expect.objectContaining({ externalId: 'c-2', firstName: null }));
    expect(body.items).toContainEqual(expect.objectContaining({ externalId: 'c-1', firstName: 'c-1' }));
    await until('the log names the row', () =>
      service.output().includes(`"table":"people","column":"profile","row":"${id}"`),
    );
    expect(service.output()).not.toMatch(/Osei|example\.org/);

    // Whoever is still being mirrored is sealed by the key of the service meanwhile.
    const due = 'SELECT FROM people WHERE due_at IS NOT NULL LIMIT 1';
    await until('everybody is mirrored', async () => (await sql.query(due)).rowCount === 0);
    const K3 = `k3:${Buffer.alloc(32, 9).toString('base64')}`;
    const [code, report] = await rotated(`${K3},${K2}`);
    expect([code, report.unreadable]).toEqual([2, [{ table: 'people', column: 'profile', row: id }]]);
    expect(report.keys).toEqual([
      { key: 'k3', values: expect.any(Number), droppable: false },
      { key: 'k2', values: 1, droppable: false },
    ]);
  });
});
