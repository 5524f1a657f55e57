import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { AuditResponse } from '../src/access/audit/audit.dto.js';
import type { DisclosureResponse } from '../src/client-records/client-records.dto.js';
import type { Page } from '../src/http/request/page.js';
import type { NotesResponse, SessionResponse } from '../src/sessions/model/session-view.js';
import { ADMIN_KEY } from './support/app.js';
import { partIs } from './support/health.js';
import { EXPORTED, heldAt, NOT_EXPORTED } from './support/held-of-a-client.js';
import { usePrograms } from './support/programs.js';
import { type Mirror, useMirrors } from './support/service.js';
import { answerTo } from './support/webhook-requests.js';

const SOAP = '11111111-1111-4111-8111-111111111111';

const OURS = [
  'Auskunfta',
  'Voriga',
  'Doppelta',
  'auskunft@example.org',
  'voriga@example.org',
  'Auskunftstext',
  'Auskunftsplan',
];
const ANOTHERS = ['Fremda', 'fremda@example.org', 'Fremdtext', 'Fremdplan'];

interface Export {
  client: { externalId: string; givenToPlatform: { firstName: string } };
  calls: { operation: string }[];
  sessions: {
    id: string;
    sessionId: string;
    notes: { items: { revision: number }[] }[];
    transcript: unknown;
    request: object;
  }[];
  importRows: object[];
  events: { type: string; subject: string }[];
  complete: boolean;
}

const newMirror = useMirrors();
const startProgram = usePrograms();
let mirror: Mirror;
let service: Service;
let folder: string;
/** Our ids of the two sessions. */
let ours: string;
let anothers: string;

beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'notebridge-client-'));
  // No webhook is late for the platform, however slow the machine is: a retry would be one delivery more.
  mirror = await newMirror({
    platform: { stepMs: 1, webhookTimeoutMs: 60_000 },
    env: { PLATFORM_TIMEOUT_SECONDS: '60' },
  });
  const { state } = mirror.simulator;
  service = await mirror.start({ PLATFORM_WEBHOOK_SECRET: state.settings.webhookSecret });
  state.settings = { ...state.settings, webhookUrl: `${service.url}/webhooks/platform` };
  await service.call('PUT', '/v1/providers/p-1', {
    body: { email: 'p@example.org', firstName: 'Pia', lastName: 'R' },
    wait: 60,
  });
  await put('c/1', 'Voriga', 'voriga@example.org');
  await put('c/1', 'Auskunfta', 'auskunft@example.org');
  await put('c-2', 'Fremda', 'fremda@example.org');
  const content = 'externalId,firstName,lastName,providers\nc/1,Doppelta,Adler,nobody\nc-3,Cy,Ng,p-1';
  const { id } = await service.startImport('kind=clients', [{ name: 'clients.csv', type: 'text/csv', content }]);
  await service.importEnded(id);
  ours = await newSession('c/1', 'Auskunftstext', 'Auskunftsplan');
  anothers = await newSession('c-2', 'Fremdtext', 'Fremdplan');
  // What is told after the notes are there belongs to their client, too.
  await state.deliveries.settled();
  for (const what of [
    'webhook_deliveries WHERE due_at IS NOT NULL',
    'sessions WHERE due_at < now() OR lease_owner IS NOT NULL OR pending_events_at IS NOT NULL',
    'processing_sessions WHERE due_at < now() OR lease_owner IS NOT NULL',
  ]) {
    await until(`nothing is left of ${what}`, async () => (await mirror.sql(`SELECT 1 FROM ${what}`)).length === 0);
  }
});
afterAll(() => rmSync(folder, { recursive: true }));

const put = (id: string, firstName: string, email: string) =>
  service.call('PUT', `/v1/clients/${encodeURIComponent(id)}`, {
    body: { firstName, lastName: 'Adler', email, providers: ['p-1'] },
    wait: 60,
  });

async function newSession(client: string, text: string, plan: string): Promise<string> {
  const body = {
    provider: 'p-1',
    client,
    noteTemplateIds: [SOAP],
    input: { text: { text } },
    externalTreatmentPlan: plan,
  };
  const made = await service.call<SessionResponse>('POST', '/v1/sessions', { body, wait: 60 });
  const notes = async () =>
    (await service.call<NotesResponse>('GET', `/v1/sessions/${made.body.id}/notes`)).body.documents;
  await until('its notes are there', async () => (await notes()).length > 0);
  return made.body.id;
}

/** Runs a command to its end. */
async function notebridge(...args: string[]): Promise<{ code: number | null; output: string }> {
  const env = { NOTEBRIDGE_URL: service.url, NOTEBRIDGE_KEY: ADMIN_KEY, DATA_DIR: folder };
  const program = await startProgram({ file: 'dist/src/cli/main.js', args, env });
  return { code: await program.ended(), output: program.output() };
}

const PATH = '/v1/clients/c%2F1';
const found = (text: string, words: string[]) => words.filter((word) => text.includes(word));
const entriesOf = async (keyId: string) =>
  (await service.call<Page<AuditResponse>>('GET', `/v1/audit?keyId=${keyId}`)).body.items;
const makeKey = async (...scopes: string[]) =>
  (await service.call<{ id: string; key: string }>('POST', '/v1/api-keys', { body: { name: scopes.join(), scopes } }))
    .body;

test('an export holds everything of its client and nothing of another, and is on record with each session', async () => {
  const { id, key } = await makeKey('people:read', 'sessions:read', 'notes:read');
  const { body } = await service.call<Export>('GET', `${PATH}/export`, { key });
  const text = JSON.stringify(body);
  expect(found(text, OURS)).toEqual(OURS);
  expect(found(text, ANOTHERS)).toEqual([]);
  expect(body).toMatchObject({
    client: { externalId: 'c/1', email: 'auskunft@example.org', givenToPlatform: { firstName: 'Voriga' } },
    sessions: [{ clients: ['c/1'], notes: [{ items: [{ revision: 1 }] }], request: { state: 'Settled' } }],
    importRows: [{ file: 'clients.csv', line: 2, outcome: 'rejected', read: ['c/1', 'Doppelta', 'Adler', 'nobody'] }],
    complete: true,
  });
  expect(body.calls.map(({ operation }) => operation)).toEqual(expect.arrayContaining(['checkUser', 'createClient']));
  expect(body.events.map(({ type }) => type)).toEqual(expect.arrayContaining(['person.synced', 'session.notes-ready']));

  const [session] = body.sessions;
  expect(await entriesOf(id)).toMatchObject([
    {
      outcome: 'ok',
      subjects: {
        ...{ client: ['c/1'], provider: ['p-1'] },
        ...{ session: [session?.id], 'platform-session': [session?.sessionId] },
      },
    },
  ]);

  const lines = await answerTo(`${service.url}${PATH}/export`, {
    headers: { authorization: `Bearer ${key}`, accept: 'application/x-ndjson' },
  });
  const kinds = (await lines.text())
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { kind: string }).kind);
  expect([kinds[0], kinds.at(-1)]).toEqual(['client', 'complete']);
  expect((await service.call('GET', '/v1/clients/nobody/export', { key })).status).toBe(404);
});

test('every table of the schema is part of an export, or it is said why not', () => {
  const schema = readFileSync('prisma/schema.prisma', 'utf8');
  const models = [...schema.matchAll(/^model (\w+) \{/gm)].map(([, name = '']) => name);
  expect([...Object.keys(EXPORTED), ...Object.keys(NOT_EXPORTED)].sort()).toEqual(models.sort());
});

describe('an export of somebody of whom every table holds something', () => {
  const FORMER = 'f0f0f0f0-0000-4000-8000-000000000000';
  const ANOTHER_USER = 'f1f1f1f1-0000-4000-8000-000000000000';
  let body: Export;

  beforeAll(async () => {
    // As a merge leaves it.
    await mirror.sql('INSERT INTO session_aliases (id, session) VALUES ($1, $2)', [FORMER, ours]);
    await mirror.sql(`INSERT INTO feed_events (type, subject, data) VALUES ('session.created', $1, '{}')`, [
      `sessions/${FORMER}`,
    ]);
    for (const userId of [mirror.usersOf('c/1')[0]?.userId, ANOTHER_USER]) {
      const payload = { userId, externalUserId: 'c/1', role: 'Client' };
      mirror.simulator.state.deliveries.sendRaw(JSON.stringify({ eventType: 'USER_CREATED', payload }));
    }
    await until('it was told of both users', async () => {
      const told = await mirror.sql(
        `SELECT DISTINCT subject FROM webhook_deliveries WHERE event_type = 'USER_CREATED' AND state = 'processed'`,
      );
      return told.length === 2;
    });
    ({ body } = await service.call<Export>('GET', `${PATH}/export`));
    await mirror.sql('DELETE FROM session_aliases');
  });

  test.each(Object.entries(EXPORTED))('holds what %s has, as %s', (_model, place) => {
    expect(heldAt(body, place.split('.'))).not.toHaveLength(0);
  });

  test('tells of each session what happened to it, and what the feed told of it by each of its ids', () => {
    const timeline = heldAt(body, ['sessions', 'timeline']) as { kind: string }[];
    expect([...new Set(timeline.map(({ kind }) => kind))].sort()).toEqual(['call', 'event', 'notes', 'request']);
    expect(heldAt(body, ['sessions', 'notices', 'body'])).not.toHaveLength(0);
    const told = new Set(body.events.map(({ subject }) => subject.split('/')[0]));
    expect([...told].sort()).toEqual(['clients', 'processing-notices', 'processing-sessions', 'sessions']);
    expect(body.events).toContainEqual(expect.objectContaining({ subject: `sessions/${FORMER}` }));
  });
});

test('an export says what was wanted of its client before an import that is not over', async () => {
  // As an import copies it when it applies a row, and forgets it when the row is done.
  await mirror.sql(`UPDATE import_rows r SET was_profile = p.profile FROM people p
    WHERE p.external_id = 'c/1' AND r.external_id = p.external_id`);
  const { body } = await service.call<Export>('GET', `${PATH}/export`);
  expect(body.importRows).toMatchObject([{ before: { firstName: 'Auskunfta', email: 'auskunft@example.org' } }]);
});

test('an export ends with its key, also when it was on its way', async () => {
  const { id, key } = await makeKey('people:read', 'sessions:read', 'notes:read');
  const lock = new pg.Client({ connectionString: mirror.database.url });
  await lock.connect();
  await lock.query('BEGIN; LOCK TABLE session_documents');
  const answer = await answerTo(`${service.url}${PATH}/export`, { headers: { authorization: `Bearer ${key}` } });
  const text = answer.text();
  const revoking = await answerTo(`${service.url}/v1/api-keys/${id}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${ADMIN_KEY}` },
  });
  expect(revoking.status).toBe(204);
  await lock.query('ROLLBACK');
  await lock.end();
  await expect(text).rejects.toThrow('terminated');
  expect(await entriesOf(id)).toMatchObject([{ outcome: 'ok', subjects: { session: [expect.any(String)] } }]);
});

test('an export shows a session that was given to its client from outside as unreadable, and names it nowhere', async () => {
  const user = (client: string) => `(SELECT platform_user_id FROM people WHERE external_id = '${client}')`;
  const give = (client: string, where: string) =>
    mirror.sql<{ id: string }>(
      `UPDATE sessions SET client_user_ids = ARRAY[${user(client)}] WHERE ${where} RETURNING id`,
    );
  const [own] = (await service.call<Export>('GET', `${PATH}/export`)).body.sessions;
  const [moved] = await give('c/1', `${user('c-2')} = ANY (client_user_ids)`);
  const { id, key } = await makeKey('people:read', 'sessions:read', 'notes:read');
  const { body } = await service.call<Export>('GET', `${PATH}/export`, { key });
  await give('c-2', `id = '${moved?.id}'`);
  expect(found(JSON.stringify(body), ANOTHERS)).toEqual([]);
  expect(body.sessions.find((session) => session.id === moved?.id)).toMatchObject({
    unreadable: expect.arrayContaining(['clients']),
    notes: [],
  });
  expect(await entriesOf(id)).toMatchObject([{ subjects: { client: ['c/1'], session: [own?.id] } }]);
});

test('a note that was changed in the database is shown as unreadable beside the others, and ends no export', async () => {
  const bend = (table: string, column: string, where: string) =>
    mirror.sql(
      `UPDATE ${table} SET ${column} = set_byte(${column}, 40, get_byte(${column}, 40) # 1) WHERE ${where} AND ${column} IS NOT NULL RETURNING 1`,
    );
  const newest = `document = (SELECT id FROM session_documents WHERE session = '${ours}' LIMIT 1)`;
  expect(await bend('document_revisions', 'notes', newest)).toHaveLength(1);
  expect(await bend('session_insights', 'topics', `session = '${ours}'`)).toHaveLength(1);
  const shown = await service.call<NotesResponse>('GET', `/v1/sessions/${ours}/notes`);
  const { body } = await service.call<Export>('GET', `${PATH}/export`);
  await bend('document_revisions', 'notes', newest);
  await bend('session_insights', 'topics', `session = '${ours}'`);
  const unreadable = { notes: [], unreadable: ['notes'] };
  expect([shown.status, shown.body.documents]).toMatchObject([200, [unreadable]]);
  expect(body.sessions).toMatchObject([{ id: ours, notes: [{ items: [unreadable] }], unreadable: ['insights'] }]);
  expect(body.complete).toBe(true);
});

test('an accounting lists what went to the platform and who was shown what, the newest first, in pages', async () => {
  const { id, key } = await makeKey('people:read');
  await service.call('GET', PATH, { key });
  const plan = { externalTreatmentPlan: 'Auskunftsplan' };
  expect((await service.call('PATCH', `/v1/sessions/${ours}`, { body: plan })).status).toBe(200);
  const all: DisclosureResponse[] = [];
  let cursor = '';
  do {
    const page = await service.call<Page<DisclosureResponse>>('GET', `${PATH}/disclosures?limit=2${cursor}`);
    all.push(...page.body.items);
    cursor = page.body.nextCursor === null ? '' : `&cursor=${page.body.nextCursor}`;
  } while (cursor !== '');
  expect(all.map(({ at }) => at)).toEqual(
    all
      .map(({ at }) => at)
      .sort()
      .reverse(),
  );
  const toPlatform = all.filter(({ recipient }) => recipient === 'platform').map(({ action }) => action);
  expect(toPlatform.sort()).toEqual(['checkUser', 'createClient', 'createSession', 'updateSession']);
  expect(all).toContainEqual(
    expect.objectContaining({ action: 'updateSession', outcome: 'answered', sessions: [ours] }),
  );
  expect(all).toContainEqual(
    expect.objectContaining({ recipient: 'ehr', action: 'GET /v1/clients/:externalId', keyId: id }),
  );
  expect(found(JSON.stringify(all), [...OURS, ...ANOTHERS])).toEqual([]);
});

test('an accounting has what was repeated as one entry, with its first and last date and how often it was', async () => {
  const { id, key } = await makeKey('people:read', 'sessions:read');
  for (let times = 0; times < 5; times++) await service.call('GET', `/v1/sessions/${ours}`, { key });
  await service.call('GET', PATH, { key });
  const disclosures = async (query = '') =>
    (await service.call<Page<DisclosureResponse>>('GET', `${PATH}/disclosures?limit=200${query}`)).body.items;
  const ofKey = async () => (await disclosures()).filter(({ keyId }) => keyId === id);
  expect(await ofKey()).toEqual([
    expect.objectContaining({ action: 'GET /v1/clients/:externalId', count: 1, sessions: [] }),
    expect.objectContaining({ action: 'GET /v1/sessions/:id', count: 5, sessions: [ours], outcome: 'ok' }),
  ]);
  const [one, five] = await ofKey();
  expect([one?.firstAt === one?.at, String(five?.firstAt) < String(five?.at)]).toEqual([true, true]);

  // What is repeated while somebody reads page by page stays where it was.
  const first = await service.call<Page<DisclosureResponse>>('GET', `${PATH}/disclosures?limit=1`);
  await service.call('GET', `/v1/sessions/${ours}`, { key });
  const rest = await disclosures(`&cursor=${first.body.nextCursor}`);
  expect(rest.filter(({ keyId }) => keyId === id)).toContainEqual(expect.objectContaining({ count: 5 }));
  expect(await ofKey()).toContainEqual(expect.objectContaining({ count: 6 }));
});

test('the command line writes an export to a file of its own, and prints an accounting', async () => {
  const file = path.join(folder, 'export.json');
  expect(await notebridge('client', 'export', 'c/1', '--output', file)).toMatchObject({ code: 0 });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const written = readFileSync(file, 'utf8');
  expect((JSON.parse(written) as Export).complete).toBe(true);
  expect(found(written, OURS)).toEqual(OURS);
  expect((await notebridge('client', 'export', 'c/1', '--output', file)).code).toBe(1);
  expect(readFileSync(file, 'utf8')).toBe(written);
  const printed = await notebridge('client', 'export', 'c/1');
  expect((JSON.parse(printed.output) as Export).client.externalId).toBe('c/1');
  expect(await notebridge('client', 'export', 'nobody')).toMatchObject({
    code: 1,
    output: 'No client with this external id is known; check the id.\n',
  });
  const { code, output } = await notebridge('client', 'accounting', 'c/1');
  expect([code, output]).toEqual([0, expect.stringMatching(/ 1 +– +platform +– +createClient +created/)]);
});

describe('whose users of the platform were changed in the database', () => {
  const REFUSED = [503, 'urn:notebridge:problem:data-unreadable'];
  const userOf = (client: string) => mirror.usersOf(client)[0]?.userId ?? '';
  const refused = async (method: string, path: string, body?: object, key?: string) => {
    const answer = await service.call<{ type: string }>(method, path, { body, key });
    expect([method, path, answer.status, answer.body.type]).toEqual([method, path, ...REFUSED]);
  };
  const list = async (query = '') => (await service.call<Page<SessionResponse>>('GET', `/v1/sessions${query}`)).body;
  /** How many values of a column did not open so far. */
  const counted = async (column: string) => {
    const answer = await fetch(`${service.url}/metrics`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } });
    const count = new RegExp(`unreadable_values_total\\{column="${column}",cause="damaged"\\} (\\d+)`);
    return Number(count.exec(await answer.text())?.[1] ?? 0);
  };
  /** Sets the users of the two clients, past the rule that a user is one person's. */
  const link = async (ofOurs: string, ofAnothers: string) => {
    await mirror.sql(`UPDATE people SET platform_user_id = NULL WHERE kind = 'client'`);
    const one = 'UPDATE people SET platform_user_id = $2 WHERE external_id = $1';
    await mirror.sql(one, ['c/1', ofOurs]);
    await mirror.sql(one, ['c-2', ofAnothers]);
  };
  /** Neither session is shown under anybody, and nothing of its content to anybody. */
  const isUnreadable = async (id: string) => {
    const { id: keyId, key } = await makeKey('sessions:read', 'notes:read');
    const hidden = { id, provider: null, clients: [], clientUserIds: [], date: null };
    const { body } = await service.call<SessionResponse>('GET', `/v1/sessions/${id}`, { key });
    expect(body).toMatchObject({ ...hidden, unreadable: expect.arrayContaining(['clients']) });
    expect((await list()).items).toContainEqual(expect.objectContaining(hidden));
    for (const part of ['notes', 'transcript', 'insights', 'recording-url']) {
      await refused('GET', `/v1/sessions/${id}/${part}`, undefined, key);
    }
    const audited = await service.call<Page<object>>('GET', `/v1/audit?keyId=${keyId}`);
    expect(audited.body.items).toHaveLength(5);
    // Quoted: an identifier of an entry can hold "c-2" by chance.
    expect(found(JSON.stringify(audited.body.items), ['"c/1"', '"c-2"'])).toEqual([]);
  };

  test('two clients whose users are swapped: neither is shown the other’s sessions, nothing is sent, and all holds again once they are back', async () => {
    const [oursUser, anothersUser] = [userOf('c/1'), userOf('c-2')];
    expect(await counted('people.user_link')).toBe(0);
    const { id: keyId, key: writer } = await makeKey('people:write', 'sessions:write', 'sessions:read');
    await link(anothersUser, oursUser);
    for (const id of [ours, anothers]) await isUnreadable(id);
    for (const client of ['c%2F1', 'c-2']) {
      await refused('GET', `/v1/sessions?client=${client}`);
      await refused('GET', `/v1/clients/${client}/export`);
      await refused('GET', `/v1/clients/${client}/disclosures`);
    }
    const shown = await service.call<object>('GET', PATH);
    expect(shown.body).toMatchObject({ firstName: 'Auskunfta', platformUserId: null, unreadable: ['platformUserId'] });
    expect((await service.call<Page<object>>('GET', '/v1/clients')).status).toBe(200);
    expect(await counted('people.user_link')).toBeGreaterThan(10);
    expect((await partIs(service, 'vault', 'degraded')).reason).toMatch(/do not open/);
    const [{ id }] = (await mirror.sql(`SELECT id FROM people WHERE external_id = 'c/1'`)) as [{ id: string }];
    await until('the log names the row', () =>
      service.output().includes(`"table":"people","column":"user_link","row":"${id}"`),
    );

    // What would be sent about the one would be about the other.
    const before = mirror.arrivals('createSession');
    const request = { provider: 'p-1', client: 'c/1', noteTemplateIds: [SOAP], input: { text: { text: 'Fremdtext' } } };
    await refused('POST', '/v1/sessions', request, writer);
    await refused('PATCH', `/v1/sessions/${ours}`, { externalTreatmentPlan: 'Fremdplan' }, writer);
    expect(mirror.arrivals('createSession')).toBe(before);
    await service.call('DELETE', '/v1/clients/c-2', { key: writer });
    await until('its deletion was refused', async () => {
      const { sync } = (await service.call('GET', '/v1/clients/c-2')).body;
      return sync.error?.code === 'unreadable' && sync.state === 'deleting';
    });
    expect(mirror.arrivals('deleteUser')).toBe(0);
    const audited = await service.call<Page<object>>('GET', `/v1/audit?keyId=${keyId}`);
    expect(JSON.stringify(audited.body.items)).not.toContain(anothersUser);

    await link(oursUser, anothersUser);
    await until('it is deleted', async () => {
      // Again and again: a turn that is under way puts it off once more.
      await mirror.sql(`UPDATE people SET due_at = now(), retry_at = NULL WHERE state = 'deleting'`);
      return (await service.call('GET', '/v1/clients/c-2')).body.sync.state === 'deleted';
    });
    expect([userOf('c/1'), userOf('c-2')]).toEqual([oursUser, '']);
    expect(await list('?client=c-2')).toMatchObject({ items: [{ id: anothers, clients: ['c-2'] }] });
    expect(await list('?client=c%2F1')).toMatchObject({ items: [{ id: ours, clients: ['c/1'] }] });
    await partIs(service, 'vault', 'ok');
  });

  test('nor is the session of a client that was deleted shown under another, nor by a link whose seal was taken away', async () => {
    const give = (client: string) =>
      mirror.sql(
        `UPDATE platform_users SET person_id = (SELECT id FROM people WHERE external_id = $1) WHERE person_id IS NOT NULL`,
        [client],
      );
    await give('c/1');
    await isUnreadable(anothers);
    await refused('GET', '/v1/sessions?client=c%2F1');
    expect(await list('?client=c-2')).toMatchObject({ items: [] });
    expect(await counted('platform_users.person_link')).toBeGreaterThan(1);
    await give('c-2');
    const [{ user_link: sealed }] = (await mirror.sql(`SELECT user_link FROM people WHERE external_id = 'c/1'`)) as [
      { user_link: Buffer },
    ];
    await mirror.sql(`UPDATE people SET user_link = NULL WHERE external_id = 'c/1'`);
    await isUnreadable(ours);
    await mirror.sql(`UPDATE people SET user_link = $1 WHERE external_id = 'c/1'`, [sealed]);
    // In the order of their last change, which a late event may turn.
    expect((await list()).items.flatMap(({ clients }) => clients).sort()).toEqual(['c-2', 'c/1']);
    await partIs(service, 'vault', 'ok');
  });
});
