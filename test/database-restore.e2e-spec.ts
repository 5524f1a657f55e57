import { runWorkload } from '../harness/workload.js';
import { withClient } from '../src/database/database.js';
import { ADMIN_KEY, WEBHOOK_SECRET } from './support/app.js';
import { freshDatabase, type TestDatabase } from './support/databases.js';
import { restore } from './support/restore.js';
import { useMirrors } from './support/service.js';

/** Rows of these are never deleted, so nobody looks for those that name one. */
const KEPT = ['imports'];

/** So long a shutdown waits for a last call: one that a stalled machine makes late is no fault. */
const PATIENT = { PLATFORM_TIMEOUT_SECONDS: '60' };

const newMirror = useMirrors();
let empty: TestDatabase;

beforeAll(async () => {
  empty = await freshDatabase();
});
afterAll(() => empty.drop());

test('what a database holds is restored into one that was only migrated, and the service goes on there', async () => {
  const mirror = await newMirror({ platform: { stepMs: 0, webhookSecret: WEBHOOK_SECRET }, env: PATIENT });
  const first = await mirror.start();
  const target = { simulator: mirror.simulator, adminKey: ADMIN_KEY };
  await withClient(mirror.database.url, (database) => runWorkload({ ...target, service: first, database }, 'a', 5, 5));
  const { body: asked } = await first.call('GET', '/v1/clients/c-a-1');
  expect(await first.kill('SIGTERM')).toBe(0);

  await restore(mirror.database.url, empty.url);

  const second = await mirror.start({ DATABASE_URL: empty.url });
  expect((await second.call('GET', '/v1/clients/c-a-1')).body).toEqual(asked);
  await withClient(empty.url, (database) => runWorkload({ ...target, service: second, database }, 'b', 3, 3));
  expect(await second.kill('SIGTERM')).toBe(0);
});

test('whoever is deleted is looked for by an index in every table that names it', async () => {
  const { rows } = await withClient(empty.url, (client) =>
    client.query(
      `SELECT conname AS key FROM pg_constraint k WHERE contype = 'f' AND NOT confrelid::regclass::text = ANY ($1)
         AND NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = k.conrelid AND i.indkey[0] = k.conkey[1])`,
      [KEPT],
    ),
  );
  expect(rows).toEqual([]);
});
