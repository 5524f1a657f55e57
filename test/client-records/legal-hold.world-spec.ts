import { ADMIN_KEY } from '../../harness/world/settings.js';
import type { AuditResponse } from '../../src/audit/audit.dto.js';
import type { Page } from '../../src/http/request/page.js';
import { Retention } from '../../src/operations/retention.js';
import type { PersonResponse } from '../../src/people/api/person-view.js';
import { useWorld } from '../world/use-world.js';
import { useClientsWithRecords } from './clients-with-records.js';
import { openedDumpOf } from './opened-dump.js';

const WORDS = ['Haltia', 'Haltowitz', 'halt@weg.example.org', 'Haltnotiz', 'Haltzeile'];
const OTHERS = ['Freia', 'frei@weg.example.org', 'Freinotiz', 'Freizeile'];
const PATH = '/v1/clients/c-held';
const HOLD = `${PATH}/legal-hold`;

const world = useWorld();
const { put, newSession, upload } = useClientsWithRecords(world);

async function stored(...words: string[]): Promise<string[]> {
  const dump = await openedDumpOf(world.database.url);
  return words.filter((word) => dump.includes(word));
}
/** Retention long after. */
async function pass(days: number): Promise<void> {
  await world.advance(`${days} d`);
  await world.get(Retention).dropOld();
  await world.settle();
}
const person = async (path = PATH) => (await world.call<PersonResponse>('GET', path)).body;
const userOf = (id: string) => world.platform.usersOf(id)[0]?.userId;
const hold = (reason = 'CASE-2026-17') => world.call<PersonResponse>('PUT', HOLD, { body: { reason } });
const release = () => world.call<PersonResponse>('DELETE', HOLD, { headers: { 'Notebridge-Purpose': 'CASE-CLOSED' } });
/** The lists of the held client's export, without the time of the last fetch. */
async function exported(): Promise<Record<string, unknown[]>> {
  const { text } = await world.call('GET', `${PATH}/export`);
  const body = JSON.parse(text, (name, value) =>
    ['fetchedAt', 'nextStep'].includes(name) ? undefined : value,
  ) as Record<string, unknown>;
  const lists = Object.entries(body).filter((entry): entry is [string, unknown[]] => Array.isArray(entry[1]));
  return Object.fromEntries(lists);
}

beforeEach(async () => {
  await world.restart({
    ERASE_NOTES_OF_DELETED_CLIENTS: 'erase',
    NOTES_RETENTION_DAYS: '30',
    TRANSCRIPTS_RETENTION_DAYS: '30',
  });
  await put('c-held', 'Haltia', 'Haltowitz', 'halt@weg.example.org');
  await put('c-free', 'Freia', 'Adler', 'frei@weg.example.org');
  await newSession('c-held', 'Haltnotiz');
  await newSession('c-free', 'Freinotiz');
  await upload('', 'c-held,,Haltzeile,Ng,nobody', 'c-free,,Freizeile,Ng,nobody');
  for (const id of ['c-held', 'c-free']) {
    const payload = { userId: userOf(id), externalUserId: id, role: 'Client' };
    world.platform.simulator.state.deliveries.sendRaw(JSON.stringify({ eventType: 'USER_CREATED', payload }));
  }
  await world.settle();
});

test('neither retention nor a deletion removes data of a held client until the release', async () => {
  expect((await hold()).body.legalHold).toEqual({ since: expect.any(String) });
  const before = await exported();
  for (const [section, items] of Object.entries(before))
    expect([section, items.length > 0]).toEqual([section, section !== 'unlinkedUsers']);

  await pass(400);
  expect(await stored(...WORDS, ...OTHERS)).toEqual([...WORDS, 'Freia', 'frei@weg.example.org']);
  expect(await exported()).toEqual(before);
  const feed = (await world.call<Page<{ subject: string }>>('GET', '/v1/events?limit=200')).body.items;
  expect(feed.length).toBeLessThan((before.events ?? []).length);

  const deleted = await world.call('DELETE', PATH, { wait: 60 });
  const sync = { state: 'deleting', error: { code: 'legal-hold' }, notPushable: [] };
  const shown = { email: null, firstName: '', lastName: '', sync, legalHold: { since: expect.any(String) } };
  expect(deleted).toMatchObject({ status: 202, body: shown });
  await pass(400);
  expect(await person()).toMatchObject(shown);
  expect(userOf('c-held')).not.toBeUndefined();
  expect(await stored(...WORDS)).toEqual(WORDS);
  const { events: _, ...kept } = before;
  expect(await exported()).toMatchObject(kept);

  expect(await release()).toMatchObject({ status: 200, body: { legalHold: null, sync: { state: 'deleting' } } });
  expect(await stored(...WORDS)).toEqual([]);
  await world.settle();
  expect(await person()).toMatchObject({ legalHold: null, sync: { state: 'deleted', error: null } });
  expect(userOf('c-held')).toBeUndefined();
  await pass(100);
  const { calls, events, deliveries } = await exported();
  expect([calls, deliveries]).toEqual([[], []]);
  expect(events).toEqual([]);
});

test('the audit log records who set and released a hold, and why', async () => {
  await hold();
  await hold('TICKET-2');
  await release();
  const { items } = (await world.call<Page<AuditResponse>>('GET', '/v1/audit?client=c-held&limit=3')).body;
  expect(items).toMatchObject([
    { action: 'DELETE /v1/clients/:externalId/legal-hold', outcome: 'released', purpose: 'CASE-CLOSED' },
    { action: 'PUT /v1/clients/:externalId/legal-hold', outcome: 'held for TICKET-2', keyId: items[2]?.keyId },
    { action: 'PUT /v1/clients/:externalId/legal-hold', outcome: 'held for CASE-2026-17', keyName: expect.any(String) },
  ]);
  expect(await world.call('PUT', HOLD, { body: { reason: 'Mr Doe sued' }, key: ADMIN_KEY })).toMatchObject({
    status: 400,
  });
  expect((await world.call('PUT', '/v1/clients/nobody/legal-hold', { body: { reason: 'A' } })).status).toBe(404);
});

test('a hold follows a rename and a merge, and defers deletion by a snapshot', async () => {
  await hold();
  await world.call('POST', `${PATH}/rename`, { body: { externalId: 'c-new' } });
  expect((await person('/v1/clients/c-new')).legalHold).not.toBeNull();
  expect((await world.call('POST', '/v1/clients/c-new/merge', { body: { into: 'c-free' } })).status).toBe(200);
  await world.settle();
  expect((await person('/v1/clients/c-free')).legalHold).not.toBeNull();
  expect(userOf('c-held')).not.toBeUndefined();
  await put('c-other', 'Otta', 'Ng', 'otta@example.org');
  const id = await upload('mode=snapshot&dryRun=true', 'c-other,otta@example.org,Otta,Ng,p-1');
  await world.settle();
  await world.call('POST', `/v1/imports/${id}/apply`, { body: { override: ['deletes'] } });
  await world.settle();
  const rows = (await world.call<Page<object>>('GET', `/v1/imports/${id}/rows?outcome=needsReview`)).body.items;
  expect(rows).toMatchObject([{ externalId: 'c-free', code: 'legal-hold' }]);
  await pass(400);
  // The name and email that the merge replaced are gone; everything else of both is kept.
  const kept = ['Haltzeile', ...OTHERS];
  expect(await stored(...WORDS.slice(0, 3), ...kept)).toEqual(kept);

  const released = await world.call('DELETE', '/v1/clients/c-free/legal-hold');
  expect(released).toMatchObject({ status: 200, body: { legalHold: null } });
  await world.settle();
  expect(await stored(...WORDS, ...OTHERS)).toEqual([]);
  expect([userOf('c-held'), userOf('c-free')]).toEqual([undefined, undefined]);
});

test('a joint session stays while one of its clients is held, also if all are deleted', async () => {
  const clients = [userOf('c-held'), userOf('c-free')];
  await world.sql('UPDATE sessions SET client_user_ids = $1, ever_client_user_ids = $1', [clients]);
  await hold();
  for (const id of ['c-free', 'c-held']) await world.call('DELETE', `/v1/clients/${id}`);
  await world.settle();
  expect(await stored('Haltnotiz', 'Freinotiz')).toEqual(['Haltnotiz', 'Freinotiz']);
  await release();
  expect(await stored('Haltnotiz', 'Freinotiz')).toEqual([]);
});

test('a plan that names a held client is not cancelled', async () => {
  await hold();
  const plan = (line: string) => upload('mode=upsert&dryRun=true', line);
  const [held, free] = [await plan('c-held,,Haltia,Neu,p-1'), await plan('c-free,,Freia,Neu,p-1')];
  await world.settle();
  await pass(400);
  const stateOf = async (id: string) => (await world.call('GET', `/v1/imports/${id}`)).body;
  expect([await stateOf(held), await stateOf(free)]).toMatchObject([{ state: 'planned' }, { state: 'cancelled' }]);
});

test('a row with only the email of a held client outlives another client with that email', async () => {
  await upload('', ',halt@weg.example.org,Haltmail,Ng,p-1');
  await put('c-twin', 'Twin', 'Adler', 'halt@weg.example.org');
  await hold();
  await world.call('DELETE', '/v1/clients/c-twin');
  await world.settle();
  expect(await stored('Haltmail', 'Twin')).toEqual(['Haltmail']);
  await world.call('DELETE', PATH);
  await release();
  expect(await stored('Haltmail')).toEqual([]);
});
