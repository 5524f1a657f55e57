import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { dataOf, killPostmaster, postmasterOf } from '../harness/postmaster.js';
import type { Program } from '../harness/program.js';
import { until } from '../harness/until.js';
import { processIdentity, runsWithArgument } from '../src/database/embedded-postgres-process.js';
import { usePrograms } from './support/programs.js';

interface Holder {
  readonly program: Program;
  readonly url: string;
  readonly home: string;
  readonly adopted: boolean;
}

const run = usePrograms();
const folders: string[] = [];
const holders: Holder[] = [];
const homes = new Set<string>();

function newFolder(): string {
  const folder = mkdtempSync(path.join(process.env.TEST_FOLDER ?? '', 'embedded-'));
  chmodSync(folder, 0o755);
  folders.push(folder);
  return folder;
}

async function hold(dataRoot: string): Promise<Holder> {
  const program = await run({ file: 'test/support/hold-postgres.mjs', args: [dataRoot] });
  const [, url = '', home = ''] = await program.printed(/^held (\S+) in (\S+)$/m);
  const holder = { program, url, home, adopted: program.output().includes('adopted') };
  holders.push(holder);
  homes.add(home);
  return holder;
}

async function letGo(holder: Holder): Promise<void> {
  holder.program.send('release');
  expect(await holder.program.ended()).toBe(0);
}

/** Ends what a test that failed has left, so that the next one finds the server stopped. */
async function stopAll(): Promise<void> {
  for (const { program } of holders.splice(0)) await program.kill();
  for (const home of homes) {
    if (!existsSync(pidFile(home))) continue;
    const pid = postmasterOf(home);
    if (runsWithArgument(pid, dataOf(home))) process.kill(pid, 'SIGQUIT');
    await until('the server has ended', () => !runsWithArgument(pid, dataOf(home)));
    rmSync(pidFile(home), { force: true });
  }
}

async function query(url: string, sql: string): Promise<unknown[][]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query({ text: sql, rowMode: 'array' })).rows;
  } finally {
    await client.end();
  }
}

/** Notices the server's death only at its end, and keeps its memory until then: meanwhile none can start. */
const BUSY = `DO $$ BEGIN WHILE (pg_stat_file('go', true)).size IS NULL LOOP END LOOP; END $$`;
const RUNNING = `SELECT 1 FROM pg_stat_activity WHERE query LIKE 'DO %' AND state = 'active'`;

const pidFile = (home: string): string => path.join(dataOf(home), 'postmaster.pid');

/** What the server, and the one before it, said. */
function logOf(home: string): string {
  const files = ['server.log', 'server.log.1'].map((name) => path.join(home, 'cluster', name));
  return files.map((file) => (existsSync(file) ? readFileSync(file, 'utf8') : '')).join('');
}

describe('the embedded PostgreSQL', () => {
  /** Of one server, which is stopped at the beginning of each test and holds a table with one row. */
  let dataRoot: string;

  beforeAll(async () => {
    dataRoot = newFolder();
    const holder = await hold(dataRoot);
    await query(holder.url, 'CREATE TABLE kept AS SELECT 42 AS answer');
    await letGo(holder);
  });
  afterEach(stopAll);
  afterAll(() => {
    for (const folder of [...homes, ...folders]) rmSync(folder, { recursive: true, force: true });
  });

  it('is durable, on UTC, in UTF-8, on the loopback address alone, and keeps its password to its user', async () => {
    const holder = await hold(dataRoot);
    const settings = [
      'fsync',
      'TimeZone',
      'server_encoding',
      'lc_messages',
      'listen_addresses',
      'unix_socket_directories',
    ];
    const sql = `SELECT ${settings.map((name) => `current_setting('${name}')`).join(', ')}`;
    expect(await query(holder.url, sql)).toEqual([['on', 'UTC', 'UTF8', 'C', '127.0.0.1', '']]);
    expect(statSync(path.join(holder.home, 'cluster', 'password')).mode & 0o777).toBe(0o600);
    const wrong = new URL(holder.url);
    wrong.password = 'guessed';
    await expect(query(wrong.toString(), 'SELECT 1')).rejects.toThrow(/password/);
    await letGo(holder);
  });

  it('is adopted by a later process, and stopped by the last one that lets go', async () => {
    const first = await hold(dataRoot);
    const pid = postmasterOf(first.home);
    const second = await hold(dataRoot);
    expect([first.adopted, second.adopted, second.url]).toEqual([false, true, first.url]);
    await letGo(first);
    expect(await query(second.url, 'SELECT 1')).toEqual([[1]]);
    await letGo(second);
    expect(processIdentity(pid)).toBeNull();
    expect(existsSync(pidFile(first.home))).toBe(false);
  });

  it('outlives the SIGKILL of whoever started it, and the next one finds every row', async () => {
    const first = await hold(dataRoot);
    await query(first.url, 'INSERT INTO kept VALUES (43)');
    await first.program.kill();
    const second = await hold(dataRoot);
    expect(second.adopted).toBe(true);
    expect(await query(second.url, 'DELETE FROM kept WHERE answer = 43 RETURNING answer')).toEqual([[43]]);
    await letGo(second);
  });

  it('starts again at the same address, with every row, when it is killed while somebody holds it and a statement runs on', async () => {
    const holder = await hold(dataRoot);
    const statement = query(holder.url, BUSY).catch(() => {});
    await until('the statement runs', async () => (await query(holder.url, RUNNING)).length > 0);
    killPostmaster(holder.home);
    await until('another server was refused', () => logOf(holder.home).includes('shared memory block'));
    writeFileSync(path.join(dataOf(holder.home), 'go'), '');
    await statement;
    const rows = await until('the server is back', () =>
      query(holder.url, 'SELECT answer FROM kept').catch(() => null),
    );
    expect(rows).toEqual([[42]]);
    await letGo(holder);
  });

  it('starts after it was killed together with whoever held it', async () => {
    const first = await hold(dataRoot);
    const pid = postmasterOf(first.home);
    await first.program.kill();
    process.kill(pid, 'SIGKILL');
    const second = await hold(dataRoot);
    expect(second.adopted).toBe(false);
    expect(await query(second.url, 'SELECT answer FROM kept')).toEqual([[42]]);
    await letGo(second);
  });

  it.each([
    ['a process that is no more', () => 2 ** 22 - 3],
    ['another program', () => process.pid],
  ])('starts in spite of a postmaster.pid that names %s', async (_, pid) => {
    const first = await hold(dataRoot);
    const stale = readFileSync(pidFile(first.home), 'utf8').replace(/^\d+/, String(pid()));
    await letGo(first);
    writeFileSync(pidFile(first.home), stale);
    const second = await hold(dataRoot);
    expect(await query(second.url, 'SELECT answer FROM kept')).toEqual([[42]]);
    await letGo(second);
  });

  it('says so when its server refuses the login, whether it runs already or is started for it', async () => {
    const running = await hold(dataRoot);
    const file = path.join(running.home, 'cluster', 'password');
    const password = readFileSync(file, 'utf8');
    writeFileSync(file, 'another');
    const refusal = /The embedded PostgreSQL refuses its own login \(28P01\): put the file password back into (\S+) /;
    for (const isRunning of [true, false]) {
      if (!isRunning) await letGo(running);
      const refused = await run({ file: 'test/support/hold-postgres.mjs', args: [dataRoot] });
      const [, folder] = await refused.printed(refusal);
      expect(folder).toBe(path.dirname(file));
      expect(await refused.ended()).not.toBe(0);
      expect(refused.output()).not.toContain(password);
    }
    writeFileSync(file, password);
    const again = await hold(dataRoot);
    expect(await query(again.url, 'SELECT answer FROM kept')).toEqual([[42]]);
    await letGo(again);
  });

  it('is made and started once when three processes start it at the same time, in spite of a dead one that held the lock and had made half of it', async () => {
    const fresh = newFolder();
    const draft = path.join(fresh, 'postgres', 'cluster.new', 'data');
    mkdirSync(draft, { recursive: true });
    writeFileSync(path.join(draft, 'PG_VERSION'), '18\n');
    writeFileSync(path.join(fresh, 'postgres', 'lock'), `${process.pid} a-start-time-of-long-ago x`);
    const all = await Promise.all([hold(fresh), hold(fresh), hold(fresh)]);
    expect(all.filter((holder) => !holder.adopted)).toHaveLength(1);
    expect(new Set(all.map((holder) => holder.url)).size).toBe(1);
    expect(await query(all[0]?.url ?? '', 'SELECT 1')).toEqual([[1]]);
    await Promise.all(all.map(letGo));
    expect(existsSync(pidFile(all[0]?.home ?? ''))).toBe(false);
  });

  const asRoot = process.getuid?.() === 0 ? it : it.skip;
  asRoot('keeps its data elsewhere, and says where, when root has it under a folder closed to others', async () => {
    const closed = newFolder();
    chmodSync(closed, 0o700);
    const inside = path.join(closed, 'project', '.data');
    const holder = await hold(inside);
    expect(holder.home.startsWith(closed)).toBe(false);
    expect(readFileSync(path.join(inside, 'postgres-is-elsewhere.txt'), 'utf8').split('\n')[0]).toBe(holder.home);
    expect(statSync(dataOf(holder.home)).uid).not.toBe(0);
    await letGo(holder);
    const again = await hold(inside);
    expect(again.home).toBe(holder.home);
    await letGo(again);
  });
});
