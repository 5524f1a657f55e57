import { FIRST_PLACE, InboxRepository } from '../../src/webhooks/process/inbox.repository.js';
import { deliver, sessionEvent, signed } from '../support/webhook-requests.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

interface Delivery {
  id: string;
  state: string;
  attempts: number;
  error: { code: string; message: string } | null;
}

const send = async (session: string) =>
  expect((await deliver(world, signed(sessionEvent(session, 'SESSION_CREATED')))).status).toBe(204);

const deliveries = async () =>
  (await world.call<{ items: Delivery[] }>('GET', '/v1/webhook-deliveries')).body.items.reverse();

/** A worker that starts on a delivery and is killed: nothing else of it is left. */
const kill = (session: string) => world.get(InboxRepository).start(session, FIRST_PLACE);

test('a delivery whose process is killed twice is handled by the next one', async () => {
  await send('s');
  for (let kills = 0; kills < 2; kills += 1) await kill('s');
  await world.settle();
  expect(await deliveries()).toMatchObject([{ state: 'processed', attempts: 0 }]);
});

test('a delivery that kills three processes is dead, stops no other, and can be replayed', async () => {
  await send('killer');
  await send('innocent');
  for (let kills = 0; kills < 3; kills += 1) await kill('killer');
  await world.settle();
  const [dead, other] = await deliveries();
  expect([dead, other]).toMatchObject([
    { state: 'dead', attempts: 3, error: { code: 'no-outcome', message: expect.stringContaining('three') } },
    { state: 'processed', attempts: 0 },
  ]);
  await world.call('POST', `/v1/webhook-deliveries/${dead?.id}/replay`, { body: {} });
  await world.settle();
  expect(await deliveries()).toMatchObject([{ state: 'processed' }, { state: 'processed' }]);
});

test('a kill before an outcome counts no more after it', async () => {
  await send('s');
  for (let replays = 0; replays < 3; replays += 1) {
    await kill('s');
    await kill('s');
    await world.settle();
    const [delivery] = await deliveries();
    expect(delivery).toMatchObject({ state: 'processed' });
    await world.call('POST', `/v1/webhook-deliveries/${delivery?.id}/replay`, { body: {} });
  }
});

test('a process that was taken for dead stores no outcome over a replay', async () => {
  await send('s');
  const stale = await kill('s');
  await world.settle();
  const [delivery] = await deliveries();
  await world.advance('1 s');
  await world.call('POST', `/v1/webhook-deliveries/${delivery?.id}/replay`, { body: {} });
  if (stale) await world.get(InboxRepository).end(stale, { state: 'dead', reason: 'no-outcome' });
  expect(await deliveries()).toMatchObject([{ state: 'received' }]);
  await world.settle();
  expect(await deliveries()).toMatchObject([{ state: 'processed' }]);
});
