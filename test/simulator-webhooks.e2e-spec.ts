import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { until } from '../harness/until.js';
import { buildSimulator, type Simulator } from '../simulator/app.js';
import type { Settings } from '../simulator/settings.js';
import { Timers } from '../simulator/timers.js';
import { matchingSecret } from '../src/platform/webhook-signature.js';
import { callSimulator } from './support/simulator-call.js';

interface Received {
  headers: IncomingHttpHeaders;
  body: Buffer;
}

let simulator: Simulator;
let receiver: Server;
let received: Received[];
/** When it is set, answers wait here for a word. */
let held: (() => void)[] | undefined;
/** What the receiver answers, in turn; then 204. A 0 is no answer at all. */
let answers: number[];
/** Steps at each look, so that two moments are never the same. */
let nowMs = 1_800_000_000_000;

beforeAll(async () => {
  receiver = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      received.push({ headers: request.headers, body: Buffer.concat(chunks) });
      const status = answers.shift() ?? 204;
      const answer = () => response.writeHead(status).end();
      if (held) held.push(answer);
      else if (status > 0) answer();
    });
  }).listen(0, '127.0.0.1');
  // A connection that it ended for being idle could have a delivery on its way, which would be tried once more.
  receiver.keepAliveTimeout = 0;
  await new Promise((resolve) => receiver.once('listening', resolve));
  simulator = await buildSimulator({
    seed: 3,
    nowMs: () => nowMs++,
    settings: {
      webhookUrl: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
      webhookSecret: 'secret',
      webhookRetryBaseMs: 1,
      webhookTimeoutMs: 60_000,
    },
  });
});
beforeEach(() => {
  simulator.state.reset();
  received = [];
  answers = [];
  held = undefined;
});
afterEach(() => {
  jest.restoreAllMocks();
});
afterAll(async () => {
  await simulator.close();
  receiver.closeAllConnections();
  await new Promise((resolve) => receiver.close(resolve));
});

const set = (settings: Partial<Settings>) => callSimulator(simulator, 'PATCH', '/_simulator/settings', settings);

/** Sends events numbered from 1 and waits until nothing is pending. */
async function send(count = 1): Promise<void> {
  for (let number = 1; number <= count; number += 1) simulator.state.deliveries.sendRaw(JSON.stringify({ number }));
  await simulator.state.deliveries.settled();
}
const numbers = () => received.map(({ body }) => JSON.parse(body.toString()).number);
const deliveries = () => simulator.state.deliveries.list();

it('a delivery carries the headers of the spec and a signature over its very bytes', async () => {
  await send();
  const [{ headers, body }] = received as [Received];
  expect(headers).toMatchObject({
    'content-type': 'application/json',
    'content-length': String(body.length),
    'user-agent': 'Service Webhook',
    'x-service-timestamp': expect.stringMatching(/^\d{13}$/),
  });
  const timestamp = String(headers['x-service-timestamp']);
  expect(matchingSecret(['secret'], timestamp, body, String(headers['x-service-signature']))).toBe(0);
});

it.each([[200], [204]])('%i ends a delivery', async (status) => {
  answers = [status];
  await send();
  expect(deliveries()).toMatchObject([{ state: 'delivered', attempts: [{ status }] }]);
});

it('any other answer, also of 2xx, is retried, five times at most', async () => {
  answers = [201, 302, 400, 500, 503, 202, 204];
  await send();
  expect(deliveries()).toMatchObject([{ state: 'failed' }]);
  expect(received).toHaveLength(6);
});

it('an answer that does not come in time is retried', async () => {
  await set({ webhookTimeoutMs: 20 });
  answers = [0];
  // From the first retry on there is time enough, also when the first attempt never reached the receiver.
  const sleep = jest.spyOn(Timers.prototype, 'sleep').mockImplementation(async (ms) => {
    if (ms === 0) return;
    answers = [];
    simulator.state.settings = { ...simulator.state.settings, webhookTimeoutMs: 60_000 };
  });
  await send();
  expect(deliveries()).toMatchObject([{ state: 'delivered', attempts: [{ error: 'timeout' }, { status: 204 }] }]);
  expect(sleep.mock.calls).toEqual([[0], [1]]);
});

it('the delay doubles with each retry, and passes between two attempts', async () => {
  await set({ webhookRetryBaseMs: 20 });
  answers = [500, 500, 500];
  const passed: [ms: number, attempts: number][] = [];
  jest.spyOn(Timers.prototype, 'sleep').mockImplementation(async (ms) => {
    passed.push([ms, received.length]);
  });
  await send();
  expect(passed).toEqual([
    [0, 0],
    [20, 1],
    [40, 2],
    [80, 3],
  ]);
});

it('a retry repeats its timestamp and signature when it is to', async () => {
  await set({ webhookRetryTimestamp: 'same', webhookRetryBaseMs: 5 });
  answers = [500];
  await send();
  expect(received[1]?.headers).toMatchObject({
    'x-service-timestamp': received[0]?.headers['x-service-timestamp'],
    'x-service-signature': received[0]?.headers['x-service-signature'],
  });
});

it('a retry is signed anew otherwise', async () => {
  await set({ webhookRetryTimestamp: 'fresh', webhookRetryBaseMs: 5 });
  answers = [500];
  await send();
  expect(received[1]?.headers['x-service-timestamp']).not.toBe(received[0]?.headers['x-service-timestamp']);
});

it('duplicated deliveries arrive twice and are marked as copies', async () => {
  await set({ webhookDuplicateRate: 1 });
  await send();
  expect(numbers()).toEqual([1, 1]);
  expect(deliveries()).toMatchObject([{ copyOf: null }, { copyOf: 1 }]);
});

it('dropped deliveries never arrive', async () => {
  await set({ webhookDropRate: 1 });
  await send();
  expect([numbers(), deliveries()[0]?.state]).toEqual([[], 'dropped']);
});

it('shuffled deliveries arrive in another order, all of them', async () => {
  await set({ webhookShuffleMs: 100 });
  await send(20);
  const inOrder = Array.from({ length: 20 }, (_, index) => index + 1);
  expect(numbers()).not.toEqual(inOrder);
  expect(numbers().sort((a, b) => a - b)).toEqual(inOrder);
});

it('delayed deliveries wait', async () => {
  await set({ webhookDelayMs: [30, 40] });
  let arrive: () => void = () => {};
  const sleep = jest.spyOn(Timers.prototype, 'sleep').mockImplementation(
    () =>
      new Promise((resolve) => {
        arrive = resolve;
      }),
  );
  const sent = send();
  expect([deliveries()[0]?.attempts, sleep.mock.calls.length]).toEqual([[], 1]);
  const [[ms = 0] = []] = sleep.mock.calls;
  expect([ms >= 30, ms <= 40]).toEqual([true, true]);
  arrive();
  await sent;
  expect(numbers()).toEqual([1]);
});

it('no more are under way at once than allowed, and all arrive', async () => {
  await set({ webhookConcurrency: 2 });
  held = [];
  const sent = send(5);
  for (const arrived of [2, 3, 4, 5, 5]) {
    await until(`${arrived} have arrived`, () => received.length >= arrived);
    // Another request of this machine comes and goes: one more delivery would have arrived with it.
    await callSimulator(simulator, 'GET', '/_simulator/settings');
    expect(received).toHaveLength(arrived);
    held.shift()?.();
  }
  await sent;
  expect(numbers().sort((a, b) => a - b)).toEqual([1, 2, 3, 4, 5]);
});

it.each<[string, Partial<Settings>, number]>([
  ['failed', { webhookRetries: 1 }, 2],
  ['dropped', { webhookDropRate: 1 }, 0],
])('what is %s is sent again on demand, and only that', async (state, settings, attempts) => {
  await send();
  answers = Array(attempts).fill(500);
  await set(settings);
  await send();
  expect(deliveries()).toMatchObject([{ state: 'delivered' }, { state }]);
  const answer = await callSimulator(simulator, 'POST', `/_simulator/deliveries/redeliver?state=${state}`);
  await simulator.state.deliveries.settled();
  expect([answer.status, answer.json()]).toEqual([202, { redelivered: 1 }]);
  expect(deliveries().map((delivery) => [delivery.state, delivery.attempts.length])).toEqual([
    ['delivered', 1],
    ['delivered', attempts + 1],
  ]);
});

it('nothing else can be sent again, and nothing to nowhere', async () => {
  const redeliver = (query = '') => callSimulator(simulator, 'POST', `/_simulator/deliveries/redeliver${query}`);
  expect((await redeliver('?state=delivered')).status).toBe(400);
  await set({ webhookUrl: '' });
  expect((await redeliver()).status).toBe(400);
});

it('without a URL deliveries are only recorded', async () => {
  await set({ webhookUrl: '' });
  await send();
  expect(deliveries()).toMatchObject([{ state: 'unsent', attempts: [] }]);
});

it('a retry whose URL was taken away meanwhile is recorded as unsent', async () => {
  await set({ webhookRetryBaseMs: 50 });
  answers = [500];
  simulator.state.deliveries.sendRaw('{}');
  while (deliveries()[0]?.attempts.length !== 1) await new Promise((resolve) => setImmediate(resolve));
  simulator.state.settings = { ...simulator.state.settings, webhookUrl: '' };
  await simulator.state.deliveries.settled();
  expect(deliveries()).toMatchObject([{ state: 'unsent', attempts: [{ status: 500 }] }]);
});

it('an event made by hand is sent as it is, also when it is no JSON', async () => {
  await callSimulator(simulator, 'POST', '/_simulator/events', { eventType: 'NEW_KIND', payload: {} });
  await callSimulator(simulator, 'POST', '/_simulator/events', 'no json');
  await simulator.state.deliveries.settled();
  expect(received.map(({ body }) => body.toString()).sort()).toEqual([
    'no json',
    '{"eventType":"NEW_KIND","payload":{}}',
  ]);
});

it("a user of the platform's application is told with USER_CREATED, one of the API only when asked for", async () => {
  const body = { firstName: 'Ada', lastName: 'Byron', email: 'ada@example.test' };
  await callSimulator(simulator, 'POST', '/users/providers', body);
  expect(deliveries()).toEqual([]);
  await callSimulator(simulator, 'POST', '/_simulator/users', {
    role: 'Client',
    firstName: 'Cy',
    lastName: 'Lee',
    partnerUserId: 'c-1',
  });
  await set({ userCreatedForApi: true });
  await callSimulator(simulator, 'POST', '/users/providers', { ...body, email: 'b@example.test' });
  await simulator.state.deliveries.settled();
  expect(received.map(({ body: sent }) => JSON.parse(sent.toString()).payload)).toEqual(
    expect.arrayContaining([
      { userId: expect.any(String), externalUserId: 'c-1', role: 'Client' },
      { userId: expect.any(String), role: 'HealthcareProvider' },
    ]),
  );
  expect(deliveries().map(({ eventType }) => eventType)).toEqual(['USER_CREATED', 'USER_CREATED']);
});

it('the log of deliveries is filtered by state and event type', async () => {
  await send(2);
  const path = '/_simulator/deliveries?state=delivered&eventType=none';
  expect((await callSimulator(simulator, 'GET', path)).json()).toMatchObject({ total: 2 });
});
