import { peopleOf } from '../people/mirroring.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();
const { begin, beginRemoval, put, remove } = peopleOf(world);

/** Without the header. */
async function exported(): Promise<string[]> {
  const { status, headers, text } = await world.call('GET', '/v1/people.csv');
  expect([status, headers.get('content-type')]).toEqual([200, 'text/csv; charset=utf-8']);
  expect(text).toMatch(/^kind,externalId,platformUserId\r\n([^\r\n]*\r\n)*$/);
  return text.split('\r\n').slice(1, -1);
}

test('GET /v1/people.csv lists providers, then clients, ordered by id, with platform users', async () => {
  expect(await exported()).toEqual([]);
  const { platformUserId: home } = await put('providers/home');
  const { platformUserId: second } = await put('clients/c-2');
  await begin('clients/c-1');
  expect(await exported()).toEqual([`provider,home,${home}`, 'client,c-1,', `client,c-2,${second}`]);
});

test('GET /v1/people.csv omits people who are deleted, or whose deletion was requested', async () => {
  await put('providers/home');
  for (const path of ['clients/deleted', 'clients/deleting', 'clients/kept']) await put(path);
  await remove('clients/deleted');
  await beginRemoval('clients/deleting');
  expect((await exported()).map((line) => line.split(',')[1])).toEqual(['home', 'kept']);
});

test('GET /v1/people.csv quotes ids, and guards formulas', async () => {
  await put('providers/home');
  for (const id of ['=1+1', 'a"b', 'a,b']) await begin(`clients/${encodeURIComponent(id)}`, {});
  expect((await exported()).slice(1)).toEqual([`client,'=1+1,`, 'client,"a""b",', 'client,"a,b",']);
});

test('GET /v1/people.csv contains everyone if there are more people than one query reads', async () => {
  await world.sql(
    `INSERT INTO people (id, kind, external_id)
     SELECT gen_random_uuid(), kind::person_kind, to_char(n, 'FM0000')
     FROM generate_series(1, 2000) n, unnest(ARRAY['provider', 'client']) kind`,
  );
  const ids = Array.from({ length: 2_000 }, (_, n) => String(n + 1).padStart(4, '0'));
  expect(await exported()).toEqual(['provider', 'client'].flatMap((kind) => ids.map((id) => `${kind},${id},`)));
});

test('GET /v1/people.csv needs people:read, and its audit entry is stored before the answer', async () => {
  const { body: key } = await world.call<{ id: string; key: string }>('POST', '/v1/api-keys', {
    body: { name: 'k', scopes: ['people:write'] },
  });
  expect((await world.call('GET', '/v1/people.csv', { key: key.key })).status).toBe(403);
  await exported();
  const entries = await world.sql(`SELECT outcome FROM audit_entries WHERE action = 'GET /v1/people.csv' ORDER BY id`);
  expect(entries.map(({ outcome }) => outcome)).toEqual(['forbidden-scope', 'ok']);
});
