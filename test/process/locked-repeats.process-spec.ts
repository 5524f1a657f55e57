import { setTimeout as delay } from 'node:timers/promises';
import type { Service } from '../../harness/service.js';
import { until } from '../../harness/until.js';
import { freshDatabase } from '../support/databases.js';
import { type TestWorld, useTestWorlds } from '../support/service.js';
import { deliver, sessionEvent, signed } from '../support/webhook-requests.js';

describe('a receiver', () => {
  const newWorld = useTestWorlds();
  let world: TestWorld;
  let service: Service;

  beforeAll(async () => {
    world = await newWorld({ database: await freshDatabase() });
    service = await world.start();
  });

  const post = async (init: RequestInit) => (await fetch(`${service.url}/webhooks/platform`, init)).status;

  test('answers new deliveries while a repeat waits for a row that a bulk replay has locked', async () => {
    const repeats = [signed(sessionEvent('one')), signed(sessionEvent('other'))];
    for (const init of repeats) expect((await deliver(service, init)).status).toBe(204);
    const processed = "SELECT FROM webhook_deliveries WHERE state = 'processed'";
    await until('they are processed', async () => (await world.sql(processed)).length === 2);
    const holder = await world.database.sql.connect();
    // As `replayAll` does for as long as its transaction takes.
    await holder.query('BEGIN; UPDATE webhook_deliveries SET attempts = 0');
    const repeating = [];
    for (const init of repeats) {
      repeating.push(post(init));
      await delay(100); // another group
    }
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => post(signed(sessionEvent(`fresh-${i}`)))));
    await Promise.all(repeating);
    await holder.query('ROLLBACK');
    holder.release();
    expect(answers).toEqual(Array(20).fill(204));
  }, 60_000);
});
