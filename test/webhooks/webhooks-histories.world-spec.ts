import { SeededRandom } from '../../simulator/seeded-random.js';
import { PrismaService } from '../../src/database/prisma.service.js';
import { EventHandlers, type Handled, type InboxEvent } from '../../src/webhooks/process/event-handlers.js';
import { FIRST_PLACE, InboxRepository } from '../../src/webhooks/process/inbox.repository.js';
import { deliver, sessionEvent, signed } from '../support/webhook-requests.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();
afterEach(() => jest.restoreAllMocks());

const FIRST_SEED = Number(process.env.SEED);
const HISTORIES = process.env.FULL === '1' ? 400 : 30;

test('every acknowledged delivery, repeat and replay is followed by a run of its handler that began later', async () => {
  const found: string[] = [];
  for (let seed = FIRST_SEED; seed < FIRST_SEED + HISTORIES; seed += 1) {
    jest.restoreAllMocks();
    await world.reset();
    const random = new SeededRandom(seed);
    const below = (count: number) => random.below(count);
    const trace: string[] = [];
    let seq = 0;
    let isOver = false;
    const acked = new Map<string, number>();
    const begun = new Map<string, number>();
    const sent = Array.from({ length: 4 }, (_, i) => {
      const step = ['CREATED', 'PROCESSING_STARTED', 'PROCESSING_NOTES_COMPLETED', 'PROCESSING_COMPLETED'][i] ?? '';
      const type = `SESSION_${step}`;
      const session = i === 3 ? 'b' : 'a';
      return {
        key: `${session} ${type}`,
        init: signed(sessionEvent(session, type), { timestamp: String(1_800_000_000_000 + below(3)) }),
      };
    });
    const prisma = world.get(PrismaService);
    const idOf = async (key: string) => {
      const [session, type] = key.split(' ');
      const rows = await world.sql<{ id: string }>(
        'SELECT id::text FROM webhook_deliveries WHERE subject = $1 AND event_type = $2',
        [session, type],
      );
      return rows[0]?.id;
    };
    const send = async () => {
      const { key, init } = sent[below(sent.length)] ?? (sent[0] as (typeof sent)[0]);
      trace.push(`send ${key}`);
      const issued = ++seq; // a run that began later may have seen it already
      const { status } = await deliver(world, init);
      if (status === 204) acked.set(key, Math.max(issued, acked.get(key) ?? 0));
    };
    const replay = async () => {
      const { key } = sent[below(sent.length)] ?? (sent[0] as (typeof sent)[0]);
      const id = await idOf(key);
      if (!id) return;
      trace.push(`replay ${key}`);
      const issued = ++seq;
      await world.call('POST', `/v1/webhook-deliveries/${id}/replay`, { body: {} });
      acked.set(key, Math.max(issued, acked.get(key) ?? 0));
    };
    const replayAll = async () => {
      const state = ['processed', 'failed', 'received'][below(3)];
      const call = (body: object) =>
        world.call<{ plan: object; count: number }>('POST', '/v1/webhook-deliveries/replay', {
          body: { state, ...body },
        });
      const { plan } = (await call({ dryRun: true })).body;
      const before = await world.sql<{ key: string }>(
        `SELECT subject || ' ' || event_type AS key FROM webhook_deliveries WHERE state = $1`,
        [state],
      );
      const issued = ++seq;
      const { status } = await call({ plan });
      trace.push(`replayAll ${state} ${status}`);
      if (status === 200) for (const { key } of before) acked.set(key, Math.max(issued, acked.get(key) ?? 0));
    };
    const others: Promise<unknown>[] = [];
    const wipe = async () => {
      trace.push('wipe');
      world.forgetJobs();
      others.push(world.work.inbox());
    };
    const kill = async () => {
      trace.push('kill');
      await world.get(InboxRepository).start('a', FIRST_PLACE);
    };
    let fails = 0;
    const handle = async (event: InboxEvent): Promise<Handled> => {
      const key = `${'sessionId' in event ? event.sessionId : ''} ${event.eventType}`;
      const began = ++seq;
      trace.push(`handle ${key} ${began}`);
      if (!isOver) {
        const op = below(8);
        if (op === 0) await send();
        if (op === 1) await replay();
        if (op === 2 && others.length < 2) await wipe();
        if (op === 3) await new Promise((resolve) => setImmediate(resolve));
        const outcome = below(6);
        if (outcome === 0 && fails < 5) {
          fails += 1;
          trace.push(`throw ${key}`);
          throw new Error('broken');
        }
        if (outcome === 1) {
          trace.push(`waiting ${key}`);
          return 'waiting';
        }
      }
      begun.set(key, began);
      return 'processed';
    };
    jest.spyOn(world.get(EventHandlers), 'of').mockReturnValue({ handle });
    const transaction = prisma.transaction.bind(prisma);
    jest.spyOn(prisma, 'transaction').mockImplementation(async (...args: Parameters<typeof transaction>) => {
      const result = await transaction(...args);
      if (!isOver && below(12) === 0 && new Error().stack?.includes('settle')) {
        trace.push('lost commit answer');
        throw Object.assign(new Error('Connection terminated unexpectedly'));
      }
      return result;
    });
    let kills = 0;
    for (let i = 0; i < 14; i += 1) {
      const op = below(9);
      if (op <= 2) await send();
      else if (op === 3) await replay();
      else if (op === 4) {
        await Promise.all(others.splice(0)); // so that what is selected stays what was counted
        await replayAll();
      } else if (op === 5) await world.advance(`${1 + below(5)} s`);
      else if (op === 6 && kills < 2) {
        kills += 1;
        await kill();
      } else others.push(world.work.inbox().catch((error: unknown) => void trace.push(String(error))));
      if (below(2) === 0) await Promise.all(others.splice(0));
    }
    await Promise.all(others.splice(0));
    isOver = true;
    for (let i = 0; i < 12; i += 1) {
      await world.advance('40 s');
      await world.work.inbox();
      await Promise.all(others.splice(0));
    }
    const rows = await world.sql<{ key: string; state: string; due_at: Date | null; starts: number }>(
      `SELECT subject || ' ' || event_type AS key, state, due_at, starts FROM webhook_deliveries`,
    );
    const unhandled = rows.filter(
      ({ key, state, due_at, starts }) =>
        state !== 'processed' || due_at !== null || starts !== 0 || (begun.get(key) ?? 0) < (acked.get(key) ?? 0),
    );
    if (unhandled.length > 0) found.push(`seed ${seed}: ${JSON.stringify(unhandled)}\n  ${trace.join('\n  ')}`);
  }
  expect(found.slice(0, 2).join('\n')).toBe('');
});
