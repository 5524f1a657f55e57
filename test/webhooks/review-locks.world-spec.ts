import { Logger } from '@nestjs/common';
import { EventHandlers, type InboxEvent } from '../../src/webhooks/process/event-handlers.js';
import { InboxRepository } from '../../src/webhooks/process/inbox.repository.js';
import { deliver, sessionEvent, sessionOf, signed } from '../support/webhook-requests.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();
const event = (session: string, step: string, sentAt: number) =>
  signed(sessionEvent(session, `SESSION_${step}`), { timestamp: String(1_800_000_000_000 + sentAt) });
const sig = (init: { headers: Record<string, string> }) => init.headers['x-service-signature'] ?? '';
afterEach(() => jest.restoreAllMocks());

test('repeats and a worker that holds back their subject do not deadlock', async () => {
  const handle = async ({ eventType }: InboxEvent) => {
    if (eventType === 'SESSION_CREATED') throw new Error('broken');
    return 'processed' as const;
  };
  jest.spyOn(world.get(EventHandlers), 'of').mockReturnValue({ handle });
  await deliver(world, event('s', 'CREATED', 1));
  await world.settle();
  // Two whose signatures are in the other order than their timestamps.
  let [one, other] = [event('s', 'PROCESSING_STARTED', 2), event('s', 'PROCESSING_STARTED', 3)];
  for (let at = 4; sig(one) < sig(other); at += 1) [one, other] = [other, event('s', 'PROCESSING_STARTED', at)];
  await deliver(world, one);
  await deliver(world, other);
  await world.sql(
    `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.2); RETURN NEW; END $$`,
  );
  await world.sql('CREATE TRIGGER slow BEFORE UPDATE ON webhook_deliveries FOR EACH ROW EXECUTE FUNCTION slow()');
  try {
    const held = world
      .get(InboxRepository)
      .holdBack('s')
      .then(
        () => 'ok',
        (e: Error) => `${e.message}`.slice(-300),
      );
    const answers = await Promise.all([deliver(world, one), deliver(world, other)]);
    expect(answers.map(({ status }) => status)).toEqual([204, 204]);
    expect(await held).toBe('ok');
  } finally {
    await world.sql('DROP TRIGGER slow ON webhook_deliveries');
    await world.sql('DROP FUNCTION slow');
  }
});

test('a log line about a subject does not name it', async () => {
  const lines: unknown[] = [];
  jest.spyOn(Logger.prototype, 'error').mockImplementation((line) => void lines.push(line));
  jest.spyOn(world.get(InboxRepository), 'holdBack').mockRejectedValue(new Error('deadlock'));
  jest
    .spyOn(world.get(EventHandlers), 'of')
    .mockReturnValue({ handle: async (e) => (sessionOf(e) ? 'waiting' : 'ignored') });
  await deliver(world, event('jane.roe@example.org', 'CREATED', 1));
  await deliver(world, event('jane.roe@example.org', 'CREATED', 2));
  await world.settle();
  expect(lines).not.toHaveLength(0);
  expect(JSON.stringify(lines)).not.toContain('jane.roe');
});

test('an event of an id of 512 odd characters is processed', async () => {
  const odd = `${'"\'{}%:\n\\*é日😀'.repeat(60)}`.slice(0, 511);
  jest.spyOn(world.get(EventHandlers), 'of').mockReturnValue({ handle: async () => 'processed' });
  for (const timestamp of ['0', '999999999999999', '000000000000001'])
    expect((await deliver(world, signed(sessionEvent(odd), { timestamp }))).status).toBe(204);
  for (const body of [
    '[[[['.repeat(50_000),
    `{"eventType":"SESSION_CREATED","sessionId":"\\ud800"}`,
    `{"__proto__":{"eventType":"SESSION_CREATED","sessionId":"x"}}`,
    `{"eventType":"SESSION_CREATED","sessionId":"a\\u0000b"}`,
  ])
    expect((await deliver(world, signed(body))).status).toBe(204);
  await world.settle();
  const { body } = await world.call<{ items: { state: string; sentAt: string }[] }>('GET', '/v1/webhook-deliveries');
  process.stderr.write(JSON.stringify(body.items.map(({ state, sentAt }) => [state, sentAt])) + '\n');
});

test('several repeats are each processed again, as the API says', async () => {
  let times = 0;
  jest.spyOn(world.get(EventHandlers), 'of').mockReturnValue({
    handle: async () => {
      times += 1;
      return 'processed';
    },
  });
  const init = event('s', 'CREATED', 1);
  for (let i = 0; i < 4; i += 1) await deliver(world, init);
  await world.settle();
  const { body } = await world.call<{ items: { repeats: number }[] }>('GET', '/v1/webhook-deliveries');
  expect(times).toBe(1 + (body.items[0]?.repeats ?? 0));
});
