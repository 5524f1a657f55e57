import type { Tx } from '../../src/database/prisma.service.js';
import { EventHandlers, type Handled, type InboxEvent } from '../../src/webhooks/process/event-handlers.js';
import { InboxWriter } from '../../src/webhooks/receive/inbox.writer.js';
import { signWebhook } from '../../src/webhooks/receive/webhook-signature.js';
import { deliver, sessionEvent, sessionOf, signed } from '../support/webhook-requests.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

interface Delivery {
  subject: string;
  state: string;
  attempts: number;
  repeats: number;
}

/** The events that were handled with success, as `session type`. */
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

/** Signs an event of a session. @param sentAt milliseconds of its timestamp header after a common start */
const event = (session: string, step: string, sentAt: number) =>
  signed(sessionEvent(session, `SESSION_${step}`), { timestamp: String(1_800_000_000_000 + sentAt) });

const send = async (init: RequestInit): Promise<void> => expect((await deliver(world, init)).status).toBe(204);

const deliveries = async (): Promise<Delivery[]> =>
  (await world.call<{ items: Delivery[] }>('GET', '/v1/webhook-deliveries?limit=200')).body.items.reverse();

/** A promise, and what resolves it. */
function gate(): { opened: Promise<void>; open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

test('pending deliveries of a subject are handled in the order of their timestamps, not of their arrival', async () => {
  await send(event('s', 'PROCESSING_COMPLETED', 3));
  await send(event('s', 'PROCESSING_STARTED', 2));
  await send(event('s', 'CREATED', 1));
  await world.settle();
  expect(handled).toEqual(['s CREATED', 's STARTED', 's COMPLETED']);
});

test('deliveries that are stored together, with the same timestamp, keep the order of their arrival', async () => {
  const sentAt = '1800000000000';
  const sessions = Array.from({ length: 20 }, (_, at) => `s-${at}`);
  const stored = sessions.map((session) => {
    const body = Buffer.from(sessionEvent(session));
    const signature = signWebhook('any secret', sentAt, body);
    return world.get(InboxWriter).store({ signature, body, sentAt, secretIndex: 0 });
  });
  await Promise.all(stored);
  expect((await deliveries()).map(({ subject }) => subject)).toEqual(sessions);
});

test('the feed shows the start of a session before its end, also if the end arrived first', async () => {
  jest.restoreAllMocks();
  await send(event('s', 'PROCESSING_COMPLETED', 3));
  await send(event('s', 'PROCESSING_STARTED', 2));
  await world.settle();
  await world.advance('10 min'); // without an answer of the platform, its end is published then
  await world.settle();
  const { body } = await world.call<{ items: { type: string }[] }>('GET', '/v1/events?after=0');
  const types = body.items.map(({ type }) => type);
  expect(types.indexOf('session.processing-started')).toBeGreaterThanOrEqual(0);
  expect(types.indexOf('session.completed')).toBeGreaterThan(types.indexOf('session.processing-started'));
});

test('two deliveries of a subject are never handled at a time', async () => {
  let running = 0;
  let most = 0;
  handleBy(async () => {
    running += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setImmediate(resolve));
    running -= 1;
    return 'processed';
  });
  for (let at = 0; at < 20; at += 1) await send(event('s', 'CREATED', at));
  await world.settle();
  expect([handled.length, most]).toEqual([20, 1]);
});

test('a failed delivery holds back the later ones of its subject, and no others', async () => {
  let isBroken = true;
  handleBy(async ({ eventType, ...rest }) => {
    if (isBroken && eventType === 'SESSION_CREATED' && sessionOf({ eventType, ...rest } as InboxEvent) === 'a')
      throw new Error('broken');
    return 'processed';
  });
  await send(event('a', 'CREATED', 1));
  await send(event('a', 'PROCESSING_STARTED', 2));
  await send(event('b', 'CREATED', 3));
  await world.settle();
  expect(handled).toEqual(['b CREATED']);
  expect(await deliveries()).toMatchObject([
    { state: 'failed', attempts: 1 },
    { state: 'received', attempts: 0 },
    { state: 'processed' },
  ]);
  isBroken = false;
  await world.advance('2 s');
  await world.settle();
  expect(handled).toEqual(['b CREATED', 'a CREATED', 'a STARTED']);
});

test('a subject goes on once its first delivery is dead', async () => {
  handleBy(async ({ eventType }) => {
    if (eventType === 'SESSION_CREATED') throw new Error('broken');
    return 'processed';
  });
  await send(event('a', 'CREATED', 1));
  await send(event('a', 'PROCESSING_STARTED', 2));
  for (let seconds = 0; seconds < 4 * 60; seconds += 10) {
    await world.advance('10 s');
    await world.settle();
  }
  expect(handled).toEqual(['a STARTED']);
  expect(await deliveries()).toMatchObject([{ state: 'dead' }, { state: 'processed' }]);
});

describe('repeats during the handling', () => {
  /** Starts the work on a delivery, sends what `meanwhile` sends before the handler returns, and lets it end. */
  async function during(init: RequestInit, meanwhile: () => Promise<void>): Promise<void> {
    const started = gate();
    const finish = gate();
    let isFirst = true;
    handleBy(async () => {
      if (isFirst) {
        isFirst = false;
        started.open();
        await finish.opened;
      }
      return 'processed';
    });
    await send(init);
    const working = world.settle();
    await started.opened;
    await meanwhile();
    finish.open();
    await working;
    await world.settle();
  }

  it('are acknowledged at once, and handled together once more', async () => {
    const init = event('s', 'CREATED', 1);
    await during(init, async () => {
      for (let repeat = 0; repeat < 5; repeat += 1) await send(init);
    });
    expect(handled).toEqual(['s CREATED', 's CREATED']);
    expect(await deliveries()).toMatchObject([{ state: 'processed', attempts: 0, repeats: 5 }]);
  });

  it('make no dead letter, however many there are', async () => {
    const init = event('s', 'CREATED', 1);
    for (let round = 0; round < 5; round += 1) await during(init, () => send(init));
    expect(await deliveries()).toMatchObject([{ state: 'processed', attempts: 0, repeats: 9 }]);
  });

  it('without end do not keep a later delivery of the same subject waiting', async () => {
    const init = event('s', 'CREATED', 1);
    let repeats = 0;
    handleBy(async ({ eventType }) => {
      if (eventType === 'SESSION_CREATED' && repeats < 30) {
        repeats += 1;
        await send(init);
        if (repeats === 1) await send(event('s', 'PROCESSING_STARTED', 2));
      }
      return 'processed';
    });
    await send(init);
    await world.settle();
    expect(handled).toHaveLength(32);
    expect(handled.indexOf('s STARTED')).toBeLessThanOrEqual(2);
  });
});

test('a repeat of a failed delivery, or of one that fails, is counted, and does not change when it is tried again', async () => {
  const init = event('s', 'CREATED', 1);
  handleBy(async () => {
    await send(init);
    throw new Error('broken');
  });
  await send(init);
  await world.settle();
  await send(init);
  await world.settle();
  expect(await deliveries()).toMatchObject([{ state: 'failed', attempts: 1, repeats: 2 }]);
});
