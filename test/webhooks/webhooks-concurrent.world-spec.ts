import { PrismaService, type Tx } from '../../src/database/prisma.service.js';
import { DueLoopDeps } from '../../src/due-rows/due-loop.js';
import { Metrics } from '../../src/monitoring/metrics.js';
import { Contract } from '../../src/platform/contract/contract.js';
import { Vault } from '../../src/vault/vault.js';
import { EventHandlers, type Handled, type InboxEvent } from '../../src/webhooks/process/event-handlers.js';
import { InboxRepository } from '../../src/webhooks/process/inbox.repository.js';
import { InboxLoop } from '../../src/webhooks/process/inbox-loop.js';
import { deliver, sessionEvent, sessionOf, signed } from '../support/webhook-requests.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

type Script = (session: string, tx: Tx) => Promise<Handled>;

function handleBy(script: Script): void {
  const handle = (event: InboxEvent, tx: Tx) => script(sessionOf(event), tx);
  jest.spyOn(world.get(EventHandlers), 'of').mockReturnValue({ handle });
}

const send = async (session: string, eventType = 'SESSION_CREATED') =>
  expect((await deliver(world, signed(sessionEvent(session, eventType)))).status).toBe(204);

const inbox = () =>
  world.sql<{ id: string; state: string; attempts: number; takes: number; reason: string | null }>(
    'SELECT id, state, attempts, takes, reason FROM webhook_deliveries ORDER BY id',
  );
const states = async () => (await inbox()).map(({ state }) => state);
const received = { state: 'received', attempts: 0, takes: 1 };

/** The inbox worker of another process. */
const newWorker = () =>
  new InboxLoop(
    world.get(PrismaService),
    world.get(InboxRepository),
    world.get(EventHandlers),
    world.get(Vault),
    Contract.of({}),
    {
      ...world.get(DueLoopDeps),
      metrics: new Metrics(),
    },
  );

/** Deliveries whose handler does not return until the test ends: to other workers, its process was killed. */
describe('a killed worker', () => {
  const workers: InboxLoop[] = [];
  const handled: string[] = [];
  let reached: (session: string) => void;
  let revive: () => void;

  beforeEach(() => {
    handled.length = 0;
    const revived = new Promise<void>((resolve) => {
      revive = resolve;
    });
    handleBy(async (session) => {
      handled.push(session);
      reached(session);
      if (session.startsWith('killer')) await revived;
      return 'processed';
    });
  });

  afterEach(ended);

  /** Lets the killed workers continue as stale ones. */
  async function ended(): Promise<void> {
    revive();
    for (const worker of workers.splice(0)) await worker.finished();
  }

  /** Starts a worker that is killed in the middle of its work. */
  async function kill(): Promise<void> {
    const killed = new Promise<void>((resolve) => {
      reached = (session) => session.startsWith('killer') && resolve();
    });
    const worker = newWorker();
    workers.push(worker);
    worker.trigger();
    await killed;
  }

  it('leaves its batch to others after 30 s, each delivery alone', async () => {
    const transactions = jest.spyOn(world.get(InboxRepository), 'transaction');
    for (const session of ['a', 'killer', 'z']) await send(session);
    await kill();
    expect(handled).toEqual(['a', 'killer']);
    expect(await inbox()).toMatchObject([received, received, received]);
    await world.advance('29 s');
    await world.settle();
    expect(handled).toHaveLength(2);
    await world.advance('1 s');
    await kill();
    expect(await states()).toEqual(['processed', 'received', 'received']);
    await world.settle();
    expect(await states()).toEqual(['processed', 'received', 'processed']);
    expect(handled).toEqual(['a', 'killer', 'a', 'killer', 'z']);
    expect(transactions).toHaveBeenCalledTimes(4);
  });

  it('is the end of a delivery that kills three', async () => {
    await send('killer');
    for (let kills = 0; kills < 3; kills += 1) {
      await kill();
      await world.advance('30 s');
    }
    await send('innocent');
    await world.settle();
    const dead = { state: 'dead', attempts: 3, takes: 0, reason: 'no-outcome' };
    expect(await inbox()).toMatchObject([dead, { state: 'processed', attempts: 0 }]);
    const { body } = await world.call<{ items: { id: string }[] }>('GET', '/v1/webhook-deliveries?state=dead');
    expect(body.items).toMatchObject([{ error: { code: 'no-outcome', message: expect.stringContaining('three') } }]);
    await ended();
    expect(await inbox()).toMatchObject([dead, { state: 'processed' }]);
    handleBy(async () => 'processed');
    await world.call('POST', `/v1/webhook-deliveries/${body.items[0]?.id}/replay`, { body: {} });
    await world.settle();
    expect(await states()).toEqual(['processed', 'processed']);
  });

  it('stores no outcome over a newer attempt', async () => {
    await send('killer');
    await kill();
    await world.advance('30 s');
    handleBy(async () => 'ignored');
    await world.settle();
    expect(await states()).toEqual(['ignored']);
    await ended();
    expect(await states()).toEqual(['ignored']);
  });

  it('does not end a delivery whose earlier attempts had an outcome', async () => {
    await send('killer');
    for (let times = 0; times < 2; times += 1) {
      await kill();
      await world.advance('30 s');
    }
    handleBy(async () => 'waiting');
    await world.settle();
    expect(await inbox()).toMatchObject([{ state: 'received', takes: 0 }]);
  });
});

test('two workers process the events of the same sessions without failed attempts', async () => {
  const types = ['SESSION_CREATED', 'SESSION_PROCESSING_STARTED', 'SESSION_PROCESSING_COMPLETED'];
  for (const type of types) for (const session of ['d', 'b', 'e', 'c', 'a']) await send(session, type);
  const other = newWorker();
  other.trigger();
  await Promise.all([world.work.inbox(), other.finished()]);
  await world.settle();
  expect(await inbox()).toMatchObject(Array(15).fill({ state: 'processed', attempts: 0, takes: 0 }));
  expect(await world.sql('SELECT event_state FROM sessions')).toEqual(Array(5).fill({ event_state: 'Done' }));
});

test('a batch commits after a second, so that others do not wait long for its locks', async () => {
  const transactions = new Set<unknown>();
  handleBy(async (_session, tx) => {
    const [row] = await tx.$queryRaw<{ id: string }[]>`SELECT pg_current_xact_id()::text AS id`;
    transactions.add(row?.id);
    await world.advance('1100 ms');
    return 'processed';
  });
  for (const session of ['a', 'b', 'c', 'd', 'e']) await send(session);
  await world.settle();
  expect(await inbox()).toMatchObject(Array(5).fill({ state: 'processed', attempts: 0, takes: 0 }));
  expect(transactions.size).toBe(5);
});
