import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buildSimulator, type Simulator } from '../simulator/app.js';
import type { Settings } from '../simulator/settings.js';
import { matchingSecret } from '../src/platform/webhook-signature.js';
import { callSimulator } from './support/simulator-call.js';

interface Received {
  headers: IncomingHttpHeaders;
  body: Buffer;
}

let simulator: Simulator;
let receiver: Server;
let received: Received[];
/** What the receiver answers, in turn; then 204. A 0 is no answer at all. */
let answers: number[];

beforeAll(async () => {
  receiver = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      received.push({ headers: request.headers, body: Buffer.concat(chunks) });
      const status = answers.shift() ?? 204;
      if (status > 0) response.writeHead(status).end();
    });
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => receiver.once('listening', resolve));
  simulator = await buildSimulator({
    seed: 3,
    settings: {
      webhookUrl: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
      webhookSecret: 'secret',
      webhookRetryBaseMs: 1,
    },
  });
});
beforeEach(() => {
  simulator.state.reset();
  received = [];
  answers = [];
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
  await send();
  expect(deliveries()).toMatchObject([{ state: 'delivered', attempts: [{ error: 'timeout' }, { status: 204 }] }]);
});

it('the delay doubles with each retry', async () => {
  await set({ webhookRetryBaseMs: 20 });
  answers = [500, 500, 500];
  await send();
  const at = deliveries()[0]?.attempts.map((attempt) => attempt.at) ?? [];
  const gaps = at.slice(1).map((time, index) => time - (at[index] ?? 0));
  expect(gaps.every((gap, index) => gap >= 20 * 2 ** index - 1)).toBe(true);
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
  await send();
  const [delivery] = deliveries();
  expect((delivery?.attempts[0]?.at ?? 0) - (delivery?.createdAt ?? 0)).toBeGreaterThanOrEqual(29);
});

it('no more are under way at once than allowed, and all arrive', async () => {
  await set({ webhookConcurrency: 2 });
  await send(10);
  expect(numbers().sort((a, b) => a - b)).toHaveLength(10);
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
