import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { explainEverything, loggedPlans, logSize, OBSERVER } from '../harness/auto-explain.js';
import { fullReadsOf, GROWING } from '../harness/hot-statements.js';
import { asIfThereWere, multiply } from '../harness/query-plans.js';
import type { Service } from '../harness/service.js';
import { readAsOperator, runWorkload } from '../harness/workload.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../src/database/embedded-postgres.js';
import { applyMigrations } from '../src/database/migrations.js';
import { ADMIN_KEY, WEBHOOK_SECRET } from './support/app.js';
import { createDatabase } from './support/databases.js';
import { type Mirror, useMirrors } from './support/service.js';

const MILLION = 1_000_000;
const COPIES = 100;

// Before the hooks of the mirrors, which drop the database.
afterAll(() => admin?.end());

const newMirror = useMirrors();
let folder: string;
let postgres: EmbeddedPostgres;
let admin: pg.Client;
let mirror: Mirror;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'notebridge-plans-'));
  postgres = await startEmbeddedPostgres({ dataRoot: folder, fsync: false });
  const database = await createDatabase(postgres.url);
  await applyMigrations(database.url);
  mirror = await newMirror({
    database,
    platform: { stepMs: 0, webhookSecret: WEBHOOK_SECRET },
    env: { REDIS_URL: undefined },
  });
  admin = new pg.Client({ connectionString: database.url, application_name: OBSERVER });
  await admin.connect();
});
afterAll(async () => {
  await postgres?.release();
  await rm(folder, { recursive: true, force: true });
});

const at = (service: Service) => ({ service, simulator: mirror.simulator, database: admin, adminKey: ADMIN_KEY });

test('no statement of a day reads a table of a million rows, or an index of one, from end to end', async () => {
  const before = await mirror.start();
  await runWorkload(at(before), 'a', 100, 60);
  expect(await before.kill('SIGTERM')).toBe(0);
  for (const table of GROWING) {
    await multiply(COPIES, admin, table);
    await asIfThereWere(MILLION, admin, { table, analysed: true });
  }
  await explainEverything(admin);
  const from = await logSize(postgres.home);

  const service = await mirror.start();
  await runWorkload(at(service), 'b', 25, 25);
  await readAsOperator(at(service));
  expect(await service.kill('SIGTERM')).toBe(0);

  const plans = await loggedPlans(postgres.home, from);
  expect(plans.length).toBeGreaterThan(1_000);
  expect(await fullReadsOf(admin, plans)).toEqual([]);
});
