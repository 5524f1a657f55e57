import { Logger } from '@nestjs/common';
import { PrismaService } from '../../src/database/prisma.service.js';
import { Metrics } from '../../src/monitoring/metrics.js';
import { Vault } from '../../src/vault/vault.js';
import { EventHandlers } from '../../src/webhooks/process/event-handlers.js';
import { InboxRepository } from '../../src/webhooks/process/inbox.repository.js';
import { deliver, sessionEvent, signed } from '../support/webhook-requests.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();
const event = (session: string, step: string, sentAt: number) =>
  signed(sessionEvent(session, `SESSION_${step}`), { timestamp: String(1_800_000_000_000 + sentAt) });
const states = async () =>
  (await world.call<{ items: { state: string; repeats: number }[] }>('GET', '/v1/webhook-deliveries')).body.items;
afterEach(() => jest.restoreAllMocks());

test('a store that is wiped three times during a slow handler makes no dead letter', async () => {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let running = 0;
  const handle = async () => {
    running += 1;
    await released;
    return 'processed' as const;
  };
  jest.spyOn(world.get(EventHandlers), 'of').mockReturnValue({ handle });
  await deliver(world, event('s', 'CREATED', 1));
  const works: Promise<unknown>[] = [];
  for (let wipes = 0; wipes < 3; wipes += 1) {
    works.push(world.work.inbox());
    await world.eventually('it runs', () => running === wipes + 1);
    world.forgetJobs();
    await world.advance('1 s');
  }
  await Promise.race([world.work.inbox(), new Promise((resolve) => setTimeout(resolve, 500))]);
  release();
  await Promise.all(works);
  await world.settle();
  expect(await states()).toMatchObject([{ state: 'processed' }]);
});

test('a lost answer to the commit of an outcome is no failure', async () => {
  const prisma = world.get(PrismaService);
  jest.spyOn(world.get(EventHandlers), 'of').mockReturnValue({ handle: async () => 'processed' });
  await deliver(world, event('s', 'CREATED', 1));
  const transaction = prisma.transaction.bind(prisma);
  let isLost = false;
  jest.spyOn(prisma, 'transaction').mockImplementation(async (...args: Parameters<typeof transaction>) => {
    const result = await transaction(...args);
    if (isLost) return result;
    isLost = true;
    throw Object.assign(new Error('Connection terminated unexpectedly'));
  });
  await world.settle();
  expect(await states()).toMatchObject([{ state: 'processed', repeats: 0 }]);
});

test('a subject with more than a thousand due deliveries hides no other from the feeder', async () => {
  await world.sql(`INSERT INTO webhook_deliveries (signature, body, sent_at, secret_index, subject, due_at)
    SELECT int8send(i), 'x', i, 0, CASE WHEN i > 1000 THEN 'other' ELSE 'busy' END, now() - interval '1 h' + i * interval '1 s'
    FROM generate_series(1, 1001) AS i`);
  const ids = (await world.get(InboxRepository).dueSubjects()).map(({ id }) => id);
  expect(ids).toEqual(['busy', 'other']);
});

test('the audit log tells a dry run from a replay, and says what was replayed', async () => {
  await deliver(world, event('s', 'CREATED', 1));
  await world.settle();
  const replay = (body: object) =>
    world.call<{ plan: object }>('POST', '/v1/webhook-deliveries/replay', { body: { state: 'processed', ...body } });
  const { plan } = (await replay({ dryRun: true })).body;
  await replay({ plan });
  const { items } = (await world.call<{ items: { summary: string; filter: object | null }[] }>('GET', '/v1/audit'))
    .body;
  const [replayed, counted] = items.filter(({ summary }) => summary.includes('webhook deliveries'));
  expect(replayed?.summary).not.toBe(counted?.summary);
  expect(replayed?.filter).not.toBeNull();
});

test('a genuine delivery that cannot be sealed or stored is counted, and its cause is logged', async () => {
  const lines: unknown[] = [];
  for (const level of ['warn', 'error'] as const)
    jest.spyOn(Logger.prototype, level).mockImplementation((line) => void lines.push(line));
  const count = async () =>
    (await world.get(Metrics).registry.getSingleMetric('notebridge_webhook_not_kept_total')?.get())?.values[0]?.value ??
    0;
  const before = await count();
  jest.spyOn(world.get(Vault), 'seal').mockImplementation(() => {
    throw new RangeError('no key');
  });
  expect((await fetch(`${world.url}/webhooks/platform`, event('s', 'CREATED', 1))).status).toBe(503);
  expect([(await count()) - before, lines.length > 0]).toEqual([1, true]);
});
