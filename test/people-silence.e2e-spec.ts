import { until } from '../harness/until.js';
import type { PersonResponse } from '../src/people/api/person-view.js';
import { partIs } from './support/health.js';
import { useSharedService } from './support/shared-service.js';

// An answer that a stalled machine makes late is none that is lost.
const shared = useSharedService({ env: { PLATFORM_TIMEOUT_SECONDS: '60' } });
const put = async (path: string, body: object, wait = 60): Promise<PersonResponse> =>
  (await shared.service.call('PUT', `/v1/${path}`, { body, wait })).body;
const get = async (path: string, wait = 0): Promise<PersonResponse> =>
  (await shared.service.call('GET', `/v1/${path}`, { wait })).body;
const verdict = ({ sync }: PersonResponse) => [sync.state, sync.error?.code ?? null];
/** What becomes of somebody in the end: `Prefer: wait` lasts a minute at most. */
const settled = (path: string) =>
  until(`${path} is settled`, async () => {
    const person = await get(path, 60);
    return ['synced', 'needs-review', 'failed'].includes(person.sync.state) ? verdict(person) : undefined;
  });
async function putSettled(path: string, body: object) {
  await put(path, body);
  return settled(path);
}
const provider = (id: string) => ({ email: `${id}@example.org`, firstName: 'Pia', lastName: 'Ruiz' });
const client = { firstName: 'Noor', lastName: 'Haddad', providers: ['home'] };
const operations = () => shared.mirror.simulator.state.arrivals.list().map(({ operation }) => operation);

beforeEach(() => put('providers/home', provider('home')));
afterEach(() => shared.mirror.release());

test('after three unknown outcomes in a row, creates without an email wait until some call is answered', async () => {
  shared.mirror.trouble({ operation: '*', kind: 'status', status: 503, count: null });
  for (const id of ['lost-1', 'lost-2', 'lost-3']) {
    expect(await putSettled(`clients/${id}`, client)).toEqual(['needs-review', 'create-unknown']);
  }
  const waiting = Array.from({ length: 12 }, (_, at) => `clients/waits-${at}`);
  const before = shared.mirror.arrivals('createClient');
  for (const path of waiting) await put(path, client, 0);
  await until(
    'it was asked whether the platform answers',
    () => shared.mirror.arrivals('checkUser') > 1 + waiting.length,
  );
  expect(shared.mirror.arrivals('createClient')).toBe(before);
  for (const path of waiting) expect((await get(path)).sync.state).toBe('pending');

  shared.mirror.release();
  for (const path of waiting) expect(await settled(path)).toEqual(['synced', null]);
});

test('when the creates alone get no answer, those without an email wait for one of them that does', async () => {
  shared.mirror.trouble({ operation: 'createClient', kind: 'status', status: 503, count: null });
  for (const id of ['lost-1', 'lost-2', 'lost-3']) {
    expect(await putSettled(`clients/${id}`, client)).toEqual(['needs-review', 'create-unknown']);
  }
  const probeIn = (seconds: number) =>
    shared.mirror.sql(`UPDATE circuits SET probe_at = clock_timestamp() + $1 * interval '1 second'`, [seconds]);
  await probeIn(3_600);
  const waiting = Array.from({ length: 12 }, (_, at) => `clients/waits-${at}`);
  for (const path of waiting) await put(path, client, 0);
  for (const path of waiting) {
    await until('it waits for its create', async () => (await get(path)).sync.step === 'createClient');
  }
  expect(shared.mirror.arrivals('createClient')).toBe(3);
  const { reason } = await partIs(shared.service, 'people', 'degraded');
  expect(reason).toContain('no readable answer to createClient');

  shared.mirror.release();
  await probeIn(0);
  for (const path of waiting) expect(await settled(path)).toEqual(['synced', null]);
});

test('one client whose creates get no answer makes nobody else wait', async () => {
  const match = { partnerUserId: 'poison' };
  shared.mirror.trouble({ operation: 'createClient', kind: 'status', status: 503, count: null, match });
  await put('clients/poison', { ...client, email: 'poison@example.org' }, 0);
  for (const lost of [1, 2, 3]) {
    await until(`create ${lost} is lost`, async () => {
      await shared.mirror.sql(
        `UPDATE people SET attempt_look_up_at = now(), retry_at = NULL, due_at = now()
         WHERE external_id = 'poison' AND lease_owner IS NULL AND lost_creates < 3`,
      );
      return shared.mirror.arrivals('createClient') >= lost;
    });
  }
  expect(await shared.mirror.sql('SELECT operation FROM circuits WHERE opened_at IS NOT NULL')).toEqual([]);
});

test('a create that is lost again and again is made ever more rarely', async () => {
  shared.mirror.trouble({ operation: 'createProvider', kind: 'status', status: 503, count: null });
  await put('providers/never', provider('never'), 0);
  const row = () =>
    shared.mirror.sql<{ lost: number; waits: number | null }>(
      `SELECT lost_creates AS lost, extract(epoch FROM retry_at - checked_absent_at)::float8 AS waits
       FROM people WHERE external_id = 'never' AND attempt_call_id IS NULL`,
    );
  const hurry = (condition: string, more = '') =>
    shared.mirror.sql(
      `UPDATE people SET ${more} retry_at = NULL, due_at = now()
       WHERE external_id = 'never' AND attempt_call_id IS NULL AND lease_owner IS NULL AND ${condition} RETURNING id`,
    );
  for (let last = 0; last < 3; ) {
    // The next is made by itself after seconds: who looks late sees a later one.
    const { lost, waits } = await until('one more create is lost', async () => {
      const [person] = await row();
      return person && person.lost > last && person.waits !== null ? person : undefined;
    });
    // Doubled each time from two seconds on, a quarter more or less.
    expect(waits).toBeGreaterThanOrEqual(0.75 * 2 ** lost);
    expect(waits).toBeLessThanOrEqual(1.25 * 2 ** lost);
    last = lost;
    if (last < 3) await hurry(`lost_creates = ${last}`);
  }
  await until('it waits for one more create', async () => (await hurry('TRUE', 'lost_creates = 13,')).length > 0);
  expect(await settled('providers/never')).toEqual(['needs-review', 'create-unanswered']);
  shared.mirror.release();
  const answer = await shared.service.call('POST', '/v1/providers/never/resolve', {
    body: { action: 'retry' },
    wait: 60,
  });
  expect(answer.body.sync.state).toBe('synced');
});

test('a 409 to a create after a check that found nobody is followed by one more check', async () => {
  shared.mirror.trouble({ operation: 'createProvider', kind: 'status', status: 409 });
  const begun = operations().length;
  expect(await putSettled('providers/late', provider('late'))).toEqual(['synced', null]);
  expect(operations().slice(begun)).toEqual(['checkUser', 'createProvider', 'checkUser', 'createProvider']);

  shared.mirror.trouble({ operation: 'createProvider', kind: 'status', status: 409, count: null });
  expect(await putSettled('providers/refused', provider('refused'))).toEqual(['failed', 'rejected']);
  expect(operations().slice(begun + 4)).toEqual(['checkUser', 'createProvider', 'checkUser', 'createProvider']);
});
