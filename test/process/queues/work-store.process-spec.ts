import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { PushReceiver, status } from '../../../harness/push-receiver.js';
import type { Service } from '../../../harness/service.js';
import { until } from '../../../harness/until.js';
import { useTestWorlds } from '../../support/service.js';
import { type HarmedStore, harmedPostgres, harmedRedis } from '../../support/work-stores.js';

/** Maximum share of a core that a process uses while its store fails. One that spins uses all of it. */
const MAX_CPU = 0.1;

/** Maximum time from SIGTERM to the end of an idle process. */
const MAX_STOP_MS = 15_000;

/** Maximum lines about one fault of a store. */
const MAX_LINES = 12;

/** How long a fault lasts. */
const FAULT_MS = 3_000;

/** Maximum time from the return of a store until an event is pushed. BullMQ would wait 15 s. */
const MAX_RETURN_MS = 12_000;

/** How long the others wait for a killed process: the attempt in progress may take effect for 20 s. The rest is for a busy machine. */
const MAX_GAP_MS = 40_000;

const STORES = [
  ['Redis', harmedRedis],
  ['PostgreSQL', harmedPostgres],
] as const;

/** A service that pushes to an endpoint, with its queues in a store that can be harmed. */
function usePushingServices() {
  const newWorld = useTestWorlds();
  const closing: (() => Promise<unknown>)[] = [];
  afterAll(async () => {
    for (const close of closing) await close();
  });
  return async (newStore: () => Promise<HarmedStore>) => {
    const [store, receiver] = await Promise.all([newStore(), PushReceiver.start()]);
    closing.push(store.close, () => receiver.close());
    const world = await newWorld({ database: store.database, env: store.env });
    const service = await world.start();
    await service.call('POST', '/v1/subscriptions', { body: { url: receiver.url } });
    return {
      store,
      world,
      service,
      /** Appends three events without waking anyone. */
      append: () =>
        world.sql(`INSERT INTO feed_events (type, subject, data)
          SELECT 'person.synced', 'clients/c-' || n, '{"externalId": "c-1"}' FROM generate_series(1, 3) AS n`),
      /** Waits until the endpoint took every event, and checks that it took each once, in order. */
      allArePushed: async () => {
        const counted = await world.sql<{ events: number }>('SELECT count(*)::int AS events FROM feed_events');
        const events = counted[0]?.events ?? 0;
        await until('every event is pushed and settled', async () => {
          const unsettled = 'SELECT FROM subscriptions WHERE position < $1 OR due_at IS NOT NULL';
          return (await world.sql(unsettled, [events])).length === 0;
        });
        expect(receiver.taken).toEqual(Array.from({ length: events }, (_, at) => `1-${at + 1}`));
      },
      /** The endpoint keeps the next message. Resolves once it has arrived, to a function that answers it. */
      keepNext: () =>
        new Promise<() => void>((resolve) => {
          receiver.respond = (answer) => {
            receiver.respond = status(204);
            resolve(() => void answer.writeHead(204).end());
          };
        }),
    };
  };
}

type Pushing = Awaited<ReturnType<ReturnType<typeof usePushingServices>>>;

const FAULTS = [
  ['cannot be reached', (store: HarmedStore) => store.leave(), (store: HarmedStore) => store.comeBack()],
  ['never answers', async (store: HarmedStore) => store.stall(), async (store: HarmedStore) => store.resume()],
] as const;

describe.each(STORES)('with its queues on %s, a service', (name, newStore) => {
  const newPushing = usePushingServices();
  let pushing: Pushing;
  let service: Service;

  beforeAll(async () => {
    pushing = await newPushing(newStore);
    service = pushing.service;
  });

  test('goes on with its pushes after its store was wiped in the middle of one', async () => {
    const kept = pushing.keepNext();
    await pushing.append();
    const answer = await kept;
    await pushing.store.wipe();
    answer();
    await pushing.allArePushed();
    await pushing.store.wipe();
    await pushing.append();
    await pushing.allArePushed();
  });

  /** Lets a fault last, and checks what the process does meanwhile. @param since where its log began */
  async function lasts(since: number): Promise<void> {
    const usedMs = cpuMs(service.pid);
    await delay(FAULT_MS);
    expect((cpuMs(service.pid) - usedMs) / FAULT_MS).toBeLessThan(MAX_CPU);
    expect(service.output().slice(since).trim().split('\n').length).toBeLessThan(MAX_LINES);
  }

  test.each(FAULTS)(
    'neither spins nor logs much while its store %s, and pushes every event in order soon afterwards',
    async (_what, harm, heal) => {
      const logged = service.output().length;
      await harm(pushing.store);
      await pushing.append();
      await lasts(logged);
      await heal(pushing.store);
      const healedMs = performance.now();
      await pushing.allArePushed();
      expect(performance.now() - healedMs).toBeLessThan(MAX_RETURN_MS);
    },
  );

  test('neither spins nor logs much while its store refuses the end of a job, and pushes every event in order afterwards', async () => {
    const kept = pushing.keepNext();
    await pushing.append();
    const answer = await kept;
    const logged = service.output().length;
    await pushing.store.refuse();
    answer();
    await lasts(logged);
    await pushing.store.allow();
    await pushing.allArePushed();
  });

  test('ends and starts while its store cannot be reached, and its log names no address', async () => {
    await pushing.store.leave();
    await delay(1_000);
    const beganMs = performance.now();
    expect(await service.kill('SIGTERM')).toBe(0);
    expect(performance.now() - beganMs).toBeLessThan(MAX_STOP_MS);
    await pushing.append();
    if (name === 'PostgreSQL') await pushing.store.comeBack(); // a start needs the rest of its database
    const next = await pushing.world.start();
    if (name === 'Redis') await pushing.store.comeBack();
    await pushing.allArePushed();
    expect(await next.kill('SIGTERM')).toBe(0);
    // A line of another form would be printed by a library, and may be a whole connection with its password.
    const output = service.output() + next.output();
    expect(
      output
        .trim()
        .split('\n')
        .filter((line) => !/^\{"level":"(info|warn)"/.test(line)),
    ).toEqual([]);
    expect(output).not.toMatch(/redis:\/\/|postgres(ql)?:\/\/|hushhush/);
  });
});

describe('a process', () => {
  const newPushing = usePushingServices();

  test('goes on where a killed one was in the middle of a push, without a gap', async () => {
    const all = await Promise.all(STORES.map(([, newStore]) => newPushing(newStore)));
    await Promise.all(all.map(goesOnAfterKill));
  });

  async function goesOnAfterKill({ service, world, keepNext, append, allArePushed }: Pushing): Promise<void> {
    const kept = keepNext();
    await append();
    await kept;
    const other = await world.start({ ROLES: 'worker' });
    await service.kill('SIGKILL');
    const killedMs = performance.now();
    await allArePushed();
    expect(performance.now() - killedMs).toBeLessThan(MAX_GAP_MS);
    await other.kill('SIGTERM');
  }
});

/** CPU time that a process has used. */
function cpuMs(pid: number): number {
  // After its name: user and system time are the fields 14 and 15, in hundredths of a second (proc(5)).
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return 10 * (Number(fields[11]) + Number(fields[12]));
}
