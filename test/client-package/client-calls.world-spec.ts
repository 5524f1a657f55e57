import { createClient, NotebridgeError } from '../../client/notebridge-client.js';
import { ADMIN_KEY } from '../support/app.js';
import { mirroredPeople, SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';
import { type LosingProxy, startLosingProxy } from './losing-proxy.js';

const world = useWorld();
let proxy: LosingProxy;

beforeEach(async () => {
  proxy = await startLosingProxy(world.url);
});
afterEach(() => proxy.close());

const newClient = (options: Partial<Parameters<typeof createClient>[0]> = {}) =>
  createClient({ url: proxy.url, key: ADMIN_KEY, ...options });

const failureOf = async (call: Promise<unknown>): Promise<NotebridgeError> => {
  const error: unknown = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(NotebridgeError);
  return error as NotebridgeError;
};

const provider = { email: 'ada@example.test', firstName: 'Ada', lastName: 'Byron' };
const session = {
  provider: 'p-1',
  client: 'c-1',
  noteTemplateIds: [SOAP],
  partnerAppointmentId: 'appointment-1',
  input: { text: { text: 'Slept better.' } },
};

describe('a call', () => {
  test('gives the data of the answer and its response', async () => {
    const path = { externalId: 'p-1' };
    const { data, response } = await newClient().PUT('/v1/providers/{externalId}', {
      params: { path },
      body: provider,
    });
    expect([response.status, data.externalId, data.sync.state]).toEqual([202, 'p-1', 'pending']);
  });

  test('names the user and the purpose', async () => {
    const client = newClient({ onBehalfOf: 'user-7', purpose: 'treatment' });
    await client.GET('/v1/clients');
    expect(proxy.passed).toEqual([expect.objectContaining({ onBehalfOf: 'user-7', purpose: 'treatment' })]);
  });

  test('throws the problem of an answer, with its field', async () => {
    const body = { ...provider, email: 'not an email' };
    const params = { path: { externalId: 'p-1' } };
    const error = await failureOf(newClient().PUT('/v1/providers/{externalId}', { params, body }));
    expect(error).toMatchObject({ type: 'validation', status: 400, pointer: '/email', retryAfter: undefined });
    expect(error.more.errors).toEqual([{ pointer: '/email', detail: expect.any(String) }]);
    expect(proxy.passed).toHaveLength(1);
  });

  test('throws the members that a problem adds', async () => {
    await mirroredPeople(world);
    const client = newClient();
    const { data } = await world.workWhile(client.POST('/v1/sessions', { body: session }));
    const error = await failureOf(client.POST('/v1/sessions', { body: session }));
    expect([error.type, error.status, error.more.session]).toEqual(['session-exists', 409, data.id]);
  });

  test('throws no-answer with the reason if nothing listens', async () => {
    await proxy.close();
    const error = await failureOf(newClient({ attempts: 1 }).GET('/v1/clients'));
    expect([error.type, error.status, error.message]).toEqual([
      'no-answer',
      0,
      expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+ gave no answer \(ECONNREFUSED\)/),
    ]);
    proxy = await startLosingProxy(world.url);
  });

  test('says that an answer is not JSON', async () => {
    const error = await failureOf(newClient().GET('/metrics', {}));
    expect([error.type, error.status]).toEqual(['unreadable-answer', 200]);
    const { data } = await newClient().GET('/metrics', { parseAs: 'text' });
    expect(data).toContain('notebridge_');
  });

  test('ends with the reason of its signal, also between two attempts', async () => {
    const reason = new Error('enough');
    await expect(newClient().GET('/v1/clients', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(proxy.passed).toEqual([]);
    const stopping = new AbortController();
    proxy.lose(10);
    const reading = newClient().GET('/v1/clients', { signal: stopping.signal });
    await world.eventually('the first answer is lost', () => proxy.lost() === 1);
    stopping.abort(reason);
    await expect(reading).rejects.toBe(reason);
    expect(proxy.passed).toHaveLength(1);
  });
});

describe('a lost answer', () => {
  test.each(['all', 'end'] as const)(
    'leads to a retry with the same Idempotency-Key (%s of it is lost)',
    async (part) => {
      await mirroredPeople(world);
      proxy.lose(2, part);
      const { data, response } = await world.workWhile(newClient().POST('/v1/sessions', { body: session }));
      const keys = proxy.passed.map(({ idempotencyKey }) => idempotencyKey);
      expect(keys).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), keys[0], keys[0]]);
      expect(response.headers.get('idempotent-replayed')).toBe('true');
      expect(await world.sql('SELECT id FROM sessions')).toEqual([{ id: data.id }]);
      expect(world.platform.arrivals('createSession')).toBe(1);
    },
  );

  test('keeps the Idempotency-Key of the caller, and each call has its own', async () => {
    const client = newClient();
    const upload = (headers = {}) => client.POST('/v1/recordings/upload-url', { body: { size: 10 }, headers });
    proxy.lose(1);
    await upload({ 'Idempotency-Key': 'recording-1' });
    await upload();
    await upload();
    const [first, second, third, fourth] = proxy.passed.map(({ idempotencyKey }) => idempotencyKey);
    expect([first, second]).toEqual(['recording-1', 'recording-1']);
    expect(new Set([second, third, fourth]).size).toBe(3);
  });

  test.each([
    ['GET', (client) => client.GET('/v1/clients')],
    [
      'PUT',
      (client) => client.PUT('/v1/providers/{externalId}', { params: { path: { externalId: 'p-1' } }, body: provider }),
    ],
  ] as [string, (client: ReturnType<typeof newClient>) => Promise<{ response: Response }>][])(
    'leads to a retry of a %s',
    async (method, call) => {
      proxy.lose(1);
      expect((await call(newClient())).response.ok).toBe(true);
      expect(proxy.passed.map((each) => each.method)).toEqual([method, method]);
    },
  );

  test('is an error of a POST without Idempotency-Key support, even if the caller sends a key', async () => {
    const client = newClient();
    for (const headers of [{}, { 'idempotency-key': 'ignored' }]) {
      proxy.lose(1);
      const error = await failureOf(client.POST('/v1/sessions/refreshes', { body: { session: 'any' }, headers }));
      expect([error.type, error.status]).toEqual(['no-answer', 0]);
    }
    expect(proxy.passed.map(({ idempotencyKey }) => idempotencyKey)).toEqual([undefined, 'ignored']);
  });

  test('leads to a retry at the new URL of a restarted service', async () => {
    proxy.lose(1);
    const reading = newClient({ attempts: 12 }).GET('/v1/clients');
    await world.eventually('the first answer is lost', () => proxy.lost() === 1);
    await world.restart({});
    proxy.lead(world.url);
    expect((await reading).data.items).toEqual([]);
  });

  test('is an error after the allowed attempts', async () => {
    proxy.lose(9);
    const error = await failureOf(newClient({ attempts: 2 }).GET('/v1/clients'));
    expect([error.type, proxy.passed.length]).toEqual(['no-answer', 2]);
  });
});

test('an unknown key is rejected without a retry', async () => {
  const error = await failureOf(newClient({ key: 'wrong' }).GET('/v1/clients'));
  expect([error.type, error.status, proxy.passed.length]).toEqual(['unauthenticated', 401, 1]);
});
