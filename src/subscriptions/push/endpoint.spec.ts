import dns from 'node:dns';
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { Clock } from '../../config/clock.js';
import { testEnv } from '../../platform/clients/loopback-platform.spec-support.js';
import { Endpoint } from './endpoint.js';
import { newSecret } from './message.js';

type Respond = (socket: net.Socket) => void;

const closing: (() => unknown)[] = [];
const connections: net.Socket[] = [];
let received = 0;

beforeEach(() => {
  connections.length = 0;
  received = 0;
});
afterEach(() => {
  jest.restoreAllMocks();
  for (const socket of connections) socket.destroy();
  for (const close of closing.splice(0)) close();
});

/** Answers one request after the other; the last answer repeats. @returns a push to that server */
async function pushTo(answers: Respond[], host = '127.0.0.1', env = testEnv('http://127.0.0.1:1')) {
  const server = net.createServer((socket) => {
    connections.push(socket);
    socket.on('error', () => undefined).on('data', () => answers[Math.min(received++, answers.length - 1)]?.(socket));
  });
  closing.push(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const endpoint = new Endpoint(env, new Clock());
  const url = `${env.isPlatformHere ? 'http' : 'https'}://${host}:${(server.address() as AddressInfo).port}/hook`;
  const target = {
    url,
    secrets: [newSecret(Buffer.alloc(32, 1))],
    headers: { 'content-type': 'text/plain', 'x-a': 'b' },
  };
  return () => endpoint.deliver(target, { id: '1-1', body: '{}' });
}

const text = (answer: string) => (socket: net.Socket) => void socket.write(answer);
const cutOff = (answer: string) => (socket: net.Socket) => void socket.end(answer);
const reset = (answer: string) => (socket: net.Socket) => void socket.write(answer, () => socket.resetAndDestroy());
const NO_CONTENT = 'HTTP/1.1 204 No Content\r\n';
const CHUNKED = 'transfer-encoding: chunked\r\n\r\n';
const accepts = text(`${NO_CONTENT}\r\n`);
const accepted = { status: 204, fault: null };

test.each([
  ['', 'address-not-allowed', 0],
  ['ehr.example.org', 'no-connection', 1],
])('a name with a private address is reached only if it is allowed (allowed: %j)', async (hosts, fault, reached) => {
  const { lookup } = dns;
  const found = (name: string, options: object, done: (error: null, found: dns.LookupAddress[]) => void) =>
    name === 'ehr.example.org'
      ? done(null, [{ address: '127.0.0.1', family: 4 }])
      : lookup(name, options, done as never);
  jest.spyOn(dns, 'lookup').mockImplementation(found as typeof lookup);
  const env = testEnv('https://platform.example.com', { SUBSCRIPTION_HOSTS_ALLOWED: hosts });
  // Its TLS handshake is answered with an end.
  const push = await pushTo([cutOff('')], 'ehr.example.org', env);
  expect(await push()).toMatchObject({ status: null, fault });
  expect(connections).toHaveLength(reached);
});

test('headers of a subscription replace none of ours', async () => {
  let head = '';
  const push = await pushTo([accepts]);
  const pushed = push();
  while (!connections[0]) await new Promise(setImmediate);
  connections[0].on('data', (bytes) => (head += bytes));
  expect(await pushed).toMatchObject(accepted);
  expect(head.toLowerCase().split('\r\n')).toEqual(
    expect.arrayContaining(['x-a: b', 'content-type: application/json']),
  );
});

test.each<[what: string, Respond, status: number | null, fault: string | null]>([
  ['a 204 with a body', text(`${NO_CONTENT}\r\nhello`), 204, null],
  ['a 204 with a body and its length', text(`${NO_CONTENT}content-length: 5\r\n\r\nhello`), 204, null],
  ['a 204 with a body that is cut off', cutOff(`${NO_CONTENT}content-length: 5\r\n\r\nhe`), 204, null],
  ['a 204 with chunks', text(`${NO_CONTENT}${CHUNKED}5\r\nhello\r\n0\r\n\r\n`), 204, null],
  ['a 204 after an early hint', text(`HTTP/1.1 103 Early Hints\r\n\r\n${NO_CONTENT}\r\nhello`), 204, null],
  ['a 200 with a broken chunk', text(`HTTP/1.1 200 OK\r\n${CHUNKED}no length\r\n`), 200, null],
  ['a 200 that is reset', reset('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{'), 200, null],
  ['a 200 without an end', text('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{'), 200, null],
  ['a 410 with a broken chunk', text(`HTTP/1.1 410 Gone\r\n${CHUNKED}no length\r\n`), 410, 'error-status'],
  ['a 302 with more than its length', text('HTTP/1.1 302 \r\ncontent-length: 1\r\n\r\n-more'), 302, 'redirect'],
  ['a broken head', text('HTTP/1.1 204 No Content\r\na header\r\n\r\n'), null, 'no-answer'],
  ['an early hint alone', cutOff('HTTP/1.1 103 Early Hints\r\n\r\n'), null, 'no-answer'],
])('once the head of an answer has arrived, its status decides: %s', async (_what, respond, status, fault) => {
  const push = await pushTo([respond, accepts]);
  const begun = Date.now();
  expect(await push()).toMatchObject({ status, fault });
  expect(Date.now() - begun).toBeLessThan(10_000);
  expect(await push()).toMatchObject(accepted);
  expect(received).toBe(2);
});

test('a body of a 204 on a reused connection is no fault, and closes it', async () => {
  const push = await pushTo([accepts, text(`${NO_CONTENT}\r\nhello`), accepts]);
  for (let pushed = 0; pushed < 3; pushed += 1) expect(await push()).toMatchObject(accepted);
  expect([connections.length, received]).toEqual([2, 3]);
});

test('the announced body of a 204 cannot become the next answer', async () => {
  const push = await pushTo([text(`${NO_CONTENT}content-length: 5\r\n\r\n`), accepts]);
  for (let pushed = 0; pushed < 2; pushed += 1) expect(await push()).toMatchObject(accepted);
  expect([connections.length, received]).toEqual([2, 2]);
});

test('bytes on an unused connection are no answer to the next push', async () => {
  const late: Respond = (socket) => {
    accepts(socket);
    setTimeout(() => socket.write('HTTP/1.1 500 Later\r\n\r\n'), 20);
  };
  const push = await pushTo([late, accepts]);
  expect(await push()).toMatchObject(accepted);
  await new Promise((done) => setTimeout(done, 60));
  expect(await push()).toMatchObject(accepted);
});

test('a push that meets bytes of an earlier answer is sent once more, on another connection', async () => {
  const push = await pushTo([accepts, text(`hello${NO_CONTENT}\r\n`), accepts]);
  for (let pushed = 0; pushed < 2; pushed += 1) expect(await push()).toMatchObject(accepted);
  expect([connections.length, received]).toEqual([2, 3]);
});
