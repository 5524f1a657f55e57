import { Metrics } from '../../src/monitoring/metrics.js';
import { connectTo, headOf, wholeAnswer } from '../http/connection.js';
import { deliver, sessionEvent, signed } from '../support/webhook-requests.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

const send = async (init: RequestInit, service: { url: string } = world) => {
  const response = await deliver(service, init);
  return { status: response.status, text: await response.text() };
};
const rows = () =>
  world.sql<{ body: Buffer; secret_index: number; repeats: number }>(
    'SELECT body, secret_index, repeats FROM webhook_deliveries ORDER BY id',
  );

test('a genuine delivery is in the inbox, encrypted, when it is answered 204', async () => {
  expect(await send(signed(sessionEvent('very-visible-id')))).toEqual({ status: 204, text: '' });
  const [row] = await rows();
  expect(row).toMatchObject({ secret_index: 0 });
  expect(row?.body.toString('latin1')).not.toContain('very-visible-id');
});

test.each([
  ['in absolute form', (url: string) => `${url}/webhooks/platform`],
  ['in absolute form with another host, as some proxies send', () => 'http://notebridge.ehr.example/webhooks/platform'],
  ['with a trailing slash', () => '/webhooks/platform/'],
  ['with a percent-encoded letter', () => '/webhooks/%70latform'],
  ['with two slashes', () => '//webhooks/platform'],
  ['with a query', () => '/webhooks/platform?tenant=1'],
])('an equivalent request target reaches the receiver: %s (RFC 9112 §3.2)', async (_, target) => {
  const event = sessionEvent('s');
  const headers = { ...signed(event).headers, 'content-length': event.length, connection: 'close' };
  const head = headOf('POST', target(world.url), headers);
  expect(await wholeAnswer(connectTo(world, head + event))).toMatch(/^HTTP\/1.1 204 /);
  expect(await rows()).toHaveLength(1);
});

test('answers of the receiver are counted by their class', async () => {
  const counter = world.get(Metrics).registry.getSingleMetric('notebridge_http_answers_total');
  const counts = async () => {
    const { values = [] } = (await counter?.get()) ?? {};
    return new Map(values.map(({ labels, value }) => [labels.class, value]));
  };
  const before = await counts();
  await send(signed(sessionEvent('s')));
  await send({ method: 'POST', body: 'x' });
  const after = await counts();
  const difference = ['2xx', '4xx'].map((name) => (after.get(name) ?? 0) - (before.get(name) ?? 0));
  expect(difference).toEqual([1, 1]);
});

test('the secret of the rotation that signed is recorded', async () => {
  const secrets = 'webhook-secret-of-the-tests, the-next-secret';
  const service = await world.startAnother({ PLATFORM_WEBHOOK_SECRET: secrets });
  expect((await send(signed(sessionEvent('s'), { secret: 'the-next-secret' }), service)).status).toBe(204);
  expect(await rows()).toMatchObject([{ secret_index: 1 }]);
});

test.each(['text/plain', 'application/json; charset="', 'multipart/form-data; boundary=x', ''])(
  'the Content-Type %p is accepted',
  async (type) => {
    const { headers, ...init } = signed(sessionEvent('s'));
    expect((await send({ ...init, headers: { ...headers, 'content-type': type } })).status).toBe(204);
  },
);

test.each(['{ "eventType" :"X",\n"a":1.0 }', '{"a":1,"a":2}', '\ufeff{"eventType":"X"}', 'no json', '', '\xff\xfe'])(
  'the signature is checked over the raw bytes: %j',
  async (body) => {
    expect((await send(signed(Buffer.from(body, 'latin1')))).status).toBe(204);
  },
);

test('a body over the limit is 413, and one at the limit is accepted', async () => {
  const service = await world.startAnother({ WEBHOOK_BODY_LIMIT: '64 KiB' });
  expect((await send(signed('x'.repeat(64 * 1024)), service)).status).toBe(204);
  const answer = await send(signed('x'.repeat(64 * 1024 + 1)), service);
  expect([answer.status, JSON.parse(answer.text).type]).toEqual([413, 'urn:notebridge:problem:body-too-large']);
});

test('an exact repeat is stored once', async () => {
  const init = signed(sessionEvent('repeated'));
  const answers = await Promise.all(Array.from({ length: 20 }, () => send(init)));
  expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(204));
  await world.settle();
  expect(await rows()).toMatchObject([{ repeats: 19 }]);
});

test('a signature in upper case is the same delivery as in lower case', async () => {
  const { headers, ...init } = signed(sessionEvent('s'));
  const upper = { ...headers, 'x-service-signature': headers['x-service-signature']?.toUpperCase() ?? '' };
  const answers = [await send({ ...init, headers: upper }), await send({ ...init, headers })];
  expect(answers.map(({ status }) => status)).toEqual([204, 204]);
  await world.settle();
  expect(await rows()).toMatchObject([{ repeats: 1 }]);
  const { body } = await world.call<{ items: object[] }>('GET', '/v1/webhook-deliveries');
  expect(body.items).toMatchObject([{ subject: 's', error: null }]);
});

test('identical bodies with different timestamps are two deliveries', async () => {
  for (const timestamp of ['1700000000001', '1700000000002']) await send(signed(sessionEvent('same'), { timestamp }));
  expect(await rows()).toHaveLength(2);
});

test('a delivery whose connection breaks is not stored', async () => {
  const { headers } = signed('{}');
  const head = headOf('POST', '/webhooks/platform', { ...headers, 'content-length': 500 });
  const socket = connectTo(world, `${head}half`);
  socket.end();
  expect(await wholeAnswer(socket)).not.toContain(' 204 ');
  expect((await send(signed(sessionEvent('after')))).status).toBe(204);
  expect(await rows()).toHaveLength(1);
});
