import { Webhook } from 'standardwebhooks';
import { status } from '../../harness/push-receiver.js';
import type { NewSubscriptionResponse, PushAnswerResponse } from '../../src/subscriptions/subscriptions.dto.js';
import { useWorld } from '../world/use-world.js';
import { usePushes } from './pushed.js';

const world = useWorld();
const pushes = usePushes(world);

const problem = (type: string) => ({ type: `urn:notebridge:problem:${type}` });

test('the secret is shown once, and is encrypted at rest', async () => {
  const { id, secret } = await pushes.subscribe({ description: 'the EHR' });
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  const list = await world.call('GET', '/v1/subscriptions');
  expect(JSON.stringify([await pushes.read(id), list.body])).not.toContain('whsec');
  const [row] = await world.sql<{ text: string }>(`SELECT encode(secret, 'escape') AS text FROM subscriptions`);
  expect(row?.text).not.toContain('whsec');
});

test.each([
  [{ url: 'http://ehr.example.org/hook' }, '/url', 'https://'],
  [{ url: 'https://10.0.0.9/hook' }, '/url', 'SUBSCRIPTION_HOSTS_ALLOWED'],
  [{ types: ['person.unheard-of'] }, '/types', '"person.unheard-of" is not one'],
  [{ types: [] }, '/types', 'types of events, each once'],
  [{ types: ['person.synced', 'person.synced'] }, '/types', 'types of events, each once'],
  [{ types: 'person.synced' }, '/types', 'a list of types'],
  [{ after: 'yesterday' }, '/after', 'the cursor of an event'],
  [{ after: 0 }, '/after', 'a text'],
])('rejects %j, and says why', async (body, pointer, detail) => {
  const answer = await world.call<{ errors: object[] }>('POST', '/v1/subscriptions', {
    body: { url: pushes.receiver.url, ...body },
  });
  expect(answer).toMatchObject({ status: 400, body: problem('validation') });
  expect(answer.body.errors).toEqual([{ pointer, detail: expect.stringContaining(detail) }]);
});

test.each([{}, { paused: null, after: null }])('a change that changes nothing is rejected: %j', async (body) => {
  const { id } = await pushes.subscribe();
  expect(await world.call('PATCH', `/v1/subscriptions/${id}`, { body })).toMatchObject({
    status: 400,
    body: { errors: [{ detail: expect.stringContaining('at least one of url, types, headers, paused and after') }] },
  });
});

test('after: null is the same as no after: a new subscription starts with new events', async () => {
  await pushes.append(1);
  const { id, cursor } = await pushes.subscribe({ after: null, types: null, description: null });
  expect(cursor).toBe('1-1');
  await pushes.append(1);
  await world.settle();
  expect((await pushes.patch(id, { after: null, url: null, paused: false })).body).toMatchObject({ cursor: '1-2' });
});

test('rejects a cursor ahead of the feed', async () => {
  const answer = await world.call('POST', '/v1/subscriptions', { body: { url: pushes.receiver.url, after: '1-9' } });
  expect(answer).toMatchObject({ status: 410, body: problem('cursor-gone') });
});

test('there are at most 20, even if many are created at the same time', async () => {
  const body = { url: pushes.receiver.url };
  const answers = await Promise.all(
    Array.from({ length: 22 }, () => world.call('POST', '/v1/subscriptions', { body })),
  );
  expect(answers.map((answer) => answer.status).sort()).toEqual([...Array(20).fill(201), 409, 409]);
});

test('a secret signs for 24 hours after its rotation, or until the next one', async () => {
  const { id, secret: first } = await pushes.subscribe();
  const rotate = async () =>
    (await world.call<NewSubscriptionResponse>('POST', `/v1/subscriptions/${id}/rotate-secret`)).body;
  const signedBy = async (...secrets: string[]) => {
    await pushes.append(1);
    await world.settle();
    const last = pushes.receiver.attempts.at(-1);
    const { headers, body } = last as NonNullable<typeof last>;
    const at = new Date(Number(headers['webhook-timestamp']) * 1_000);
    const given = String(headers['webhook-signature']).split(' ');
    expect(given).toEqual(secrets.map((secret) => new Webhook(secret).sign(String(headers['webhook-id']), at, body)));
  };
  const { secret: second, formerSecretUntil } = await rotate();
  expect(formerSecretUntil).not.toBeNull();
  await signedBy(second, first);
  await world.advance('12 h');
  const { secret: third } = await rotate();
  await signedBy(third, second);
  await world.advance('23 h');
  await signedBy(third, second);
  await world.advance('1 h');
  await signedBy(third);
  expect(await pushes.read(id)).toMatchObject({ formerSecretUntil: null });
});

test('a test event is sent immediately, signed, and changes nothing', async () => {
  const { id } = await pushes.subscribe();
  await pushes.patch(id, { paused: true });
  pushes.receiver.respond = status(418);
  const { body } = await world.call<PushAnswerResponse>('POST', `/v1/subscriptions/${id}/test`);
  expect(body).toMatchObject({ status: 418, fault: 'error-status' });
  expect(JSON.parse(pushes.receiver.attempts[0]?.body ?? '')).toMatchObject({
    type: 'subscription.test',
    data: { subject: `subscriptions/${id}` },
  });
  expect(await pushes.read(id)).toMatchObject({ state: 'paused', failures: 0, lastAnswer: null });
});

test('skips one event that the endpoint cannot accept; a repeated request skips no second one', async () => {
  const { id } = await pushes.subscribe();
  pushes.receiver.respond = (answer, { body }) => void answer.writeHead(body.includes('1-1') ? 500 : 200).end();
  await pushes.append(3);
  await world.settle();
  const skip = (cursor: string) => world.call('POST', `/v1/subscriptions/${id}/skip`, { body: { cursor } });
  expect(await skip('1-2')).toMatchObject({ status: 409, body: { ...problem('not-next'), next: '1-1' } });
  expect(await skip('1-1')).toMatchObject({ status: 200, body: { cursor: '1-1', state: 'active' } });
  expect(await skip('1-1')).toMatchObject({ status: 409, body: { ...problem('not-next'), next: '1-2' } });
  await world.settle();
  expect(pushes.receiver.taken).toEqual(['1-2', '1-3']);
  expect(await skip('1-3')).toMatchObject({ status: 409, body: { ...problem('not-next'), next: null } });
});

test('a change of the URL takes effect immediately, and forgets the failures of the old one', async () => {
  const { id } = await pushes.subscribe({ url: 'http://127.0.0.1:1/hook' });
  await pushes.append(1);
  await world.settle();
  expect(await pushes.read(id)).toMatchObject({ state: 'retrying', lastAnswer: { fault: 'no-connection' } });
  await pushes.patch(id, { url: pushes.receiver.url });
  await world.settle();
  expect(pushes.receiver.taken).toEqual(['1-1']);
});

test('a secret that cannot be decrypted stops pushes, and a list still shows its subscription', async () => {
  const { id } = await pushes.subscribe({ headers: { 'x-gateway-key': 'g-1' } });
  await world.sql(`UPDATE subscriptions SET secret = '\\x00', former_secret = '\\x00', headers = '\\x00'`);
  await pushes.append(1);
  await world.settle();
  expect(pushes.receiver.attempts).toEqual([]);
  const shown = { id, state: 'retrying', headers: ['x-gateway-key'], behind: 1 };
  expect(await pushes.read(id)).toMatchObject(shown);
  expect(await world.call('GET', '/v1/subscriptions')).toMatchObject({ status: 200, body: { items: [shown] } });
  expect((await pushes.patch(id, { paused: true })).body).toMatchObject({ state: 'paused' });
  const tested = await world.call('POST', `/v1/subscriptions/${id}/test`);
  expect(tested).toMatchObject({ status: 200, body: { status: null, fault: 'internal' } });
});

test('a secret that cannot be decrypted can be replaced, and pushes go on', async () => {
  const { id } = await pushes.subscribe();
  await world.sql(`UPDATE subscriptions SET secret = '\\x00'`);
  await pushes.append(1);
  await world.settle();
  const rotated = await world.call<NewSubscriptionResponse>('POST', `/v1/subscriptions/${id}/rotate-secret`);
  expect(rotated).toMatchObject({ status: 200, body: { formerSecretUntil: null } });
  await world.advance('15 s');
  await world.settle();
  expect(pushes.receiver.taken).toEqual(['1-1']);
  expect(await pushes.read(id)).toMatchObject({ state: 'active' });
});

test('a deleted subscription gets no more events', async () => {
  const { id } = await pushes.subscribe();
  expect(await world.call('DELETE', `/v1/subscriptions/${id}`)).toMatchObject({ status: 204 });
  await pushes.append(1);
  await world.settle();
  expect(pushes.receiver.attempts).toEqual([]);
  expect(await world.call('GET', `/v1/subscriptions/${id}`)).toMatchObject({
    status: 404,
    body: problem('unknown-subscription'),
  });
});
