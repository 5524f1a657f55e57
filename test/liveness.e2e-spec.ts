import { startTcpProxy } from '../harness/tcp-proxy.js';
import { Database } from '../src/database/database.js';
import { Liveness } from '../src/operations/liveness.js';
import { freshDatabase } from './support/databases.js';

/** Longer than the connections may be of no use. */
const LONG_MS = 61_000;

test('liveness is red where only a restart helps: no connection of its own is of use, and a new one is', async () => {
  const home = await freshDatabase();
  const url = new URL(home.url);
  const proxy = await startTcpProxy(Number(url.port));
  url.port = String(proxy.port);
  const database = new Database(url.toString());
  let nowMs = 0;
  const liveness = new Liveness(database, { now: () => new Date(), monotonicMs: () => nowMs });
  await liveness.look();
  expect(liveness.isAlive()).toBe(true);
  await liveness.look();

  // Nobody gives one of them back any more.
  const { max } = database.pool.options;
  const taken = await Promise.all(Array.from({ length: max }, () => database.pool.connect()));
  await liveness.look();
  expect(liveness.isAlive()).toBe(true);
  await liveness.look();
  nowMs += LONG_MS;
  await liveness.look();
  expect(liveness.isAlive()).toBe(false);

  // A database that is away comes back by itself.
  await proxy.cut();
  await liveness.look();
  expect(liveness.isAlive()).toBe(true);
  await proxy.restore();

  for (const client of taken) client.release(true);
  await liveness.look();
  nowMs += LONG_MS;
  await liveness.look();
  expect(liveness.isAlive()).toBe(true);
  await liveness.look();
  await database.onApplicationShutdown();
  await proxy.close();
  await home.drop();
});
