import { status } from '../../harness/push-receiver.js';
import type { AttemptPageResponse } from '../../src/subscriptions/subscriptions.dto.js';
import { useWorld } from '../world/use-world.js';
import { usePushes } from './pushed.js';

const world = useWorld();
const pushes = usePushes(world);

const attempts = (id: string) => world.call<AttemptPageResponse>('GET', `/v1/subscriptions/${id}/attempts`);

test('lists the attempts with event, status, fault and duration, newest first', async () => {
  const { id } = await pushes.subscribe();
  expect((await attempts(id)).body).toEqual({ items: [], nextCursor: null });
  expect(await pushes.read(id)).toMatchObject({ lastAnswer: null });
  await pushes.append(1);
  await pushes.append(1, 'session.failed');
  pushes.receiver.respond = (answer, { body }) =>
    void answer.writeHead(body.includes('session.failed') ? 503 : 202).end();
  await world.settle();
  await pushes.patch(id, { url: 'http://127.0.0.1:1/hook' });
  await world.settle();
  const { body } = await attempts(id);
  const at = expect.stringMatching(/^\d{4}-/);
  const durationMs = expect.any(Number);
  expect(body).toEqual({
    items: [
      { at, cursor: '1-2', type: 'session.failed', status: null, fault: 'no-connection', durationMs },
      { at, cursor: '1-2', type: 'session.failed', status: 503, fault: 'error-status', durationMs },
      { at, cursor: '1-1', type: 'person.synced', status: 202, fault: null, durationMs },
    ],
    nextCursor: null,
  });
  const [newest] = body.items;
  expect((await pushes.read(id)).lastAnswer).toEqual({ at: newest?.at, status: null, fault: 'no-connection' });
});

test('the duration of an attempt is the time until its answer', async () => {
  const { id } = await pushes.subscribe();
  await pushes.append(1);
  const delivery = await pushes.inDelivery();
  await world.advance('3 s');
  await delivery.answer(204);
  expect((await attempts(id)).body.items).toMatchObject([{ cursor: '1-1', status: 204, durationMs: 3_000 }]);
});

test('keeps the last 50 attempts of each subscription', async () => {
  const { id } = await pushes.subscribe();
  const other = await pushes.subscribe({ types: ['session.failed'] });
  await pushes.append(1, 'session.failed');
  await pushes.append(120);
  await world.settle();
  expect((await attempts(id)).body.items.map(({ cursor }) => cursor)).toEqual(
    Array.from({ length: 50 }, (_, at) => `1-${121 - at}`),
  );
  expect((await attempts(other.id)).body.items.map(({ cursor }) => cursor)).toEqual(['1-1']);
  expect(await world.sql('SELECT count(*)::int AS rows FROM subscription_attempts')).toEqual([{ rows: 51 }]);
});

test('health names the fault of the newest attempt after ten minutes', async () => {
  await pushes.subscribe();
  pushes.receiver.respond = status(500);
  await pushes.append(1);
  await world.settle();
  pushes.receiver.respond = (answer) => void answer.destroy();
  await world.advance('660 s');
  await world.settle();
  const { body } = await world.call<{ causes?: { code: string; cause: string }[] }>('GET', '/health/ready');
  expect(body.causes?.find(({ code }) => code === 'pushes-fail')?.cause).toContain(
    `${new URL(pushes.receiver.url).host} (the connection ended without an answer)`,
  );
});

test('a test event, a skip and a change are no attempts', async () => {
  const { id } = await pushes.subscribe();
  pushes.receiver.respond = status(500);
  await pushes.append(1);
  await world.settle();
  await pushes.patch(id, { paused: true });
  await world.call('POST', `/v1/subscriptions/${id}/test`);
  await world.call('POST', `/v1/subscriptions/${id}/skip`, { body: { cursor: '1-1' } });
  expect((await attempts(id)).body.items).toHaveLength(1);
});

test('attempts are deleted with their subscription, also one that is in progress', async () => {
  const { id } = await pushes.subscribe();
  await pushes.append(1);
  await world.settle();
  await pushes.append(1);
  const delivery = await pushes.inDelivery();
  await world.call('DELETE', `/v1/subscriptions/${id}`);
  await delivery.answer(204);
  expect(await world.sql('SELECT FROM subscription_attempts')).toEqual([]);
  expect(await attempts(id)).toMatchObject({
    status: 404,
    body: { type: 'urn:notebridge:problem:unknown-subscription' },
  });
});
