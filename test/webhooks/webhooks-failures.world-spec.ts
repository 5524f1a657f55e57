import { Logger } from '@nestjs/common';
import { PrismaService } from '../../src/database/prisma.service.js';
import { Metrics } from '../../src/monitoring/metrics.js';
import type { HealthReport } from '../../src/operations/overview/health-report.js';
import { Vault } from '../../src/vault/vault.js';
import { EventHandlers, type Handled, type InboxEvent } from '../../src/webhooks/process/event-handlers.js';
import { FIRST_PLACE, InboxRepository } from '../../src/webhooks/process/inbox.repository.js';
import { deliver, sessionEvent, signed } from '../support/webhook-requests.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

interface Delivery {
  id: string;
  state: string;
  repeats: number;
}

afterEach(() => jest.restoreAllMocks());

const handleBy = (handle: (event: InboxEvent) => Promise<Handled>) =>
  jest.spyOn(world.get(EventHandlers), 'of').mockReturnValue({ handle });

const event = (session: string, step: string, sentAt: number) =>
  signed(sessionEvent(session, `SESSION_${step}`), { timestamp: String(1_800_000_000_000 + sentAt) });

const send = async (init: RequestInit): Promise<void> => expect((await deliver(world, init)).status).toBe(204);

const deliveries = async (): Promise<Delivery[]> =>
  (await world.call<{ items: Delivery[] }>('GET', '/v1/webhook-deliveries?limit=200')).body.items.reverse();

const sig = (init: { headers: Record<string, string> }) => init.headers['x-service-signature'] ?? '';

/** The lines of the log from now on. */
function logged(): unknown[] {
  const lines: unknown[] = [];
  for (const level of ['warn', 'error'] as const)
    jest.spyOn(Logger.prototype, level).mockImplementation((...line: unknown[]) => void lines.push(line));
  return lines;
}

test('lost answers to the start of a delivery make no dead letter', async () => {
  const inbox = world.get(InboxRepository);
  const start = inbox.start.bind(inbox);
  let lost = 0;
  jest.spyOn(inbox, 'start').mockImplementation(async (...args) => {
    const started = await start(...args);
    lost += 1;
    if (lost <= 3) throw Object.assign(new Error('Query read timeout'));
    return started;
  });
  await send(event('s', 'CREATED', 1));
  for (let i = 0; i < 5; i += 1) {
    await world.settle();
    await world.advance('20 s');
  }
  await world.settle();
  expect(await deliveries()).toMatchObject([{ state: 'processed' }]);
});

test('a store that is wiped twice during a slow handler, after a kill, makes no dead letter', async () => {
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
  handleBy(handle);
  await send(event('s', 'CREATED', 1));
  await world.get(InboxRepository).start('s', FIRST_PLACE); // by a process that is killed
  const works: Promise<unknown>[] = [];
  for (let wipes = 0; wipes < 2; wipes += 1) {
    works.push(world.work.inbox());
    await world.eventually('it runs', () => running === wipes + 1);
    world.forgetJobs();
    await world.advance('1 s');
  }
  await world.work.inbox();
  expect(await deliveries()).toMatchObject([{ state: 'dead' }]);
  release();
  await Promise.all(works);
  await world.settle();
  expect(await deliveries()).toMatchObject([{ state: 'processed' }]);
});

test('a lost answer to the commit of an outcome is no failure', async () => {
  const prisma = world.get(PrismaService);
  handleBy(async () => 'processed');
  await send(event('s', 'CREATED', 1));
  const transaction = prisma.transaction.bind(prisma);
  let isLost = false;
  jest.spyOn(prisma, 'transaction').mockImplementation(async (...args: Parameters<typeof transaction>) => {
    const result = await transaction(...args);
    if (isLost) return result;
    isLost = true;
    throw Object.assign(new Error('Connection terminated unexpectedly'));
  });
  await world.settle();
  expect(await deliveries()).toMatchObject([{ state: 'processed', repeats: 0 }]);
});

test('a database that lacks resources for ten minutes makes no dead letter', async () => {
  let isFull = true;
  handleBy(async () => {
    if (isFull) throw Object.assign(new Error('could not extend file'), { code: '53100' });
    return 'processed';
  });
  await send(event('s', 'CREATED', 1));
  for (let i = 0; i < 30; i += 1) {
    await world.settle();
    await world.advance('20 s');
  }
  isFull = false;
  await world.advance('1 h');
  await world.settle();
  expect(await deliveries()).toMatchObject([{ state: 'processed' }]);
});

test('a replay of the first delivery of a subject frees those that it held back', async () => {
  let isBroken = true;
  handleBy(async ({ eventType }) => {
    if (isBroken && eventType === 'SESSION_CREATED') throw new Error('broken');
    return 'processed';
  });
  await send(event('s', 'CREATED', 1));
  await send(event('s', 'PROCESSING_STARTED', 2));
  for (let attempt = 1; attempt < 6; attempt += 1) {
    await world.settle();
    await world.advance('40 s');
  }
  await world.settle();
  const [first] = await deliveries();
  expect(first).toMatchObject({ state: 'failed' });
  isBroken = false;
  await world.call('POST', `/v1/webhook-deliveries/${first?.id}/replay`, { body: {} });
  await world.settle();
  expect(await deliveries()).toMatchObject([{ state: 'processed' }, { state: 'processed' }]);
});

test('repeats and a worker that holds back their subject do not deadlock', async () => {
  const handle = async ({ eventType }: InboxEvent) => {
    if (eventType === 'SESSION_CREATED') throw new Error('broken');
    return 'processed' as const;
  };
  handleBy(handle);
  await send(event('s', 'CREATED', 1));
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
  const lines = logged();
  jest.spyOn(world.get(InboxRepository), 'holdBack').mockRejectedValue(new Error('deadlock'));
  handleBy(async () => 'waiting');
  await send(event('jane.roe@example.org', 'CREATED', 1));
  await send(event('jane.roe@example.org', 'CREATED', 2));
  await world.settle();
  expect(lines).not.toHaveLength(0);
  expect(JSON.stringify(lines)).not.toContain('jane.roe');
});

test('a delivery that cannot be stored is a cause of health', async () => {
  await world.sql(
    `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '53100'; END $$`,
  );
  await world.sql('CREATE TRIGGER refuse BEFORE INSERT ON webhook_deliveries FOR EACH ROW EXECUTE FUNCTION refuse()');
  try {
    const answers = [];
    for (let i = 0; i < 20; i += 1)
      answers.push((await fetch(`${world.url}/webhooks/platform`, event('s', 'CREATED', i))).status);
    expect(new Set(answers)).toEqual(new Set([503]));
    const { status, checks } = (await world.call<HealthReport>('GET', '/health/ready')).body;
    expect([status, checks.inbox?.status, checks.webhooks?.status]).not.toEqual(['ok', 'ok', 'ok']);
  } finally {
    await world.sql('DROP TRIGGER refuse ON webhook_deliveries');
    await world.sql('DROP FUNCTION refuse');
  }
});

test('a genuine delivery that cannot be sealed or stored is counted, and its cause is logged', async () => {
  const lines = logged();
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

test('odd ids, timestamps and bodies are stored, shown and processed', async () => {
  const odd = `${'"\'{}%:\n\\*é日😀'.repeat(60)}`.slice(0, 511);
  handleBy(async () => 'processed');
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
  const { items } = (await world.call<{ items: { state: string; sentAt: string }[] }>('GET', '/v1/webhook-deliveries'))
    .body;
  expect(items.filter(({ state }) => state === 'processed')).toHaveLength(3);
  expect(items.filter(({ sentAt }) => sentAt.startsWith('9999-12-31'))).toHaveLength(1);
});
