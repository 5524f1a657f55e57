import pg from 'pg';
import type { Tx } from '../../src/database/prisma.service.js';
import type { HealthReport } from '../../src/operations/overview/health-report.js';
import { EventHandlers, type Handled, type InboxEvent } from '../../src/webhooks/process/event-handlers.js';
import { InboxRepository } from '../../src/webhooks/process/inbox.repository.js';
import { deliver, sessionEvent, sessionOf, signed } from '../support/webhook-requests.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

interface Delivery {
  id: string;
  state: string;
  attempts: number;
  repeats: number;
  error: { code: string } | null;
}

let handled: string[] = [];
type Script = (event: InboxEvent, tx: Tx) => Promise<Handled>;
function handleBy(script: Script): void {
  const handle = async (event: InboxEvent, tx: Tx) => {
    const result = await script(event, tx);
    if (result === 'processed') handled.push(`${sessionOf(event)} ${event.eventType.split('_').at(-1)}`);
    return result;
  };
  jest.spyOn(world.get(EventHandlers), 'of').mockReturnValue({ handle });
}
beforeEach(() => {
  handled = [];
  handleBy(async () => 'processed');
});
afterEach(() => jest.restoreAllMocks());

const event = (session: string, step: string, sentAt: number) =>
  signed(sessionEvent(session, `SESSION_${step}`), { timestamp: String(1_800_000_000_000 + sentAt) });
const send = async (init: RequestInit): Promise<void> => expect((await deliver(world, init)).status).toBe(204);
const deliveries = async (): Promise<Delivery[]> =>
  (await world.call<{ items: Delivery[] }>('GET', '/v1/webhook-deliveries?limit=200')).body.items.reverse();

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

test('a replay takes exactly the counted deliveries', async () => {
  handleBy(async (e) => {
    if (sessionOf(e) === 'late') throw new Error('broken');
    return 'processed';
  });
  await send(event('late', 'CREATED', 1));
  await send(event('a', 'CREATED', 2));
  await send(event('b', 'CREATED', 3));
  await world.settle();
  const body = { state: 'processed', dryRun: true };
  const { plan } = (await world.call<{ plan: object }>('POST', '/v1/webhook-deliveries/replay', { body })).body;
  handleBy(async (e) => {
    if (sessionOf(e) === 'b') throw new Error('broken');
    return 'processed';
  });
  const b = (await deliveries())[2];
  await world.call('POST', `/v1/webhook-deliveries/${b?.id}/replay`, { body: {} });
  await world.settle();
  await world.advance('2 s');
  await world.settle();
  const states = (await deliveries()).map(({ state }) => state);
  expect(states).toEqual(['processed', 'processed', 'failed']);
  const answer = await world.call('POST', '/v1/webhook-deliveries/replay', { body: { state: 'processed', plan } });
  expect(answer.status).toBe(409);
});

test('EXPLORE updateMany is one statement', async () => {
  await send(event('s', 'CREATED', 1));
  const seen: string[] = [];
  const { query } = pg.Client.prototype;
  jest.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args: unknown[]) {
    const [q] = args;
    const text = typeof q === 'string' ? q : (q as { text: string }).text;
    if (/webhook_deliveries|BEGIN|COMMIT/.test(String(text))) seen.push(String(text).slice(0, 400));
    return Reflect.apply(query as never, this, args) as never;
  } as never);
  await world.settle();
  const [d] = await deliveries();
  await world.call('POST', `/v1/webhook-deliveries/${d?.id}/replay`, { body: {} });
  process.stderr.write(`${seen.join('\n')}\n`);
});
