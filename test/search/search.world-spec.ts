import type { NewApiKeyResponse } from '../../src/access/keys/api-keys.dto.js';
import type { FindResponse } from '../../src/search/search.dto.js';
import { importsIn } from '../imports/imports.js';
import { type Problem, useArrivingSessions } from '../sessions/arriving-sessions.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld({ platform: { processingEvents: false } });
const sessions = useArrivingSessions(world);
const imports = importsIn(world);

const find = (text: string, key?: string) =>
  world.call<FindResponse & Problem>('POST', '/v1/search', { body: { text }, ...(key !== undefined && { key }) });
/** The results of a search: the kind, the id and the match of each. */
const found = async (text: string, key?: string) =>
  (await find(text, key)).body.items.map(({ kind, id, matched }) => [kind, id, matched]);
const keyWith = async (scopes: string[]) =>
  (await world.call<NewApiKeyResponse>('POST', '/v1/api-keys', { body: { name: 'k', scopes } })).body.key;
const idOf = async (rows: string) => String((await world.sql<{ id: unknown }>(`SELECT id FROM ${rows}`))[0]?.id);

describe('a search', () => {
  test('finds a person by external id, former id, email and platform user', async () => {
    await world.call('POST', '/v1/clients/c-1/rename', { body: { externalId: 'c-new' } });
    const profile = { firstName: 'Noor', lastName: 'Haddad', providers: ['p-1'] };
    await world.call('PUT', '/v1/clients/c-mail', { body: { ...profile, email: 'noor@example.org' } });
    await world.settle();
    expect(await found(' c-new ')).toEqual([['client', 'c-new', 'id']]);
    expect(await found('c-1')).toEqual([['client', 'c-new', 'former-id']]);
    expect(await found('NOOR@example.org')).toEqual([['client', 'c-mail', 'email']]);
    expect(await found(sessions.client)).toEqual([['client', 'c-new', 'platform-id']]);
    expect(await found('p-1')).toEqual([['provider', 'p-1', 'id']]);
  });

  test('finds a session by both of its ids and its appointment, newest first', async () => {
    const fetched = async () => {
      const { sessionId } = sessions.newSession({ partnerAppointmentId: 'A-1' });
      await world.settle();
      return [sessionId, (await sessions.show(sessionId)).id] as const;
    };
    const [platformId, one] = await fetched();
    const [, other] = await fetched();
    expect(await found(one)).toEqual([['session', one, 'id']]);
    expect(await found(platformId)).toEqual([['session', one, 'platform-id']]);
    expect(await found('A-1')).toEqual([
      ['session', other, 'appointment'],
      ['session', one, 'appointment'],
    ]);
  });

  test('finds an import, a delivery and a compliance job', async () => {
    const content = 'externalId,email,firstName,lastName\nP-9,p9@example.org,A,B';
    const { id } = await imports.imported('kind=providers', [{ name: 'p.csv', type: 'text/csv', content }]);
    expect(await found(id.toUpperCase())).toEqual([['import', id, 'id']]);
    sessions.newSession();
    await world.settle();
    const delivery = await idOf('webhook_deliveries ORDER BY id LIMIT 1');
    expect(await found(delivery)).toEqual([['delivery', delivery, 'id']]);
    const job = '0192aaaa-0000-7000-8000-000000000000';
    await world.sql(`INSERT INTO compliance_jobs (id, job_id, state) VALUES ($1, 'job-1', 'Completed')`, [job]);
    expect(await found(job)).toEqual([['compliance-job', job, 'id']]);
    expect(await found('job-1')).toEqual([['compliance-job', job, 'platform-id']]);
  });

  test('finds nothing by a part of an id, by a name, or in what the key may not see', async () => {
    for (const text of ['c', 'c-', 'Noor', '%', "' OR true --"]) expect([text, await found(text)]).toEqual([text, []]);
    expect(await found('c-1', await keyWith(['people:read']))).toHaveLength(1);
    expect(await found('c-1', await keyWith(['sessions:read', 'webhooks', 'imports', 'compliance']))).toEqual([]);
  });

  test('shows at most ten results, and whether more match', async () => {
    for (let n = 0; n < 11; n += 1) {
      const id = `0192aaaa-0000-7000-8000-0000000000${n + 10}`;
      await world.sql(`INSERT INTO sessions (id, state, partner_appointment_id) VALUES ($1, 'Done', 'A-9')`, [id]);
    }
    const { body } = await find('A-9');
    expect([body.items.length, body.more]).toEqual([10, true]);
    expect((await find('c-1')).body.more).toBe(false);
  });

  test.each([
    ['an empty text', ' '],
    ['control characters', 'a\u0000b'],
    ['300 characters', 'x'.repeat(300)],
  ])('rejects %s', async (_, text) => {
    expect((await find(text)).body).toMatchObject({ status: 400, type: 'urn:notebridge:problem:validation' });
  });
});
