import { SeededRandom } from '../../simulator/seeded-random.js';
import { PrismaService } from '../../src/database/prisma.service.js';
import { type EventHandler, EventHandlers } from '../../src/webhooks/process/event-handlers.js';
import { FIRST_PLACE, InboxRepository } from '../../src/webhooks/process/inbox.repository.js';
import { deliver, sessionEvent, sessionOf, signed } from '../support/webhook-requests.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();
beforeAll(() => world.sql('CREATE TABLE noted (session text, news int NOT NULL)'));
beforeEach(() => world.sql('DELETE FROM noted'));
afterEach(() => jest.restoreAllMocks());
afterAll(() => world.sql('DROP TABLE noted'));

const FIRST_SEED = Number(process.env.SEED);
const HISTORIES = process.env.FULL === '1' ? 400 : 30;

/** A handler that notes the receipts of each run in its transaction. */
const note: EventHandler['handle'] = async (event, tx) => {
  await tx.$executeRaw`INSERT INTO noted VALUES (${sessionOf(event)}, ${event.news})`;
  return 'processed';
};
const handleBy = (handle: EventHandler['handle']) =>
  jest.spyOn(world.get(EventHandlers), 'of').mockReturnValue({ handle });

const runs = async () =>
  (await world.sql<{ news: number }>('SELECT news FROM noted ORDER BY ctid')).map(({ news }) => news);

const replay = async () => {
  const { items } = (await world.call<{ items: { id: string }[] }>('GET', '/v1/webhook-deliveries')).body;
  for (const { id } of items) await world.call('POST', `/v1/webhook-deliveries/${id}/replay`, { body: {} });
};

test('a run handles all receipts since the last one, and a replay none', async () => {
  handleBy(note);
  const init = signed(sessionEvent('s'));
  await deliver(world, init);
  await world.settle();
  for (let repeats = 0; repeats < 3; repeats += 1) await deliver(world, init);
  await world.settle();
  await replay();
  await world.settle();
  expect(await runs()).toEqual([1, 3, 0]);
});

test('a repeat that arrives during a run counts in the next one', async () => {
  const init = signed(sessionEvent('s'));
  let isFirst = true;
  handleBy(async (event, tx) => {
    if (isFirst) await deliver(world, init);
    isFirst = false;
    return note(event, tx);
  });
  await deliver(world, init);
  await world.settle();
  expect(await runs()).toEqual([1, 1]);
});

test('two processes that handle a delivery at a time count its receipts once', async () => {
  await deliver(world, signed(sessionEvent('s')));
  let other: Promise<unknown> | undefined;
  handleBy(async (event, tx) => {
    if (!other) {
      world.forgetJobs();
      other = world.work.inbox();
      await other;
    }
    return note(event, tx);
  });
  await world.settle();
  expect(await runs()).toEqual([1]);
});

test('each receipt counts once, whatever is killed, repeated, replayed or lost', async () => {
  const found: string[] = [];
  for (let seed = FIRST_SEED; seed < FIRST_SEED + HISTORIES; seed += 1) {
    jest.restoreAllMocks();
    await world.reset();
    await world.sql('DELETE FROM noted');
    const random = new SeededRandom(seed);
    const below = (count: number) => random.below(count);
    const trace: string[] = [];
    let isOver = false;
    let fails = 0;
    const receipts: Record<string, number> = {};
    const others: Promise<unknown>[] = [];
    const init = { a: signed(sessionEvent('a')), b: signed(sessionEvent('b')) };
    const send = async () => {
      const session = below(3) === 0 ? 'b' : 'a';
      trace.push(`send ${session}`);
      const { status } = await deliver(world, init[session]);
      if (status === 204) receipts[session] = (receipts[session] ?? 0) + 1;
    };
    const work = () => void others.push(world.work.inbox());
    const wipe = () => {
      trace.push('wipe');
      world.forgetJobs();
      work();
    };
    handleBy(async (event, tx) => {
      trace.push(`handle ${sessionOf(event)} ${event.news}`);
      if (isOver) return note(event, tx);
      const op = below(8);
      if (op <= 1) await send();
      if (op === 2) await replay();
      if (op === 3 && others.length < 3) wipe();
      if (op === 4) await new Promise((resolve) => setImmediate(resolve));
      const outcome = below(6);
      if (outcome === 0) return 'waiting';
      await note(event, tx);
      if (outcome === 1 && fails < 5) {
        fails += 1;
        throw new Error('broken');
      }
      return 'processed';
    });
    const prisma = world.get(PrismaService);
    const transaction = prisma.transaction.bind(prisma);
    jest.spyOn(prisma, 'transaction').mockImplementation(async (...args: Parameters<typeof transaction>) => {
      const result = await transaction(...args);
      if (!isOver && below(8) === 0 && new Error().stack?.includes('settle')) {
        trace.push('lost commit answer');
        throw Object.assign(new Error('Connection terminated unexpectedly'));
      }
      return result;
    });
    let kills = 0;
    for (let i = 0; i < 14; i += 1) {
      const op = below(8);
      if (op <= 2) await send();
      else if (op === 3) await replay();
      else if (op === 4) await world.advance(`${1 + below(5)} s`);
      else if (op === 5 && kills < 2) {
        kills += 1;
        trace.push('kill');
        await world.get(InboxRepository).start('a', FIRST_PLACE);
      } else work();
      if (below(2) === 0) await Promise.all(others.splice(0));
    }
    await Promise.all(others.splice(0));
    isOver = true;
    for (let i = 0; i < 2; i += 1) {
      await replay(); // also of dead ones
      await world.settle();
    }
    const counted = await world.sql<{ session: string; news: number }>(
      'SELECT session, sum(news)::int AS news FROM noted GROUP BY session',
    );
    const noted = Object.fromEntries(counted.map(({ session, news }) => [session, news]));
    if (JSON.stringify([noted.a, noted.b]) !== JSON.stringify([receipts.a, receipts.b]))
      found.push(
        `seed ${seed}: noted ${JSON.stringify(noted)}, received ${JSON.stringify(receipts)}\n  ${trace.join('\n  ')}`,
      );
  }
  expect(found.slice(0, 2).join('\n')).toBe('');
});
