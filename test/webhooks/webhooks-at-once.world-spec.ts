import type pg from 'pg';
import type { WorldService } from '../../harness/world/world-service.js';
import { EventHandlers, type InboxEvent } from '../../src/webhooks/process/event-handlers.js';
import { deliver, sessionEvent, signed } from '../support/webhook-requests.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

describe('two processes with one inbox', () => {
  let other: WorldService;

  beforeEach(async () => {
    other = await world.startAnother();
  });

  function handleBy(script: (event: InboxEvent, tx: pg.PoolClient) => Promise<unknown>): void {
    const handle = (event: InboxEvent, tx: pg.PoolClient) => script(event, tx).then(() => 'processed' as const);
    for (const handlers of [world.get(EventHandlers), other.app.get(EventHandlers, { strict: false })]) {
      jest.spyOn(handlers, 'of').mockReturnValue({ handle });
    }
  }
  const send = async (session: string, eventType = 'SESSION_CREATED') =>
    expect((await deliver(world, signed(sessionEvent(session, eventType)))).status).toBe(204);
  const inbox = () => world.sql('SELECT subject, state, attempts FROM webhook_deliveries ORDER BY id');

  it('work on the events of one session one at a time, and on other sessions meanwhile', async () => {
    let [inProgress, mostInProgress] = [0, 0];
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const isBusy = new Promise<void>((resolve) => {
      handleBy(async ({ body }) => {
        if (body.sessionId !== 'busy') return;
        mostInProgress = Math.max(mostInProgress, ++inProgress);
        resolve();
        await held;
        inProgress -= 1;
      });
    });
    await send('busy');
    const working = world.work.inbox();
    await isBusy;
    await send('busy', 'SESSION_PROCESSING_STARTED');
    await send('free');
    await other.work.inbox();
    const waiting = { subject: null, state: 'received', attempts: 0 };
    expect(await inbox()).toEqual([waiting, waiting, { subject: 'free', state: 'processed', attempts: 0 }]);
    release();
    await working;
    await world.advance('1 s');
    await world.settle();
    expect(await inbox()).toMatchObject(Array(3).fill({ state: 'processed', attempts: 0 }));
    expect(mostInProgress).toBe(1);
    expect(await world.sql('SELECT 1 FROM webhook_claims')).toEqual([]);
  });

  it('commit a batch after a second, so that others do not wait long for its locks', async () => {
    const transactions = new Set<unknown>();
    handleBy(async (_event, tx) => {
      transactions.add((await tx.query('SELECT pg_current_xact_id()::text AS id')).rows[0]?.id);
      await world.advance('1100 ms');
    });
    for (const session of ['a', 'b', 'c', 'd', 'e']) await send(session);
    await world.settle();
    expect(await inbox()).toMatchObject(Array(5).fill({ state: 'processed' }));
    expect(transactions.size).toBe(5);
  });
});
