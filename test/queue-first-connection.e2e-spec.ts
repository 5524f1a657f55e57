import { execFile } from 'node:child_process';
import { type AddressInfo, connect, createServer } from 'node:net';
import { until } from '../harness/until.js';
import { prepareQueueStore, workerOptions } from '../src/queue/backend/backend.js';
import { BoundedQueue } from '../src/queue/backend/bounded.js';
import { freshDatabase, type TestDatabase } from './support/databases.js';

const PREFIX = 'first-connection';

/** Says that it can do something beside its worker, and when the worker works. */
const WORKER = `
  const { workerOptions } = require('./dist/src/queue/backend/backend.js');
  const { BoundedWorker } = require('./dist/src/queue/backend/bounded.js');
  setTimeout(() => process.stdout.write('breathes;'), 500);
  const work = async () => process.stdout.write('works;');
  const options = workerOptions({ DATABASE_URL: process.argv[1], QUEUE_PREFIX: '${PREFIX}' });
  new BoundedWorker('inbox', work, { ...options, runRetryDelay: 100 });
`;

const closing: (() => unknown)[] = [];
let database: TestDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(async () => {
  for (const close of closing) await close();
  await database.drop();
});

it('a worker whose first connection broke off leaves the process its time, and works once the database is back', async () => {
  let isBack = false;
  const url = new URL(database.url);
  const target = Number(url.port);
  const door = createServer((client) => {
    if (!isBack) return client.destroy();
    const upstream = connect(target, '127.0.0.1');
    for (const socket of [client, upstream]) socket.on('error', () => undefined);
    return client.pipe(upstream).pipe(client);
  });
  closing.push(() => door.close());
  await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve));
  url.port = String((door.address() as AddressInfo).port);
  const env = { DATABASE_URL: database.url, QUEUE_PREFIX: PREFIX };
  await prepareQueueStore(env as Parameters<typeof prepareQueueStore>[0], database.url);
  const queue = new BoundedQueue('inbox', workerOptions(env as Parameters<typeof workerOptions>[0]));
  closing.push(() => queue.close());
  const worker = execFile(process.execPath, ['-e', WORKER, url.toString()]);
  closing.push(() => worker.kill('SIGKILL'));
  let said = '';
  worker.stdout?.on('data', (text: string) => {
    said += text;
  });
  await until('it can do other things', () => said.includes('breathes;'));
  isBack = true;
  await queue.add('ring', {});
  await until('it works', () => said.includes('works;'));
});
