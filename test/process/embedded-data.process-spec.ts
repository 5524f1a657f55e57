import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import type { Service } from '../../harness/service.js';
import { until } from '../../harness/until.js';
import { runWorkload } from '../../harness/workload.js';
import { withClient } from '../../src/database/connect/session.js';
import { serviceRoleSql } from '../../src/database/runtime-role.js';
import type { Page } from '../../src/http/request/page.js';
import type { SessionResponse } from '../../src/sessions/model/session-view.js';
import { ADMIN_KEY, WEBHOOK_SECRET } from '../support/app.js';
import { usePrograms } from '../support/programs.js';
import { restore } from '../support/restore.js';
import { type TestWorld, useTestWorlds } from '../support/service.js';

type Variables = Record<string, string | undefined>;

/** Changes the history of a database as the next version's initial migration does. */
const OF_ANOTHER_VERSION = `UPDATE _prisma_migrations SET checksum = 'another'`;

const K2 = `k2:${Buffer.alloc(32, 8).toString('base64')}`;

const newWorld = useTestWorlds();
const startProgram = usePrograms();
const role = `moved_${randomBytes(6).toString('hex')}`;
let world: TestWorld;
let folder: string;
let settings: Variables;
let service: Service;
/** A client and the notes of a session, as the API shows them. */
let shown: object[];

const keyOf = (root: string) => readFileSync(path.join(root, 'data-keys'), 'utf8').trim();

async function run(line: string, env: Variables = settings): Promise<[code: number | null, output: string]> {
  const program = await startProgram({ file: 'dist/src/cli/main.js', args: line.split(' '), env });
  return [await program.ended(), program.output()];
}

/** The address of the embedded database of a running service, as the run-book finds it. */
function embeddedUrl(): string {
  const cluster = path.join(folder, 'postgres/cluster');
  const password = encodeURIComponent(readFileSync(path.join(cluster, 'password'), 'utf8').trim());
  const port = readFileSync(path.join(cluster, 'data/postmaster.pid'), 'utf8').split('\n')[3];
  return `postgresql://notebridge:${password}@127.0.0.1:${port}/notebridge`;
}

async function onDatabase<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(embeddedUrl());
  client.on('error', () => undefined);
  await client.connect();
  return work(client).finally(() => client.end());
}

const work = (of: Service, url: string, day: string, count: number) =>
  withClient(url, (database) =>
    runWorkload({ simulator: world.simulator, adminKey: ADMIN_KEY, service: of, database }, day, count, count),
  );

async function look(of: Service): Promise<object[]> {
  const { body } = await of.call<Page<SessionResponse>>('GET', '/v1/sessions?limit=50');
  const session = body.items.find(({ notesRevision }) => notesRevision > 0);
  const answers = [
    await of.call<object>('GET', '/v1/clients/c-a-1'),
    await of.call<object>('GET', `/v1/sessions/${session?.id}/notes`),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  return answers.map((answer) => answer.body);
}

beforeAll(async () => {
  folder = mkdtempSync(path.join(process.env.TEST_FOLDER ?? '', 'embedded-data-'));
  chmodSync(folder, 0o755);
  world = await newWorld({
    platform: { stepMs: 0, webhookSecret: WEBHOOK_SECRET },
    env: { DATABASE_URL: undefined, DATA_KEYS: undefined, DATA_DIR: folder, PLATFORM_TIMEOUT_SECONDS: '60' },
  });
  settings = world.settings;
});
afterAll(() => withClient(process.env.TEST_PG_URL ?? '', (client) => client.query(`DROP ROLE IF EXISTS ${role}`)));

test('a rotation before the first start asks for that start and creates nothing', async () => {
  const refused = await run('keys rotate data');
  expect(refused).toEqual([
    1,
    expect.stringMatching(/^There is no database of this version .* Start the service once/m),
  ]);
  expect(['postgres', 'data-keys'].filter((name) => existsSync(path.join(folder, name)))).toEqual([]);
});

test('commands join the embedded PostgreSQL of a running service', async () => {
  service = await world.start();
  await work(service, embeddedUrl(), 'a', 3);
  shown = await look(service);
  const verified = await run('audit verify');
  expect(verified).toEqual([0, expect.stringContaining('nothing was changed, removed or inserted')]);
  const heads = path.join(folder, 'heads');
  const [, head] = /^Head: (\S+)$/m.exec(verified[1]) ?? [];
  writeFileSync(heads, `{"level":"info","msg":"notebridge is ready"}\n{"head":"${head}"}\n${head}\n`);
  expect(await run(`audit verify --heads ${heads}`)).toEqual([0, expect.stringContaining('1 head found')]);
  writeFileSync(heads, `1:${'0'.repeat(70)}`);
  expect(await run(`audit verify --heads ${heads}`)).toEqual([
    2,
    expect.stringContaining('later entries were removed'),
  ]);
  writeFileSync(heads, `${head?.slice(0, -1)}`);
  expect(await run(`audit verify --heads ${heads}`)).toEqual([1, expect.stringContaining('Line 1 of')]);
  const signed = await run('keys rotate audit');
  expect(signed).toEqual([0, expect.stringMatching(/audit_links\.mac +\w+: \d+[\s\S]*All values are by \w+\./)]);
  const rotated = await run('keys rotate data');
  expect(rotated).toEqual([0, expect.stringMatching(/people\.profile +k1: \d+[\s\S]*All values are by k1\./)]);
  const [, diagnosis] = await run('doctor');
  expect(diagnosis).toMatch(/✓ Database {3}PostgreSQL 18.*, 0 migrations to apply; the embedded one/);
});

test('commands without settings work on the database of the demo, running or not', async () => {
  const environment = {
    ...settings,
    DATA_KEYS: keyOf(folder),
    DATA_DIR: folder,
    DATABASE_URL: 'postgresql://ended@127.0.0.1:1/demo',
  };
  const clone = path.join(folder, 'clone');
  mkdirSync(clone);
  writeFileSync(path.join(clone, 'demo.json'), JSON.stringify({ url: service.url, key: ADMIN_KEY, environment }));
  const verified = await run('audit verify', { DATA_DIR: clone });
  expect(verified).toEqual([0, expect.stringMatching(/this clone's demo.*\n.*nothing was changed/)]);
  const half = await run('keys rotate data', { DATA_DIR: clone, DATABASE_URL: 'postgresql://u@127.0.0.1:1/none' });
  expect(half).toEqual([1, expect.stringContaining('PLATFORM_BASE_URL is not set')]);
});

test('the first key can go after a rotation to another one', async () => {
  expect(await service.kill('SIGTERM')).toBe(0);
  const both = { ...settings, DATA_KEYS: `${K2},${keyOf(folder)}` };
  expect(await run('keys rotate data', both)).toEqual([0, expect.stringContaining('All values are by k2.')]);
  service = await world.start({ DATA_KEYS: K2, ROLES: 'api' });
  expect(await look(service)).toEqual(shown);
});

// As docs/operations/stores.md has it, but without pg_dump of PostgreSQL 18, which is not installed everywhere.
test('a service that moves to another PostgreSQL finds everything there and continues', async () => {
  const { url } = world.database;
  const roles = serviceRoleSql('password-of-the-tests').replaceAll('notebridge_service', role);
  await withClient(url, (client) => client.query(roles));
  await restore(embeddedUrl(), url);
  await onDatabase((client) => client.query(OF_ANOTHER_VERSION));
  expect(await service.kill('SIGTERM')).toBe(0);
  const serving = Object.assign(new URL(url), { username: role, password: 'password-of-the-tests' });
  const moved = { DATABASE_URL: serving.toString(), DATA_KEYS: K2 };
  await world.migrate({ ...moved, DATABASE_OWNER_URL: url });
  service = await world.start(moved);
  expect(await look(service)).toEqual(shown);
  await work(service, url, 'b', 2);
  await until('the doctor finds no fault', async () => {
    const [, output] = await run('doctor', { ...settings, ...moved, NOTEBRIDGE_URL: service.url });
    return !/^✗/m.test(output);
  });
  expect(service.output()).toMatch(/the newest link of the audit log/);
  expect(await service.kill('SIGTERM')).toBe(0);
});

test('the doctor refuses a .data folder of a development version', async () => {
  const sentence =
    /^.*made by a development version of notebridge .*: delete \.data in a clone, or use an empty database/m;
  expect(await run('doctor')).toEqual([1, expect.stringMatching(sentence)]);
});

test('every foreign key whose target can be deleted has an index', async () => {
  const { rows } = await withClient(world.database.url, (client) =>
    client.query(
      `SELECT conname AS key FROM pg_constraint k WHERE contype = 'f' AND confrelid::regclass::text <> 'imports'
         AND NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = k.conrelid AND i.indkey[0] = k.conkey[1])`,
    ),
  );
  expect(rows).toEqual([]);
});
