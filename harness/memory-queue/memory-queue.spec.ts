import fc from 'fast-check';
import { propertyRuns } from '../../src/config/property-runs.spec-support.js';
import { WorldClock } from '../world/time.js';
import { MemoryQueue } from './memory-queue.js';
import { MemoryStore } from './memory-store.js';
import { MemoryWorker } from './memory-worker.js';

type Command =
  | { readonly kind: 'add'; readonly row: string; readonly priority: number; readonly change: number }
  | { readonly kind: 'start' }
  | { readonly kind: 'end'; readonly place: number; readonly fails: boolean };

/** An add, as the model of a queue keeps it. */
type Added = Extract<Command, { kind: 'add' }>;

const row = fc.constantFrom('a', 'b', 'c');
const commands: fc.Arbitrary<Command[]> = fc.array(
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant('add'), row, priority: fc.constantFrom(0, 5, 10), change: fc.nat(99) }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('start') }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('end'), place: fc.nat(9), fails: fc.boolean() }) },
  ) as fc.Arbitrary<Command>,
  { maxLength: 40 },
);

/** The rules in their shortest form: at most one job of a row waits, and the last add of an active row runs next. */
class Model {
  waiting: Added[] = [];
  readonly active: { readonly of: Added; next?: Added }[] = [];

  add(added: Added): void {
    const active = this.active.find(({ of }) => of.row === added.row);
    if (active) active.next = added;
    else if (!this.waiting.some((other) => other.row === added.row)) this.waiting.push(added);
  }

  start(): Added | undefined {
    const first = Math.min(...this.waiting.map(({ priority }) => priority));
    const taken = this.waiting.find(({ priority }) => priority === first);
    if (!taken) return undefined;
    this.waiting = this.waiting.filter((other) => other !== taken);
    this.active.push({ of: taken });
    return taken;
  }

  end(place: number): void {
    const [ended] = this.active.splice(place, 1);
    if (ended?.next) this.waiting.push(ended.next);
  }
}

const OPTIONS = { removeOnComplete: true, removeOnFail: true };

/** A queue in memory whose processors end when they are told to. */
function openQueue() {
  const store = new MemoryStore(new WorldClock());
  const queue = new MemoryQueue('rows', { connection: store });
  const started: { row: string; change: number }[] = [];
  const ends: ((fails: boolean) => void)[] = [];
  const process = ({ data }: { data: { row: string; change: number } }) => {
    started.push(data);
    return new Promise<void>((resolve, reject) => {
      ends.push((fails) => (fails ? reject(new Error('expected')) : resolve()));
    });
  };
  const workers = [1, 2].map(() => new MemoryWorker('rows', process, { connection: store, concurrency: 5 }));
  return { store, queue, started, ends, workers };
}

test('any order of adds, starts and ends runs each row as the model says, and never two jobs of a row at once', async () => {
  await fc.assert(
    fc.asyncProperty(commands, async (script) => {
      const { store, queue, started, ends } = openQueue();
      const running: Promise<void>[] = [];
      const model = new Model();
      const drain = Array.from({ length: 50 }, (): Command[] => [
        { kind: 'start' },
        { kind: 'end', place: 0, fails: false },
      ]);
      for (const command of [...script, ...drain.flat()]) {
        if (command.kind === 'add') {
          const { row: id, change, priority } = command;
          const deduplication = { id, keepLastIfActive: true };
          await queue.add('row', { row: id, change }, { ...OPTIONS, priority, deduplication });
          model.add(command);
        } else if (command.kind === 'start') {
          const expected = model.start();
          const ended = store.startNext();
          expect(ended !== undefined).toBe(expected !== undefined);
          if (ended) running.push(ended);
          if (expected) expect(started.at(-1)).toEqual({ row: expected.row, change: expected.change });
        } else if (ends.length > 0) {
          const place = command.place % ends.length;
          ends.splice(place, 1)[0]?.(command.fails);
          await running.splice(place, 1)[0];
          model.end(place);
        }
        const rows = model.active.map(({ of }) => of.row);
        expect(new Set(rows).size).toBe(rows.length);
        expect(await queue.getActiveCount()).toBe(rows.length);
      }
      expect(await queue.getJobs(['waiting', 'prioritized', 'active', 'completed', 'failed'])).toEqual([]);
    }),
    propertyRuns(0.2),
  );
});

describe('a store in memory', () => {
  const add = (queue: MemoryQueue, id: string) => queue.add('row', { row: id, change: 0 }, OPTIONS);

  it('ends a job that ended while the store was away once it returns', async () => {
    const { store, queue, ends } = openQueue();
    await add(queue, 'a');
    const ended = store.startNext();
    store.isAway = true;
    await expect(queue.getActiveCount()).rejects.toThrow('ECONNREFUSED');
    ends[0]?.(false);
    await ended;
    expect(store.startNext()).toBeUndefined();
    store.isAway = false;
    expect(await queue.getActiveCount()).toBe(0);
  });

  it('runs what is due without waiting for a job that another call started', async () => {
    const { store, queue, started, ends } = openQueue();
    await add(queue, 'held');
    const first = store.runDue();
    await add(queue, 'a');
    const second = store.runDue();
    ends.pop()?.(false);
    await second;
    expect(started.map(({ row: id }) => id)).toEqual(['held', 'a']);
    expect(store.isBusy).toBe(true);
    ends[0]?.(false);
    await first;
    expect(store.isBusy).toBe(false);
  });

  it('says when a limited job can start', async () => {
    const { store, queue, workers } = openQueue();
    expect(store.nextInMs).toBeUndefined();
    await add(queue, 'a');
    expect(store.nextInMs).toBe(0);
    for (const worker of workers) worker.opts.limiter = { max: 1, duration: 400 };
    await queue.rateLimit(1_000);
    expect(store.nextInMs).toBe(1_000);
    for (const worker of workers) worker.concurrency = 0;
    expect(store.nextInMs).toBeUndefined();
  });

  it('refuses options of jobs that it does not know', async () => {
    const { queue } = openQueue();
    await expect(queue.add('row', {}, { delay: 5 } as object)).rejects.toThrow('has no option "delay"');
  });

  it('names work that never ends', async () => {
    const store = new MemoryStore(new WorldClock());
    const queue = new MemoryQueue('rows', { connection: store });
    const again = () => add(queue, 'a');
    new MemoryWorker('rows', again, { connection: store });
    await add(queue, 'a');
    await expect(store.runDue()).rejects.toThrow('Jobs still wait');
  });
});
