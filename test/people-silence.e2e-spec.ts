import { until } from '../harness/until.js';
import type { PersonResponse } from '../src/people/api/person-view.js';
import { partIs } from './support/health.js';
import { useSharedService } from './support/shared-service.js';

const shared = useSharedService();
const put = async (path: string, body: object, wait = 60): Promise<PersonResponse> =>
  (await shared.service.call('PUT', `/v1/${path}`, { body, wait })).body;
const get = async (path: string, wait = 0): Promise<PersonResponse> =>
  (await shared.service.call('GET', `/v1/${path}`, { wait })).body;
const verdict = ({ sync }: PersonResponse) => [sync.state, sync.error?.code ?? null];
const provider = (id: string) => ({ email: `${id}@example.org`, firstName: 'Pia', lastName: 'Ruiz' });
const client = { firstName: 'Noor', lastName: 'Haddad', providers: ['home'] };
const operations = () => shared.mirror.simulator.state.arrivals.list().map(({ operation }) => operation);

beforeEach(() => put('providers/home', provider('home')));
afterEach(() => shared.mirror.release());

test('after three unknown outcomes in a row, creates without an email wait until some call is answered', async () => {
  shared.mirror.trouble({ operation: '*', kind: 'status', status: 503, count: null });
  for (const id of ['lost-1', 'lost-2', 'lost-3']) {
    expect(verdict(await put(`clients/${id}`, client))).toEqual(['needs-review', 'create-unknown']);
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
  for (const path of waiting) expect(verdict(await get(path, 60))).toEqual(['synced', null]);
});

test('when the creates alone get no answer, those without an email wait for one of them that does', async () => {
  shared.mirror.trouble({ operation: 'createClient', kind: 'status', status: 503, count: null });
  for (const id of ['lost-1', 'lost-2', 'lost-3']) {
    expect(verdict(await put(`clients/${id}`, client))).toEqual(['needs-review', 'create-unknown']);
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
  for (const path of waiting) expect(verdict(await get(path, 60))).toEqual(['synced', null]);
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
  for (const lost of [1, 2, 3]) {
    const seen = await until(`create ${lost} is lost`, async () => {
      const [person] = await row();
      return person?.lost === lost && person.waits !== null ? person : undefined;
    });
    // Doubled each time from two seconds on, a quarter more or less.
    expect(seen.waits).toBeGreaterThanOrEqual(0.75 * 2 ** lost);
    expect(seen.waits).toBeLessThanOrEqual(1.25 * 2 ** lost);
    await shared.mirror.sql("UPDATE people SET retry_at = NULL, due_at = now() WHERE external_id = 'never'");
  }
  await shared.mirror.sql(
    "UPDATE people SET lost_creates = 13, retry_at = NULL, due_at = now() WHERE external_id = 'never'",
  );
  expect(verdict(await get('providers/never', 60))).toEqual(['needs-review', 'create-unanswered']);
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
  expect(verdict(await put('providers/late', provider('late')))).toEqual(['synced', null]);
  expect(operations().slice(begun)).toEqual(['checkUser', 'createProvider', 'checkUser', 'createProvider']);

  shared.mirror.trouble({ operation: 'createProvider', kind: 'status', status: 409, count: null });
  expect(verdict(await put('providers/refused', provider('refused')))).toEqual(['failed', 'rejected']);
  expect(operations().slice(begun + 4)).toEqual(['checkUser', 'createProvider', 'checkUser', 'createProvider']);
});
