import { createClient, type EventsOptions, type FeedEvent, NotebridgeError } from '../../client/notebridge-client.js';
import { Retention } from '../../src/operations/retention.js';
import { ADMIN_KEY } from '../support/app.js';
import { appendEvents } from '../support/feed-events.js';
import { useWorld } from '../world/use-world.js';
import { type LosingProxy, startLosingProxy } from './losing-proxy.js';

const world = useWorld();
let proxy: LosingProxy;

beforeEach(async () => {
  proxy = await startLosingProxy(world.url);
});
afterEach(() => proxy.close());

const append = (events: number, type?: FeedEvent['type']) => appendEvents(world, events, type);

const follow = (options: EventsOptions) => createClient({ url: proxy.url, key: ADMIN_KEY }).events(options);

/** Reads events until there are enough. @returns what happened, in its order */
async function readUntil(count: number, options: EventsOptions = {}, onEvent: (read: number) => unknown = () => {}) {
  const stopping = new AbortController();
  const steps: string[] = [];
  const save = async (cursor: string) => {
    await Promise.resolve();
    steps.push(`saved ${cursor}`);
  };
  let read = 0;
  for await (const { cursor } of follow({ save, signal: stopping.signal, ...options })) {
    steps.push(`read ${cursor}`);
    read += 1;
    await onEvent(read);
    if (read === count) stopping.abort();
  }
  return steps;
}

const cursors = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => `1-${from + at}`);
const handled = (from: number, to: number) => cursors(from, to).flatMap((each) => [`read ${each}`, `saved ${each}`]);

describe('events()', () => {
  test('gives the events in their order, and saves each once it is handled', async () => {
    await append(3);
    expect(await readUntil(3)).toEqual(handled(1, 3));
    expect(await readUntil(2, { after: '1-1' })).toEqual(handled(2, 3));
  });

  test('reads page by page', async () => {
    await append(450);
    expect(await readUntil(450)).toEqual(handled(1, 450));
    expect(proxy.passed).toHaveLength(3);
  });

  test('saves the position after filtered events', async () => {
    await append(2, 'session.failed');
    await append(3);
    const saved: string[] = [];
    const stopping = new AbortController();
    const save = (cursor: string) => {
      saved.push(cursor);
      if (cursor === '1-5') stopping.abort();
    };
    for await (const event of follow({ types: ['session.failed'], save, signal: stopping.signal }))
      expect(event.type).toBe('session.failed');
    expect(saved).toEqual(['1-1', '1-2', '1-5']);
  });

  test('waits for the next event, and starts with the newest at latest', async () => {
    await append(2);
    const reading = readUntil(2, { after: 'latest' });
    await world.eventually('it waits', () => proxy.passed.length > 1);
    await append(1);
    await world.eventually('the first one has come', () => proxy.passed.length > 2);
    await append(1);
    expect(await reading).toEqual(['saved 1-2', ...handled(3, 4)]);
    expect(proxy.passed[0]?.path).toContain('after=latest');
  });

  test('misses nothing and repeats nothing over lost answers and a restart', async () => {
    await append(5);
    proxy.lose(1, 'end');
    const steps = await readUntil(15, {}, async (read) => {
      if (read % 5 !== 0 || read === 15) return;
      if (read === 5) proxy.lose(2);
      if (read === 10) {
        await world.restart({});
        proxy.lead(world.url);
      }
      await append(5);
    });
    expect(steps).toEqual(handled(1, 15));
  });

  test('misses nothing and repeats nothing if the connection is cut while it waits', async () => {
    await append(2);
    const reading = readUntil(4);
    await world.eventually('it waits', () => proxy.passed.length === 2 && proxy.waiting() === 1);
    proxy.cut();
    await world.eventually('the poll is cut', () => proxy.waiting() === 0);
    await append(2);
    expect(await reading).toEqual(handled(1, 4));
    expect(proxy.passed[2]?.path).toBe(proxy.passed[1]?.path);
  });

  test('does not save an event that the loop leaves', async () => {
    await append(3);
    const saved: string[] = [];
    for await (const { cursor } of follow({ save: (each) => saved.push(each) })) if (cursor === '1-2') break;
    expect(saved).toEqual(['1-1']);
  });

  test('waits for a slow save before the next event', async () => {
    await append(2);
    const steps: string[] = [];
    const save = async (cursor: string) => {
      steps.push(`saving ${cursor}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
      steps.push(`saved ${cursor}`);
    };
    for await (const { cursor } of follow({ save })) {
      steps.push(`read ${cursor}`);
      if (cursor === '1-2') break;
    }
    expect(steps).toEqual(['read 1-1', 'saving 1-1', 'saved 1-1', 'read 1-2']);
  });

  test('ends with an error of save', async () => {
    await append(2);
    const fault = new Error('disk full');
    const read: string[] = [];
    const reading = (async () => {
      for await (const { cursor } of follow({ save: () => Promise.reject(fault) })) read.push(cursor);
    })();
    await expect(reading).rejects.toBe(fault);
    expect(read).toEqual(['1-1']);
  });

  test('ends quietly when it is aborted while it waits', async () => {
    const stopping = new AbortController();
    const ended = (async () => {
      for await (const _ of follow({ signal: stopping.signal }));
      return 'ended';
    })();
    await world.eventually('it waits', () => proxy.passed.length > 0);
    stopping.abort();
    expect(await ended).toBe('ended');
  });

  test('throws cursor-gone with the cursor to continue after', async () => {
    await append(3);
    await readUntil(3);
    await world.advance('100 d');
    await append(2);
    await world.get(Retention).dropOld();
    const error: unknown = await readUntil(1, { after: '1-1' }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(NotebridgeError);
    const { type, status, more } = error as NotebridgeError;
    expect([type, status, more.continueAfter]).toEqual(['cursor-gone', 410, '1-3']);
    expect(await readUntil(2, { after: more.continueAfter })).toEqual(handled(4, 5));
  });
});
