import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import type { Program } from '../harness/program.js';
import { READY, type Service, serviceOf } from '../harness/service.js';
import { until } from '../harness/until.js';
import { ADMIN_KEY, testSettings } from './support/app.js';
import { inFormerLayout } from './support/former-layout.js';
import { partIs } from './support/health.js';
import { usePrograms } from './support/programs.js';

const FORMER = 'run npx notebridge keys rotate-data once';

const startProgram = usePrograms();
const folder = path.join(process.env.TEST_FOLDER ?? '', 'service-data');
/** Without DATABASE_URL and DATA_KEYS: PostgreSQL is the embedded one, whose keys stand beside it. */
const settings: Record<string, string | undefined> = {
  ...testSettings(''),
  ...{ DATABASE_URL: undefined, DATA_KEYS: undefined, DATA_DIR: folder, PORT: '0' },
};

const startService = async (): Promise<Service> =>
  serviceOf(await startProgram({ file: 'dist/src/main.js', env: settings, ready: READY }), ADMIN_KEY);

const command = (line: string, env = settings): Promise<Program> =>
  startProgram({ file: 'dist/src/cli/main.js', args: line.split(' '), env });

async function said(line: string, env?: typeof settings): Promise<[code: number | null, output: string]> {
  const program = await command(line, env);
  return [await program.ended(), program.output()];
}

async function onDatabase<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const cluster = path.join(folder, 'postgres/cluster');
  const password = readFileSync(path.join(cluster, 'password'), 'utf8');
  const port = readFileSync(path.join(cluster, 'data/postmaster.pid'), 'utf8').split('\n')[3];
  const client = new pg.Client(`postgresql://notebridge:${password}@127.0.0.1:${port}/notebridge`);
  client.on('error', () => undefined);
  await client.connect();
  return work(client).finally(() => client.end());
}

let service: Service;

beforeAll(async () => {
  mkdirSync(folder, { recursive: true });
  expect(await said('keys rotate-data')).toEqual([
    1,
    expect.stringMatching(/^There is no database .*: start the service once/),
  ]);
  expect([existsSync(path.join(folder, 'postgres')), existsSync(path.join(folder, 'data-keys'))]).toEqual([
    false,
    false,
  ]);
  service = await startService();
  const body = { email: 'ada@example.org', firstName: 'Ada', lastName: 'Osei' };
  for (const id of ['p-1', 'p-2']) await service.call('PUT', `/v1/providers/${id}`, { body });
});

test('the embedded PostgreSQL of a service that runs is joined: the trail is verified, the data is sealed anew', async () => {
  expect(await said('audit verify')).toEqual([0, expect.stringContaining('nothing was changed, removed or inserted')]);
  expect(await said('keys rotate-data')).toEqual([
    0,
    expect.stringMatching(/people\.profile +k1: 2[\s\S]*All is sealed with k1\./),
  ]);
  expect((await said('doctor'))[1]).toMatch(/✓ Database {3}PostgreSQL 18.*, 0 migrations to apply; the embedded one/);
});

test('without settings of a service they are about the database of the clone’s demo, whether it runs or not', async () => {
  const environment = { ...settings, DATA_KEYS: readFileSync(path.join(folder, 'data-keys'), 'utf8') };
  const note = {
    url: service.url,
    key: ADMIN_KEY,
    environment: { ...environment, DATABASE_URL: 'postgresql://ended@127.0.0.1:1/demo' },
  };
  const clone = path.join(folder, 'clone');
  mkdirSync(clone);
  writeFileSync(path.join(clone, 'demo.json'), JSON.stringify(note));
  const ofDemo = (line: string) => said(line, { DATA_DIR: clone });
  expect(await ofDemo('audit verify')).toEqual([
    0,
    expect.stringMatching(/the demo's database.*\n.*nothing was changed/),
  ]);
  expect(await ofDemo('keys rotate-data')).toEqual([0, expect.stringContaining('All is sealed with k1.')]);
  const half = { DATA_DIR: clone, DATABASE_URL: 'postgresql://nobody@127.0.0.1:1/none' };
  expect(await said('keys rotate-data', half)).toEqual([1, expect.stringContaining('PLATFORM_BASE_URL is not set')]);
});

test('values of an earlier layout are told of at the start and by the doctor, until all are sealed anew', async () => {
  const key = readFileSync(path.join(folder, 'data-keys'), 'utf8').trim();
  expect(service.output()).not.toContain(FORMER);
  expect(await onDatabase((client) => inFormerLayout(client, key))).toBeGreaterThan(2);
  expect(await service.kill('SIGTERM')).toBe(0);
  service = await startService();
  expect(service.output()).toContain(FORMER);
  expect(await partIs(service, 'vault', 'ok')).toEqual({ status: 'ok' });
  expect((await said('doctor'))[1]).toContain(FORMER);
  expect(await said('keys rotate-data --dry-run')).toEqual([2, expect.stringContaining('run this without --dry-run')]);

  // It waits for a row that somebody else has; the service stops, and its PostgreSQL with it.
  const rotation = await onDatabase(async (client) => {
    await client.query(`BEGIN; SELECT FROM people WHERE external_id = 'p-2' FOR UPDATE`);
    const begun = await command('keys rotate-data');
    const rest = `SELECT FROM people WHERE substring(profile FOR 1) = '\\x01'`;
    await until('the other row is sealed anew', async () => (await client.query(rest)).rowCount === 1);
    expect(await service.kill('SIGTERM')).toBe(0);
    return begun;
  });
  await rotation.ended();
  // The latter where the service took longer to stop than a rotation waits.
  expect(rotation.output()).toMatch(/PostgreSQL can not be reached .*\n$|still to be sealed anew/);

  expect(await said('keys rotate-data')).toEqual([0, expect.stringMatching(/k1\.\n.*restart every process/)]);
  expect((await said('doctor'))[1]).not.toContain(FORMER);
  service = await startService();
  expect(service.output()).not.toContain(FORMER);
});
