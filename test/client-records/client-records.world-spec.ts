import pg from 'pg';
import { planOf } from '../../harness/query-plans.js';
import { ADMIN_KEY } from '../../harness/world/settings.js';
import type { FaultKind } from '../../simulator/gate/fault-rule.js';
import { StreamedAnswers } from '../../src/access/guard/streamed-answers.js';
import type { AuditResponse } from '../../src/audit/audit.dto.js';
import type { DisclosureResponse } from '../../src/client-records/client-records.dto.js';
import { BY_INDEX } from '../../src/client-records/disclosures.repository.js';
import type { Page } from '../../src/http/request/page.js';
import type { HealthReport } from '../../src/operations/overview/health-report.js';
import { Retention } from '../../src/operations/retention.js';
import { ClientData, type ClientDataKind } from '../../src/people/store/client-data.js';
import { PlatformClient } from '../../src/platform/clients/platform-client.js';
import { UsersClient } from '../../src/platform/clients/users-client.js';
import { PlatformError } from '../../src/platform/contract/platform-errors.js';
import type { SessionResponse } from '../../src/sessions/model/session-view.js';
import { SEALED_TABLES } from '../../src/vault/sealed-columns.js';
import { statementsOf } from '../support/statements.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';
import { useClientsWithRecords } from './clients-with-records.js';
import { heldAt, NOT_LISTED, PLACES } from './held-of-a-client.js';

const OWN_WORDS = [
  'Auskunfta',
  'Voriga',
  'auskunft@example.org',
  'voriga@example.org',
  'Auskunftstext',
  'Auskunftsplan',
];
const OTHER_WORDS = ['Fremda', 'fremda@example.org', 'Fremdtext', 'Fremdplan'];
const PATH = '/v1/clients/c%2F1';

type ListedTables = ClientDataKind['tables'];

interface Export {
  client: { externalId: string };
  calls: { operation: string }[];
  deliveries: { id: string; state: string }[];
  sessions: { id: string; sessionId: string }[];
  importRows: object[];
  events: { type: string; subject: string }[];
  complete: boolean;
}

const world = useWorld();
const { put, newSession, upload } = useClientsWithRecords(world);
/** Internal ids of the two sessions. */
let ours: string;
let otherSession: string;

beforeEach(async () => {
  await put('c/1', 'Voriga', 'Adler', 'voriga@example.org');
  await put('c/1', 'Auskunfta', 'Adler', 'auskunft@example.org');
  await put('c-2', 'Fremda', 'Adler', 'fremda@example.org');
  ours = await newSession('c/1', 'Auskunftstext', 'Auskunftsplan');
  otherSession = await newSession('c-2', 'Fremdtext', 'Fremdplan');
});

const found = (text: string, words: string[]) => words.filter((word) => text.includes(word));
const exported = async (key?: string) => (await world.call<Export>('GET', `${PATH}/export`, { key })).body;
const entriesOf = async (keyId: string) =>
  (await world.call<Page<AuditResponse>>('GET', `/v1/audit?keyId=${keyId}`)).body.items;
const makeKey = async (...scopes: string[]) =>
  (await world.call<{ id: string; key: string }>('POST', '/v1/api-keys', { body: { name: 'a key', scopes } })).body;
const userOf = (client: string) => world.platform.usersOf(client)[0]?.userId ?? '';

describe('the list of a client’s data', () => {
  const tables = () => Object.assign({}, ...world.get(ClientData).kinds.map((kind) => kind.tables)) as ListedTables;

  test('has every table of the schema, except those with a reason', async () => {
    const names = await world.sql<{ name: string }>(
      `SELECT relname AS name FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
         AND relname NOT LIKE '\\_prisma%'`,
    );
    const listed = Object.keys(tables());
    expect(listed.sort()).toEqual(Object.keys(PLACES).sort());
    expect([...listed, ...Object.keys(NOT_LISTED)].sort()).toEqual(names.map(({ name }) => name).sort());
  });

  test('states for each column with bytes or JSON whether an erasure empties it, or why not', async () => {
    const columns = await world.sql<{ table: string; column: string }>(
      `SELECT table_name AS table, column_name AS column FROM information_schema.columns
       WHERE table_schema = current_schema() AND data_type IN ('bytea', 'jsonb', 'json') AND table_name = ANY ($1)`,
      [Object.keys(tables())],
    );
    const declared = Object.entries(tables()).flatMap(([table, of]) => Object.keys(of).map((one) => `${table}.${one}`));
    expect(declared.sort()).toEqual(columns.map(({ table, column }) => `${table}.${column}`).sort());
    for (const [table, { columns: sealed }] of Object.entries(SEALED_TABLES))
      if (!(table in NOT_LISTED))
        expect(Object.keys(tables()[table] ?? {})).toEqual(expect.arrayContaining(Object.keys(sealed)));
  });
});

describe('an export', () => {
  test('contains only its client’s data, and its audit entry names each session', async () => {
    await upload('', 'c/1,,Doppelta,Adler,nobody', 'c-3,,Cy,Ng,p-1');
    await world.settle();
    const { id, key } = await makeKey('people:read', 'sessions:read', 'notes:read');
    const body = await exported(key);
    expect(found(JSON.stringify(body), [...OWN_WORDS, ...OTHER_WORDS])).toEqual(OWN_WORDS);
    expect(body).toMatchObject({
      client: { externalId: 'c/1', email: 'auskunft@example.org', givenToPlatform: { firstName: 'Voriga' } },
      sessions: [{ clients: ['c/1'], notes: [{ items: [{ revision: 1 }] }], request: { state: 'Settled' } }],
      importRows: [
        {
          ...{ file: 'clients.csv', outcome: 'rejected', code: 'unknown-provider' },
          cells: { externalId: 'c/1', firstName: 'Doppelta', lastName: 'Adler', providers: 'nobody' },
        },
      ],
      complete: true,
    });
    expect(body.calls.map(({ operation }) => operation)).toEqual(expect.arrayContaining(['checkUser', 'createClient']));
    const types = body.events.map(({ type }) => type);
    expect(types).toEqual(expect.arrayContaining(['person.synced', 'session.notes-ready']));
    const session = { session: [ours], 'platform-session': [body.sessions[0]?.sessionId] };
    const subjects = { client: ['c/1'], provider: ['p-1'], ...session };
    expect(await entriesOf(id)).toMatchObject([{ outcome: 'ok', subjects }]);
    expect((await world.call('GET', '/v1/clients/nobody/export')).status).toBe(404);
  });

  test('contains its client’s data of each table, and the events of each session id', async () => {
    const requested = 'f0f0f0f0-0000-4000-8000-000000000000';
    await upload('', 'c/1,,Doppelta,Adler,nobody');
    // An event had named the session before the answer to its request.
    await world.sql(`INSERT INTO sessions (id, state, alias_of) VALUES ($1, 'Merged', $2)`, [requested, ours]);
    const created = `INSERT INTO feed_events (type, subject, data) VALUES ('session.created', $1, '{}')`;
    await world.sql(created, [`sessions/${requested}`]);
    await world.sql(`INSERT INTO former_ids (kind, external_id, person_id)
      SELECT 'client', 'c/0', id FROM people WHERE external_id = 'c/1'`);
    for (const userId of [userOf('c/1'), 'f1f1f1f1-0000-4000-8000-000000000000']) {
      const payload = { userId, externalUserId: 'c/1', role: 'Client' };
      world.platform.simulator.state.deliveries.sendRaw(JSON.stringify({ eventType: 'USER_CREATED', payload }));
    }
    await world.settle();
    await world.sql(`UPDATE webhook_deliveries SET state = 'not-understood'`);
    const body = await exported();
    expect([body.deliveries[0]?.state, typeof body.deliveries[0]?.id]).toEqual(['not-understood', 'string']);
    const missing = Object.entries(PLACES).filter(([, place]) => heldAt(body, place.split('.')).length === 0);
    expect(missing).toEqual([]);
    const timeline = heldAt(body, ['sessions', 'timeline']) as { kind: string }[];
    expect([...new Set(timeline.map(({ kind }) => kind))].sort()).toEqual(['event', 'notes', 'request']);
    const subjects = new Set(body.events.map(({ subject }) => subject.split('/')[0]));
    expect([...subjects].sort()).toEqual(['clients', 'processing-sessions', 'sessions', 'webhook-deliveries']);
    for (const id of [requested, ours])
      expect(body.events).toContainEqual(expect.objectContaining({ subject: `sessions/${id}` }));
    expect(heldAt(body, ['sessions', 'formerIds'])).toEqual([requested]);
  });

  test('is cut off when its key is revoked', async () => {
    const { id, key } = await makeKey('people:read', 'sessions:read', 'notes:read');
    const lock = new pg.Client({ connectionString: world.database.url });
    await lock.connect();
    await lock.query('BEGIN; LOCK TABLE session_documents');
    const answer = await fetch(`${world.url}${PATH}/export`, { headers: { authorization: `Bearer ${key}` } });
    const text = answer.text();
    const revoking = { method: 'DELETE', headers: { authorization: `Bearer ${ADMIN_KEY}` } };
    expect((await fetch(`${world.url}/v1/api-keys/${id}`, revoking)).status).toBe(204);
    await world.get(StreamedAnswers).cutEnded();
    await lock.query('ROLLBACK');
    await lock.end();
    await expect(text).rejects.toThrow('terminated');
    expect(await entriesOf(id)).toMatchObject([{ outcome: 'ok', subjects: { session: [expect.any(String)] } }]);
  });

  test('shows a note that was changed in the database as unreadable, with all other data', async () => {
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
  /** Lists the disclosures of a client to the platform. */
  const sentOf = async (id = 'c%2F1') => {
    const path = `/v1/clients/${id}/disclosures?limit=200`;
    const { items } = (await world.call<Page<DisclosureResponse>>('GET', path)).body;
    const sent = items.filter(({ recipient }) => recipient === 'platform');
    return sent.map(({ action, outcome, count, sessions }) => [action, outcome, count, sessions] as const).sort();
  };

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
    const update = { action: 'updateSession', outcome: 'sent', count: 1, sessions: [ours] };
    expect(all).toContainEqual(expect.objectContaining(update));
    const reading = { recipient: 'ehr', action: 'GET /v1/clients/:externalId', keyId: id };
    expect(all).toContainEqual(expect.objectContaining(reading));
    expect(found(JSON.stringify(all), [...OWN_WORDS, ...OTHER_WORDS])).toEqual([]);
  });

  test('counts each call that was sent, also without an answer, and none that was not', async () => {
    const update = (fault?: FaultKind) => {
      if (fault) world.platform.injectFault({ operation: 'updateSession', kind: fault });
      return world.call('PATCH', `/v1/sessions/${ours}`, { body: { externalTreatmentPlan: 'Auskunftsplan' } });
    };
    for (const fault of [undefined, 'forbid', 'commit-then-cut'] as const) await update(fault);
    const unreachable = new PlatformError('unreachable', 'updateSession');
    jest.spyOn(world.get(PlatformClient), 'updateSession').mockRejectedValueOnce(unreachable);
    expect((await update()).status).toBe(503);
    await world.call('PATCH', `/v1/sessions/${ours}`, { body: {} }); // it is not sent
    await world.call('PATCH', `/v1/sessions/${otherSession}`, { body: { externalTreatmentPlan: 'Fremdplan' } });
    await world.call('PUT', `/v1/sessions/${ours}/note-templates`, { body: { noteTemplateIds: [SOAP] } });
    jest
      .spyOn(world.get(UsersClient), 'setClientProviders')
      .mockRejectedValueOnce(new PlatformError('unreachable', 'setClientProviders'));
    const second = { email: 'p-2@example.org', firstName: 'Ute', lastName: 'Ruiz' };
    await world.call('PUT', '/v1/providers/p-2', { body: second, wait: 60 });
    await world.call('PUT', `${PATH}/providers`, { body: { providers: ['p-1', 'p-2'] } });
    await world.settle();
    await world.advance('15 s');
    await world.settle();
    const calls = (await sentOf()).filter(([action]) => action !== 'checkUser');
    expect(calls).toEqual([
      ['createClient', 'sent', 1, []],
      ['createSession', 'sent', 1, [ours]],
      ['setClientProviders', 'sent', 1, []],
      ['updateSession', 'sent', 3, [ours]],
      ['updateSessionTemplates', 'sent', 1, [ours]],
    ]);
  });

  test('has a call before its answer, and every call after history was deleted', async () => {
    await world.call('PUT', '/v1/clients/c-new', {
      body: { firstName: 'Neu', lastName: 'Adler', email: 'neu@example.org', providers: ['p-1'] },
    });
    const creating = await world.untilHeld({ operation: 'createClient' });
    const creates = async () => (await sentOf('c-new')).filter(([action]) => action === 'createClient');
    expect(await creates()).toEqual([['createClient', 'sent', 1, []]]);
    await creating.answer();
    const before = await sentOf();
    await world.advance('100 d');
    await world.get(Retention).dropOld();
    expect(await world.sql('SELECT FROM platform_calls')).toEqual([]);
    expect(before.map(([action]) => action)).toEqual(['checkUser', 'createClient', 'createSession']);
    expect(await sentOf()).toEqual(before);
  });

  test('marks disclosures that an accounting for the individual may omit', async () => {
    const { id, key } = await makeKey('people:read');
    for (const purpose of ['TREAT', 'PATRQT', 'HLEGAL', 'CASE-7', undefined])
      await world.call('GET', PATH, { key, headers: purpose === undefined ? {} : { 'Notebridge-Purpose': purpose } });
    const { items } = await disclosures('limit=200');
    const ofKey = items.filter(({ keyId }) => keyId === id).map(({ purpose, excluded }) => [purpose, excluded]);
    const tpo = 'treatment-payment-operations';
    expect(new Map(ofKey as [string | null, string | null][])).toEqual(
      new Map([
        ['TREAT', tpo],
        ['PATRQT', 'individual'],
        ...['HLEGAL', 'CASE-7', null].map((purpose): [string | null, null] => [purpose, null]),
      ] as [string | null, string | null][]),
    );
    const toPlatform = items.filter(({ recipient }) => recipient === 'platform');
    expect(new Set(toPlatform.map(({ excluded }) => excluded))).toEqual(new Set([tpo]));
  });

  test('has a list that may have shown the client, by a former id too, as uncertain', async () => {
    await upload('', ...Array.from({ length: 55 }, (_, n) => `d-${n},d${n}@example.org,Di,Ng,p-1`));
    await world.settle();
    const { id, key } = await makeKey('people:read');
    for (let times = 0; times < 2; times++) await world.call('GET', '/v1/clients?limit=200', { key });
    await world.call('GET', PATH, { key });
    await put('e-later', 'Lara', 'Adler', 'lara@example.org');
    await world.call('POST', `${PATH}/rename`, { body: { externalId: 'a-1' } });
    const ofKey = async (client: string) => {
      const path = `/v1/clients/${client}/disclosures?limit=200`;
      const { items } = (await world.call<Page<DisclosureResponse>>('GET', path)).body;
      return items
        .filter(({ keyId }) => keyId === id)
        .map(({ action, count, isCertain }) => [action, count, isCertain]);
    };
    const list = ['GET /v1/clients', 2, false];
    expect(await ofKey('a-1')).toEqual([['GET /v1/clients/:externalId', 1, true], list]);
    expect(await ofKey('d-7')).toEqual([list]);
    expect(await ofKey('e-later')).toEqual([]);
  });

  test('has a list that may have shown a session of the client as uncertain', async () => {
    await world.sql(
      `WITH entry AS (INSERT INTO audit_entries (uid, at, mac, key_id, key_name, action, outcome)
         VALUES (gen_random_uuid(), now(), '', 'k', 'k', 'GET /v1/events', 'ok') RETURNING id)
       INSERT INTO audit_ranges (entry, kind, count, first, last) SELECT id, 'session', 60, '0', 'g' FROM entry`,
    );
    const entry = { action: 'GET /v1/events', isCertain: false, sessions: [] };
    expect((await disclosures('limit=200')).items.filter(({ keyId }) => keyId === 'k')).toMatchObject([entry]);
  });

  test('reads only the entries of its client and of its sessions', async () => {
    await world.sql(
      `WITH entry AS (INSERT INTO audit_entries (uid, at, mac, key_id, key_name, action, outcome, request_id)
         SELECT gen_random_uuid(), now(), '', 'k', 'k', 'PATCH /v1/sessions/:id', 'begun', n FROM generate_series(1, 20000) AS n RETURNING id),
       list AS (INSERT INTO audit_ranges (entry, kind, count, first, last) SELECT id, 'client', 60, 'd', 'e' FROM entry)
       INSERT INTO audit_subjects (entry, kind, subject)
         SELECT id, kind, gen_random_uuid() FROM entry, unnest(ARRAY['session', 'client']) AS kind`,
    );
    const large = ['audit_entries', 'audit_subjects'];
    const accounting = await statementsOf(['disclosed'], () => disclosures('limit=10'));
    const connection = await world.database.pool.connect();
    for (const known of ['no statistics', 'statistics']) {
      if (known === 'statistics') await world.sql('ANALYZE audit_entries, audit_subjects, audit_ranges');
      for (const statement of accounting) {
        await connection.query(`BEGIN; ${BY_INDEX.sql}`);
        const { rowsRead } = await planOf(connection, statement, { large, execute: true });
        await connection.query(`BEGIN; ${BY_INDEX.sql}`);
        const { fullReads } = await planOf(connection, statement, { large: [...large, 'audit_ranges'] });
        expect([known, fullReads, rowsRead < 200]).toEqual([known, [], true]);
      }
    }
    connection.release();
    expect(accounting).toHaveLength(1);
  });

  test('groups repeats into one entry with count and dates, which stays in place while paging', async () => {
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

describe('a session', () => {
  const list = async (query = '') =>
    (await world.call<Page<SessionResponse>>('GET', `/v1/sessions${query}`)).body.items;

  test('with changed facts in the database shows its people and names its unreadable fields', async () => {
    await world.sql(`UPDATE sessions SET facts = set_byte(facts, 40, get_byte(facts, 40) # 1) WHERE id = $1`, [ours]);
    const shown = { id: ours, clients: ['c/1'], date: null, unreadable: expect.arrayContaining(['date', 'error']) };
    expect((await world.call('GET', `/v1/sessions/${ours}`)).body).toMatchObject(shown);
    expect(await list('?client=c%2F1')).toMatchObject([shown]);
    expect((await world.call('GET', `/v1/sessions/${ours}/notes`)).status).toBe(200);
    const { vault } = (await world.call<HealthReport>('GET', '/health/ready')).body.checks;
    expect(vault).toMatchObject({ status: 'degraded', reason: expect.stringMatching(/cannot be decrypted/) });
  });

  test('keeps its client after the client was deleted', async () => {
    expect((await world.call('DELETE', '/v1/clients/c-2', { wait: 60 })).status).toBe(200);
    expect(await list('?client=c-2')).toMatchObject([{ id: otherSession, clients: ['c-2'] }]);
  });
});
