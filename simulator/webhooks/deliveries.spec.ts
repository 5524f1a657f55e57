import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { matchingSecret } from '../../src/webhooks/receive/webhook-signature.js';
import { callSimulator } from '../../test/support/simulator-call.js';
import { buildSimulator, type Simulator } from '../app.js';
import type { Settings } from '../settings.js';
import { Timers } from '../timers.js';

let simulator: Simulator;
let receiver: Server;
let received: { headers: IncomingHttpHeaders; body: string }[];
/** If set, answers wait for it. */
let held: (() => void)[] | undefined;
/** The receiver's answers, in turn; then 204. A 0 means no answer. */
let answers: number[];
/** Each sleep, with the number of arrivals before it; sleeping takes no time here. */
let slept: [ms: number, received: number][];
/** A clock that advances at each read, so that no two times are equal. */
let nowMs = 1_800_000_000_000;

beforeAll(async () => {
  receiver = createServer(async (request, response) => {
    const body = (await request.toArray()).join('');
    received.push({ headers: request.headers, body });
    const status = answers.shift() ?? 204;
    const answer = () => response.writeHead(status).end();
    if (held) held.push(answer);
    else if (status > 0) answer();
  }).listen(0, '127.0.0.1');
  // A connection that is closed as idle could have a delivery in flight, which would be retried.
  receiver.keepAliveTimeout = 0;
  await new Promise((resolve) => receiver.once('listening', resolve));
  const webhookUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  const settings = { webhookUrl, webhookSecret: 'secret', webhookRetryBaseMs: 20, webhookTimeoutMs: 60_000 };
  simulator = await buildSimulator({ seed: 3, nowMs: () => nowMs++, settings });
});
beforeEach(() => {
  simulator.state.reset();
  [received, answers, slept, held] = [[], [], [], undefined];
  jest.spyOn(Timers.prototype, 'sleep').mockImplementation(async (ms) => {
    slept.push([ms, received.length]);
  });
});
afterEach(() => {
  jest.restoreAllMocks();
});
afterAll(async () => {
  await simulator.close();
  receiver.closeAllConnections();
  await new Promise((resolve) => receiver.close(resolve));
});

const call = (method: string, path: string, body?: unknown) => callSimulator(simulator, method, path, body);
const set = (settings: Partial<Settings>) => call('PATCH', '/_simulator/settings', settings);
/** Sends events numbered from 1 and waits until nothing is pending. */
async function send(count = 1): Promise<void> {
  for (let number = 1; number <= count; number += 1) simulator.state.deliveries.sendRaw(JSON.stringify({ number }));
  await simulator.state.deliveries.settled();
}
const numbers = () => received.map(({ body }) => JSON.parse(body).number);
const deliveries = () => simulator.state.deliveries.list();

it('carries the headers of the specification and a signature over its bytes', async () => {
  await send();
  const [{ headers, body } = { headers: {} as IncomingHttpHeaders, body: '' }] = received;
  expect(headers).toMatchObject({
    'content-type': 'application/json',
    'content-length': String(body.length),
    'user-agent': 'Service Webhook',
    'x-service-timestamp': expect.stringMatching(/^\d{13}$/),
  });
  const [timestamp, signature] = [String(headers['x-service-timestamp']), String(headers['x-service-signature'])];
  expect(matchingSecret(['secret'], timestamp, Buffer.from(body), signature)).toBe(0);
});

it('accepts 200 and 204, and retries five times after anything else, with doubling delays', async () => {
  answers = [200];
  await send();
  answers = [201, 302, 400, 500, 503, 202, 204];
  await send();
  expect(deliveries()).toMatchObject([{ state: 'delivered', attempts: [{ status: 200 }] }, { state: 'failed' }]);
  expect(slept.slice(2)).toEqual([20, 40, 80, 160, 320].map((ms, at) => [ms, at + 2]));
});

it('is retried after a timeout', async () => {
  simulator.state.settings = { ...simulator.state.settings, webhookTimeoutMs: 20 };
  answers = [0];
  // From the first retry on, the timeout is long, even if the first attempt never reached the receiver.
  jest.spyOn(Timers.prototype, 'sleep').mockImplementation(async (ms) => {
    if (ms === 0) return;
    answers = [];
    simulator.state.settings = { ...simulator.state.settings, webhookTimeoutMs: 60_000 };
  });
  await send();
  expect(deliveries()).toMatchObject([{ state: 'delivered', attempts: [{ error: 'timeout' }, { status: 204 }] }]);
});

it.each(['same', 'fresh'] as const)('signs a retry with the timestamp: %s', async (webhookRetryTimestamp) => {
  await set({ webhookRetryTimestamp });
  answers = [500];
  await send();
  const [first, second] = received.map(({ headers }) => [
    headers['x-service-timestamp'],
    headers['x-service-signature'],
  ]);
  expect(JSON.stringify(first) === JSON.stringify(second)).toBe(webhookRetryTimestamp === 'same');
});

it('arrives twice if duplicated, and never if dropped', async () => {
  await set({ webhookDuplicateRate: 1 });
  await send();
  expect([numbers(), deliveries()]).toMatchObject([
    [1, 1],
    [{ copyOf: null }, { copyOf: 1 }],
  ]);
  await set({ webhookDuplicateRate: 0, webhookDropRate: 1 });
  await send();
  expect([numbers(), deliveries().at(-1)?.state]).toEqual([[1, 1], 'dropped']);
});

it('waits for its delays, which postpone and shuffle', async () => {
  await set({ webhookDelayMs: [30, 40] });
  await send(3);
  for (const [ms] of slept) expect([ms >= 30, ms <= 40]).toEqual([true, true]);
  await set({ webhookDelayMs: [0, 0], webhookShuffleMs: 100 });
  slept = [];
  await send(20);
  expect(new Set(slept.map(([ms]) => ms)).size).toBeGreaterThan(10);
});

it('keeps the maximum number in flight, and all arrive', async () => {
  await set({ webhookConcurrency: 2 });
  held = [];
  const sent = send(5);
  for (const arrived of [2, 3, 4, 5, 5]) {
    while (received.length < arrived) await turn();
    // By the time of another request and its answer, one more delivery would have arrived.
    await call('GET', '/_simulator/settings');
    expect(received).toHaveLength(arrived);
    held.shift()?.();
  }
  await sent;
  expect(numbers().sort()).toEqual([1, 2, 3, 4, 5]);
});

it.each<[string, Partial<Settings>, number]>([
  ['failed', { webhookRetries: 1 }, 2],
  ['dropped', { webhookDropRate: 1 }, 0],
])('redelivers only %s deliveries on request', async (state, settings, attempts) => {
  await send();
  answers = Array(attempts).fill(500);
  await set(settings);
  await send();
  expect(deliveries()).toMatchObject([{ state: 'delivered' }, { state }]);
  const { status, json } = await call('POST', `/_simulator/deliveries/redeliver?state=${state}`);
  await simulator.state.deliveries.settled();
  expect([status, json()]).toEqual([202, { redelivered: 1 }]);
  expect(deliveries()).toMatchObject([{ state: 'delivered' }, { state: 'delivered' }]);
  expect(deliveries().map((each) => each.attempts.length)).toEqual([1, attempts + 1]);
  expect((await call('POST', '/_simulator/deliveries/redeliver?state=delivered')).status).toBe(400);
});

it('is recorded as unsent without a URL, or if the URL is removed before a retry', async () => {
  answers = [500];
  jest.spyOn(Timers.prototype, 'sleep').mockImplementation(async (ms) => {
    if (ms > 0) simulator.state.settings = { ...simulator.state.settings, webhookUrl: '' };
  });
  await send();
  await send();
  expect(deliveries()).toMatchObject([
    { state: 'unsent', attempts: [{ status: 500 }] },
    { state: 'unsent', attempts: [] },
  ]);
  expect((await call('POST', '/_simulator/deliveries/redeliver')).status).toBe(400);
});

it('sends a manual event unchanged, even if it is not JSON, and filters its log', async () => {
  await call('POST', '/_simulator/events', { eventType: 'NEW_KIND', payload: {} });
  await call('POST', '/_simulator/events', 'no json');
  await simulator.state.deliveries.settled();
  expect(received.map(({ body }) => body).sort()).toEqual(['no json', '{"eventType":"NEW_KIND","payload":{}}']);
  const log = await call('GET', '/_simulator/deliveries?state=delivered&eventType=NEW_KIND');
  expect(log.json()).toMatchObject({ total: 1 });
});

it("announces users of the platform's application, and of the API only if configured", async () => {
  const person = { firstName: 'Ada', lastName: 'Byron' };
  await call('POST', '/users/providers', { ...person, email: 'a@example.test' });
  expect(deliveries()).toEqual([]);
  await call('POST', '/_simulator/users', { role: 'Client', ...person, partnerUserId: 'c-1' });
  await set({ userCreatedForApi: true });
  await call('POST', '/users/providers', { ...person, email: 'b@example.test' });
  await simulator.state.deliveries.settled();
  const userId = expect.any(String);
  expect(received.map(({ body }) => JSON.parse(body))).toEqual([
    { eventType: 'USER_CREATED', payload: { userId, externalUserId: 'c-1', role: 'Client' } },
    { eventType: 'USER_CREATED', payload: { userId, role: 'HealthcareProvider' } },
  ]);
});

test('forgets deliveries from before a moment, and continues to count', async () => {
  answers = [500, 500, 500, 500, 500, 500];
  await send();
  await send();
  const { deliveries } = simulator.state;
  const before = nowMs;
  await send();
  expect(deliveries.forgetDelivered(before)).toBe(1);
  await send();
  expect(deliveries.list().map(({ id, state }) => [id, state])).toEqual([
    [1, 'failed'],
    [3, 'delivered'],
    [4, 'delivered'],
  ]);
});
