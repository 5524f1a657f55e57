import { startTcpProxy } from '../harness/tcp-proxy.js';
import { until } from '../harness/until.js';
import { Clock } from '../src/config/clock.js';
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
  const liveness = new Liveness(database, Object.assign(new Clock(), { monotonicMs: () => nowMs }));
  // A look that a busy machine keeps from its answer finds nothing.
  const becomes = async (alive: boolean) => {
    await liveness.look();
    const isSo = liveness.isAlive() === alive;
    await liveness.look(); // the one that the question began
    return isSo;
  };
  await liveness.look();
  expect(liveness.isAlive()).toBe(true);
  await liveness.look();

  // Nobody gives one of them back any more; to open them all may take a busy machine long.
  const { options } = database.pool;
  const { connectionTimeoutMillis } = options;
  options.connectionTimeoutMillis = 0;
  const taken = await Promise.all(Array.from({ length: options.max }, () => database.pool.connect()));
  options.connectionTimeoutMillis = connectionTimeoutMillis;
  await liveness.look();
  expect(liveness.isAlive()).toBe(true);
  await liveness.look();
  nowMs += LONG_MS;
  await until('it is red', () => becomes(false));

  // A database that is away comes back by itself.
  await proxy.cut();
  await liveness.look();
  expect(liveness.isAlive()).toBe(true);
  await proxy.restore();

  for (const client of taken) client.release(true);
  await until('a connection of its own is of use', () =>
    database.pool.query('SELECT 1').then(
      () => true,
      () => false,
    ),
  );
  await liveness.look();
  nowMs += LONG_MS;
  await until('it is green', () => becomes(true));
  await database.onApplicationShutdown();
  await proxy.close();
  await home.drop();
});
