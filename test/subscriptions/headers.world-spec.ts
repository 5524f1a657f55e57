import type { NewSubscriptionResponse, PushAnswerResponse } from '../../src/subscriptions/subscriptions.dto.js';
import { useWorld } from '../world/use-world.js';
import { usePushes } from './pushed.js';

const world = useWorld();
const pushes = usePushes(world);

const VALUE = 'Bearer gateway token';

/** The headers of the last message, by the given names. */
const sent = (...names: string[]) => names.map((name) => pushes.receiver.attempts.at(-1)?.headers[name]);

test('headers are sent with every push and with the test event', async () => {
  const { id, headers } = await pushes.subscribe({
    headers: { Authorization: VALUE, 'x-tenant': 'north' },
  });
  expect(headers).toEqual(['authorization', 'x-tenant']);
  await world.call('POST', `/v1/subscriptions/${id}/test`);
  expect(sent('authorization', 'x-tenant')).toEqual([VALUE, 'north']);
  await pushes.append(2);
  await world.settle();
  expect(pushes.receiver.taken.slice(1)).toEqual(['1-1', '1-2']);
  for (const attempt of pushes.receiver.attempts)
    expect(attempt.headers).toMatchObject({
      authorization: VALUE,
      'content-type': 'application/json',
      'user-agent': 'notebridge',
    });
});

test('a change replaces all headers, or removes them, and is kept by other changes', async () => {
  const { id } = await pushes.subscribe({ headers: { 'x-one': '1', 'x-two': '2' } });
  const test = async (change: object) => {
    const { body } = await pushes.patch(id, { ...change });
    await world.call<PushAnswerResponse>('POST', `/v1/subscriptions/${id}/test`);
    return [body.headers, sent('x-one', 'x-two', 'x-three')];
  };
  expect(await test({ types: ['person.synced'] })).toEqual([
    ['x-one', 'x-two'],
    ['1', '2', undefined],
  ]);
  expect(await test({ headers: { 'X-Three': '3' } })).toEqual([['x-three'], [undefined, undefined, '3']]);
  expect(await test({ headers: {} })).toEqual([[], [undefined, undefined, undefined]]);
  await test({ headers: { 'x-one': '1' } });
  expect(await test({ headers: null })).toEqual([[], [undefined, undefined, undefined]]);
  expect(await world.sql('SELECT headers, header_names FROM subscriptions')).toEqual([
    { headers: null, header_names: [] },
  ]);
});

test('a new URL on another host needs the headers again, so that it does not get those of the old one', async () => {
  const { id } = await pushes.subscribe({ url: 'http://127.0.0.1:1/hook', headers: { 'x-key': 'old' } });
  const { url } = pushes.receiver;
  expect(await pushes.patch(id, { url })).toMatchObject({
    status: 400,
    body: { errors: [{ pointer: '/headers', detail: expect.stringContaining('another host') }] },
  });
  expect(await pushes.patch(id, { url: 'http://127.0.0.1:1/other' })).toMatchObject({ status: 200 });
  expect(await pushes.patch(id, { url, headers: { 'x-key': 'new' } })).toMatchObject({ status: 200 });
  await world.call('POST', `/v1/subscriptions/${id}/test`);
  expect(sent('x-key')).toEqual(['new']);
  expect(await pushes.patch(id, { url: 'http://127.0.0.1:1/hook', headers: null })).toMatchObject({ status: 200 });
  expect(await pushes.patch(id, { url })).toMatchObject({ status: 200 });
});

test('values of headers are encrypted at rest, and never shown', async () => {
  const headers = { 'x-gateway-key': 'c2VjcmV0LXZhbHVl' };
  const { id, ...made } = await pushes.subscribe({ headers });
  const rotated = await world.call<NewSubscriptionResponse>('POST', `/v1/subscriptions/${id}/rotate-secret`);
  await pushes.append(1);
  await world.settle();
  const answers = await Promise.all(
    ['', `/${id}`, `/${id}/attempts`].map(async (path) => (await world.call('GET', `/v1/subscriptions${path}`)).text),
  );
  const changed = await pushes.patch(id, { headers });
  const audit = await world.call('GET', '/v1/audit');
  const stored = await world.sql(
    `SELECT s::text, (SELECT json_agg(e)::text FROM audit_entries e) AS audit, encode(headers, 'escape') AS bytes FROM subscriptions s`,
  );
  expect(audit.status).toBe(200);
  const texts = JSON.stringify([made, rotated.body, changed.body, audit.body, stored]) + answers.join();
  expect(texts).toContain('x-gateway-key');
  expect(texts).not.toContain('c2VjcmV0LXZhbHVl');
});

const NAME = 'has an invalid name in place 1. It must be an HTTP field name of at most 64 characters';
const invalid = (name: string) =>
  `has an invalid value of ${name}. It must have 1 to 4,000 visible ASCII characters; spaces only inside`;
const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`x-${at}`, 'v']));

test.each<[headers: unknown, detail: string]>([
  [['x-a: b'], 'must be an object of names and values'],
  ['x-a: b', 'must be an object of names and values'],
  [{ '': 'v' }, NAME],
  [{ 'x a': 'v' }, NAME],
  [{ 'x:a': 'v' }, NAME],
  [{ 'x-a\r\nx-b': 'v' }, NAME],
  [{ 'x-\u00fc': 'v' }, NAME],
  // A Kelvin sign, whose lower case is k.
  [{ '\u212aeep-alive': 'v' }, NAME],
  [{ [`x-${'a'.repeat(63)}`]: 'v' }, NAME],
  ...[
    'Content-Type',
    'content-length',
    'HOST',
    'connection',
    'transfer-encoding',
    'te',
    'trailer',
    'upgrade',
    'expect',
    'keep-alive',
    'proxy-authorization',
    'user-agent',
    'webhook-signature',
    'webhook-',
  ].map((name): [object, string] => [
    { [name]: 'v' },
    `must not contain ${name.toLowerCase()}, which notebridge or HTTP sets`,
  ]),
  [{ 'x-a': 'v', 'X-A': 'v' }, 'contains x-a twice. Upper and lower case are the same'],
  [{ 'x-a': 'v', 'x-b': '' }, invalid('x-b')],
  [{ 'x-b': 'a\r\nwebhook-signature: v1,forged' }, invalid('x-b')],
  [{ 'x-b': 'a\nb' }, invalid('x-b')],
  [{ 'x-b': 'a\n' }, invalid('x-b')],
  [{ 'x-b': 'a\tb' }, invalid('x-b')],
  [{ 'x-b': 'a\0b' }, invalid('x-b')],
  [{ 'x-b': ' a' }, invalid('x-b')],
  [{ 'x-b': 'a ' }, invalid('x-b')],
  [{ 'x-b': '\u00e4' }, invalid('x-b')],
  [{ 'x-b': 7 }, invalid('x-b')],
  [{ 'x-b': null }, invalid('x-b')],
  [{ 'x-b': ['v'] }, invalid('x-b')],
  [{ $value: '' }, invalid('$value')],
  [many(11), 'must hold at most 10 headers'],
])('rejects the headers %j, and says why without their values', async (headers, detail) => {
  const { id } = await pushes.subscribe({ headers: { 'x-kept': 'k' } });
  for (const [method, path, body] of [
    ['POST', '', { url: pushes.receiver.url, headers }],
    ['PATCH', `/${id}`, { headers }],
  ] as const)
    expect(await world.call(method, `/v1/subscriptions${path}`, { body })).toMatchObject({
      status: 400,
      body: { type: 'urn:notebridge:problem:validation', errors: [{ pointer: '/headers', detail }] },
    });
  expect(await pushes.read(id)).toMatchObject({ headers: ['x-kept'] });
});

test('takes ten headers with values of 4,000 characters, and not one character more', async () => {
  const headers = { ...many(9), [`x-${'a'.repeat(62)}`]: `${'v'.repeat(3_999)}~` };
  expect((await pushes.subscribe({ headers })).headers).toEqual(Object.keys(headers));
  const body = { url: pushes.receiver.url, headers: { 'x-b': 'v'.repeat(4_001) } };
  const refused = await world.call('POST', '/v1/subscriptions', { body });
  expect(refused).toMatchObject({ status: 400, body: { errors: [{ pointer: '/headers', detail: invalid('x-b') }] } });
});
