import { readFileSync } from 'node:fs';
import pg from 'pg';
import { ADMIN_KEY } from '../../harness/world/settings.js';
import type { AuditResponse } from '../../src/access/audit/audit.dto.js';
import type { DisclosureResponse } from '../../src/client-records/client-records.dto.js';
import type { Page } from '../../src/http/request/page.js';
import type { HealthReport } from '../../src/operations/health-checks.js';
import type { SessionResponse } from '../../src/sessions/model/session-view.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';
import { useClientsWithRecords } from './clients-with-records.js';
import { EXPORTED, heldAt, NOT_EXPORTED } from './held-of-a-client.js';

const OURS = ['Auskunfta', 'Voriga', 'auskunft@example.org', 'voriga@example.org', 'Auskunftstext', 'Auskunftsplan'];
const ANOTHERS = ['Fremda', 'fremda@example.org', 'Fremdtext', 'Fremdplan'];
const PATH = '/v1/clients/c%2F1';

interface Export {
  client: { externalId: string };
  calls: { operation: string }[];
  sessions: { id: string; sessionId: string }[];
  importRows: object[];
  events: { type: string; subject: string }[];
  complete: boolean;
}

const world = useWorld();
const { put, newSession, upload } = useClientsWithRecords(world);
/** Our ids of the two sessions. */
let ours: string;
let anothers: string;

beforeEach(async () => {
  await put('c/1', 'Voriga', 'Adler', 'voriga@example.org');
  await put('c/1', 'Auskunfta', 'Adler', 'auskunft@example.org');
  await put('c-2', 'Fremda', 'Adler', 'fremda@example.org');
  ours = await newSession('c/1', 'Auskunftstext', 'Auskunftsplan');
  anothers = await newSession('c-2', 'Fremdtext', 'Fremdplan');
});

const found = (text: string, words: string[]) => words.filter((word) => text.includes(word));
const exported = async (key?: string) => (await world.call<Export>('GET', `${PATH}/export`, { key })).body;
const entriesOf = async (keyId: string) =>
  (await world.call<Page<AuditResponse>>('GET', `/v1/audit?keyId=${keyId}`)).body.items;
const makeKey = async (...scopes: string[]) =>
  (await world.call<{ id: string; key: string }>('POST', '/v1/api-keys', { body: { name: 'a key', scopes } })).body;
const userOf = (client: string) => world.platform.usersOf(client)[0]?.userId ?? '';

test('every table of the schema is part of an export, or is listed with the reason why not', () => {
  const schema = readFileSync('prisma/schema.prisma', 'utf8');
  const models = [...schema.matchAll(/^model (\w+) \{/gm)].map(([, name = '']) => name);
  expect([...Object.keys(EXPORTED), ...Object.keys(NOT_EXPORTED)].sort()).toEqual(models.sort());
});

describe('an export', () => {
  test('holds everything of its client and nothing of another, and its audit entry names each session', async () => {
    await upload('', 'c/1,,Doppelta,Adler,nobody', 'c-3,,Cy,Ng,p-1');
    await world.settle();
    const { id, key } = await makeKey('people:read', 'sessions:read', 'notes:read');
    const body = await exported(key);
    expect(found(JSON.stringify(body), [...OURS, ...ANOTHERS])).toEqual(OURS);
    expect(body).toMatchObject({
      client: { externalId: 'c/1', email: 'auskunft@example.org', givenToPlatform: { firstName: 'Voriga' } },
      sessions: [{ clients: ['c/1'], notes: [{ items: [{ revision: 1 }] }], request: { state: 'Settled' } }],
      importRows: [{ file: 'clients.csv', outcome: 'rejected', read: ['c/1', '', 'Doppelta', 'Adler', 'nobody'] }],
      complete: true,
    });
    expect(body.calls.map(({ operation }) => operation)).toEqual(expect.arrayContaining(['checkUser', 'createClient']));
    const types = body.events.map(({ type }) => type);
    expect(types).toEqual(expect.arrayContaining(['person.synced', 'session.notes-ready']));
    const session = { session: [ours], 'platform-session': [body.sessions[0]?.sessionId] };
    const subjects = { client: ['c/1'], provider: ['p-1'], ...session };
    expect(await entriesOf(id)).toMatchObject([{ outcome: 'ok', subjects }]);
    expect((await world.call('GET', '/v1/clients/nobody/export')).status).toBe(404);

    // An import that has not ended keeps the state before it, so that it can be undone.
    await world.sql(`UPDATE import_rows r SET was_profile = p.profile FROM people p
      WHERE p.external_id = 'c/1' AND r.external_id = p.external_id`);
    const before = { firstName: 'Auskunfta', email: 'auskunft@example.org' };
    expect((await exported()).importRows).toMatchObject([{ before }]);
  });

  test('can be read line by line', async () => {
    const { text } = await world.call('GET', `${PATH}/export`, { accept: 'application/x-ndjson' });
    const lines = text.trimEnd().split('\n');
    const kinds = lines.map((line) => (JSON.parse(line) as { kind: string }).kind);
    expect([kinds[0], kinds.at(-1)]).toEqual(['client', 'complete']);
  });

  test('holds what each table has of its client, and the events of each id of a session', async () => {
    const former = 'f0f0f0f0-0000-4000-8000-000000000000';
    await upload('', 'c/1,,Doppelta,Adler,nobody');
    // A merge of two sessions leaves an alias.
    await world.sql('INSERT INTO session_aliases (id, session) VALUES ($1, $2)', [former, ours]);
    const created = `INSERT INTO feed_events (type, subject, data) VALUES ('session.created', $1, '{}')`;
    await world.sql(created, [`sessions/${former}`]);
    for (const userId of [userOf('c/1'), 'f1f1f1f1-0000-4000-8000-000000000000']) {
      const payload = { userId, externalUserId: 'c/1', role: 'Client' };
      world.platform.simulator.state.deliveries.sendRaw(JSON.stringify({ eventType: 'USER_CREATED', payload }));
    }
    await world.settle();
    const body = await exported();
    const missing = Object.entries(EXPORTED).filter(([, place]) => heldAt(body, place.split('.')).length === 0);
    expect(missing).toEqual([]);
    const timeline = heldAt(body, ['sessions', 'timeline']) as { kind: string }[];
    expect([...new Set(timeline.map(({ kind }) => kind))].sort()).toEqual(['call', 'event', 'notes', 'request']);
    expect(heldAt(body, ['sessions', 'notices', 'body'])).not.toHaveLength(0);
    const subjects = new Set(body.events.map(({ subject }) => subject.split('/')[0]));
    expect([...subjects].sort()).toEqual(['clients', 'processing-notices', 'processing-sessions', 'sessions']);
    expect(body.events).toContainEqual(expect.objectContaining({ subject: `sessions/${former}` }));
  });

  test('breaks off when its key is revoked', async () => {
    const { id, key } = await makeKey('people:read', 'sessions:read', 'notes:read');
    const lock = new pg.Client({ connectionString: world.database.url });
    await lock.connect();
    await lock.query('BEGIN; LOCK TABLE session_documents');
    const answer = await fetch(`${world.url}${PATH}/export`, { headers: { authorization: `Bearer ${key}` } });
    const text = answer.text();
    const revoking = { method: 'DELETE', headers: { authorization: `Bearer ${ADMIN_KEY}` } };
    expect((await fetch(`${world.url}/v1/api-keys/${id}`, revoking)).status).toBe(204);
    await lock.query('ROLLBACK');
    await lock.end();
    await expect(text).rejects.toThrow('terminated');
    expect(await entriesOf(id)).toMatchObject([{ outcome: 'ok', subjects: { session: [expect.any(String)] } }]);
  });

  test('shows a session that was moved to its client in the database as unreadable, and audits only its own', async () => {
    const users = 'SELECT array_agg(platform_user_id) FROM people WHERE external_id = $2';
    await world.sql(`UPDATE sessions SET client_user_ids = (${users}) WHERE id = $1`, [anothers, 'c/1']);
    const { id, key } = await makeKey('people:read', 'sessions:read', 'notes:read');
    const body = await exported(key);
    expect(found(JSON.stringify(body), ANOTHERS)).toEqual([]);
    const moved = body.sessions.find((session) => session.id === anothers);
    expect(moved).toMatchObject({ unreadable: expect.arrayContaining(['clients']), notes: [] });
    expect(await entriesOf(id)).toMatchObject([{ subjects: { client: ['c/1'], session: [ours] } }]);
  });

  test('shows a note that was changed in the database as unreadable, and the rest of its client', async () => {
    for (const [table, column] of [
      ['document_revisions', 'notes'],
      ['session_insights', 'topics'],
    ])
      await world.sql(`UPDATE ${table} SET ${column} = set_byte(${column}, 40, get_byte(${column}, 40) # 1)`);
    const unreadable = { notes: [], unreadable: ['notes'] };
    const shown = await world.call('GET', `/v1/sessions/${ours}/notes`);
    expect(shown).toMatchObject({ status: 200, body: { documents: [unreadable] } });
    const session = { id: ours, notes: [{ items: [unreadable] }], unreadable: ['insights'] };
    expect(await exported()).toMatchObject({ sessions: [session], complete: true });
  });
});

describe('an accounting', () => {
  const disclosures = async (query: string) =>
    (await world.call<Page<DisclosureResponse>>('GET', `${PATH}/disclosures?${query}`)).body;

  test('lists what the platform and each key received, newest first, in pages', async () => {
    const { id, key } = await makeKey('people:read');
    await world.call('GET', PATH, { key });
    const plan = { externalTreatmentPlan: 'Auskunftsplan' };
    expect((await world.call('PATCH', `/v1/sessions/${ours}`, { body: plan })).status).toBe(200);
    const all: DisclosureResponse[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const page = await disclosures(`limit=2${cursor && `&cursor=${cursor}`}`);
      all.push(...page.items);
      cursor = page.nextCursor;
    }
    const dates = all.map(({ at }) => at);
    expect(dates).toEqual([...dates].sort().reverse());
    const sent = all.filter(({ recipient }) => recipient === 'platform').map(({ action }) => action);
    expect(sent.sort()).toEqual(['checkUser', 'createClient', 'createSession', 'updateSession']);
    const update = { action: 'updateSession', outcome: 'answered', sessions: [ours] };
    expect(all).toContainEqual(expect.objectContaining(update));
    const reading = { recipient: 'ehr', action: 'GET /v1/clients/:externalId', keyId: id };
    expect(all).toContainEqual(expect.objectContaining(reading));
    expect(found(JSON.stringify(all), [...OURS, ...ANOTHERS])).toEqual([]);
  });

  test('groups repeats into one entry with count, first and last date, which stays in place while paging', async () => {
    const { id, key } = await makeKey('people:read', 'sessions:read');
    for (let times = 0; times < 5; times++) await world.call('GET', `/v1/sessions/${ours}`, { key });
    await world.call('GET', PATH, { key });
    const ofKey = async (cursor = '') =>
      (await disclosures(`limit=200${cursor}`)).items.filter(({ keyId }) => keyId === id);
    const [one, five] = await ofKey();
    expect(one).toMatchObject({ action: 'GET /v1/clients/:externalId', count: 1, sessions: [], firstAt: one?.at });
    expect(five).toMatchObject({ action: 'GET /v1/sessions/:id', count: 5, sessions: [ours], outcome: 'ok' });
    expect(String(five?.firstAt) < String(five?.at)).toBe(true);

    const { nextCursor } = await disclosures('limit=1');
    await world.advance('1 s');
    await world.call('GET', `/v1/sessions/${ours}`, { key });
    expect(await ofKey(`&cursor=${nextCursor}`)).toContainEqual(expect.objectContaining({ count: 5 }));
    expect(await ofKey()).toContainEqual(expect.objectContaining({ count: 6 }));
  });
});

describe('links between clients and users that were changed in the database', () => {
  const refused = async (method: string, path: string, { body, key }: { body?: object; key?: string } = {}) => {
    const answer = await world.call<{ type: string }>(method, path, { body, key });
    const problem = 'urn:notebridge:problem:data-unreadable';
    expect([method, path, answer.status, answer.body.type]).toEqual([method, path, 503, problem]);
  };
  const list = async (query = '') =>
    (await world.call<Page<SessionResponse>>('GET', `/v1/sessions${query}`)).body.items;
  /** How many values of a column could not be opened so far. */
  const unreadable = async (column: string) => {
    const { text } = await world.call('GET', '/metrics');
    const count = new RegExp(`unreadable_values_total\\{column="${column}",cause="damaged"\\} (\\d+)`).exec(text);
    return Number(count?.[1] ?? 0);
  };
  const vault = async () => (await world.call<HealthReport>('GET', '/health/ready')).body.checks.vault;
  /** Links c/1 and c-2 to these users, in spite of the rule that a user is one person's. */
  const link = async (ofOurs: string, ofAnothers: string) => {
    await world.sql(`UPDATE people SET platform_user_id = NULL WHERE kind = 'client'`);
    const one = 'UPDATE people SET platform_user_id = $2 WHERE external_id = $1';
    await world.sql(one, ['c/1', ofOurs]);
    await world.sql(one, ['c-2', ofAnothers]);
  };
  /** Expects that no client and no content of the session is shown to any key. */
  const isHidden = async (id: string) => {
    const { id: keyId, key } = await makeKey('sessions:read', 'notes:read');
    const hidden = { id, provider: null, clients: [], clientUserIds: [], date: null };
    const { body } = await world.call<SessionResponse>('GET', `/v1/sessions/${id}`, { key });
    expect(body).toMatchObject({ ...hidden, unreadable: expect.arrayContaining(['clients']) });
    expect(await list()).toContainEqual(expect.objectContaining(hidden));
    for (const part of ['notes', 'transcript', 'insights', 'recording-url'])
      await refused('GET', `/v1/sessions/${id}/${part}`, { key });
    const entries = await entriesOf(keyId);
    expect(entries).toHaveLength(5);
    // Quoted, because an identifier of an entry can contain "c-2" by chance.
    expect(found(JSON.stringify(entries), ['"c/1"', '"c-2"'])).toEqual([]);
  };

  test('hide the sessions of two swapped clients and stop every call about them until they are restored', async () => {
    const [oursUser, anothersUser] = [userOf('c/1'), userOf('c-2')];
    const before = await unreadable('people.user_link');
    const { id: keyId, key } = await makeKey('people:write', 'sessions:write', 'sessions:read');
    await link(anothersUser, oursUser);
    for (const id of [ours, anothers]) await isHidden(id);
    for (const client of ['c%2F1', 'c-2']) {
      await refused('GET', `/v1/sessions?client=${client}`);
      await refused('GET', `/v1/clients/${client}/export`);
      await refused('GET', `/v1/clients/${client}/disclosures`);
    }
    const shown = { firstName: 'Auskunfta', platformUserId: null, unreadable: ['platformUserId'] };
    expect((await world.call('GET', PATH)).body).toMatchObject(shown);
    expect((await world.call('GET', '/v1/clients')).status).toBe(200);
    expect(await unreadable('people.user_link')).toBeGreaterThan(before + 10);
    expect(await vault()).toMatchObject({ status: 'degraded', reason: expect.stringMatching(/do not open/) });

    const [calls, input] = [world.platform.arrivals(), { text: { text: 'Fremdtext' } }];
    const body = { provider: 'p-1', client: 'c/1', noteTemplateIds: [SOAP], input };
    await refused('POST', '/v1/sessions', { body, key });
    await refused('PATCH', `/v1/sessions/${ours}`, { body: { externalTreatmentPlan: 'Fremdplan' }, key });
    await world.call('DELETE', '/v1/clients/c-2', { key });
    await world.settle();
    const { sync } = (await world.call('GET', '/v1/clients/c-2')).body;
    expect([sync.state, sync.error?.code, world.platform.arrivals()]).toEqual(['deleting', 'unreadable', calls]);
    expect(JSON.stringify(await entriesOf(keyId))).not.toContain(anothersUser);

    await link(oursUser, anothersUser);
    await world.advance('1 h');
    await world.settle();
    expect((await world.call('GET', '/v1/clients/c-2')).body.sync.state).toBe('deleted');
    expect([userOf('c/1'), userOf('c-2')]).toEqual([oursUser, '']);
    expect(await list('?client=c-2')).toMatchObject([{ id: anothers, clients: ['c-2'] }]);
    expect(await list('?client=c%2F1')).toMatchObject([{ id: ours, clients: ['c/1'] }]);
    expect((await vault())?.status).toBe('ok');
  });

  test('hide the session of a deleted client, and that of a client whose link lost its seal', async () => {
    expect((await world.call('DELETE', '/v1/clients/c-2', { wait: 60 })).status).toBe(200);
    const before = await unreadable('platform_users.person_link');
    const give = (client: string) =>
      world.sql(
        `UPDATE platform_users SET person_id = (SELECT id FROM people WHERE external_id = $1) WHERE person_id IS NOT NULL`,
        [client],
      );
    await give('c/1');
    await isHidden(anothers);
    await refused('GET', '/v1/sessions?client=c%2F1');
    expect(await list('?client=c-2')).toEqual([]);
    expect(await unreadable('platform_users.person_link')).toBeGreaterThan(before + 1);
    await give('c-2');

    const [sealed] = await world.sql(`SELECT user_link FROM people WHERE external_id = 'c/1'`);
    const seal = `UPDATE people SET user_link = $1 WHERE external_id = 'c/1'`;
    await world.sql(seal, [null]);
    await isHidden(ours);
    await world.sql(seal, [sealed?.user_link]);
    expect((await list()).flatMap(({ clients }) => clients).sort()).toEqual(['c-2', 'c/1']);
    expect((await vault())?.status).toBe('ok');
  });
});
