import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { dataOf, killPostmaster, postmasterOf } from '../harness/postmaster.js';
import type { Program } from '../harness/program.js';
import { until } from '../harness/until.js';
import { processIdentity } from '../src/database/embedded-postgres-process.js';
import { usePrograms } from './support/programs.js';

interface Holder {
  readonly program: Program;
  readonly url: string;
  readonly home: string;
  readonly adopted: boolean;
}

const run = usePrograms();
const folders: string[] = [];
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
  homes.add(home);
  return { program, url, home, adopted: program.output().includes('adopted') };
}

async function letGo(holder: Holder): Promise<void> {
  holder.program.send('release');
  expect(await holder.program.ended()).toBe(0);
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

/** Notices the server's death only at its end, and keeps its memory until then: a second during which none can start. */
const BUSY = `DO $$
  DECLARE ends timestamptz := clock_timestamp() + interval '1 second';
  BEGIN WHILE clock_timestamp() < ends LOOP END LOOP; END $$`;
const RUNNING = `SELECT 1 FROM pg_stat_activity WHERE query LIKE 'DO %' AND state = 'active'`;

const pidFile = (home: string): string => path.join(dataOf(home), 'postmaster.pid');

describe('the embedded PostgreSQL', () => {
  afterAll(async () => {
    for (const home of homes) {
      if (existsSync(pidFile(home))) {
        const pid = postmasterOf(home);
        if (processIdentity(pid)) process.kill(pid, 'SIGQUIT');
        await until('the server has ended', () => processIdentity(pid) === null);
      }
      rmSync(home, { recursive: true, force: true });
    }
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });

  it('is durable, on UTC, in UTF-8, on the loopback address alone, and keeps its password to its user', async () => {
    const holder = await hold(newFolder());
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
    const dataRoot = newFolder();
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
    const dataRoot = newFolder();
    const first = await hold(dataRoot);
    await query(first.url, 'CREATE TABLE kept AS SELECT 42 AS answer');
    await first.program.kill();
    const second = await hold(dataRoot);
    expect(second.adopted).toBe(true);
    expect(await query(second.url, 'SELECT answer FROM kept')).toEqual([[42]]);
    await letGo(second);
  });

  it('starts again at the same address, with every row, when it is killed while somebody holds it and a statement runs on', async () => {
    const holder = await hold(newFolder());
    await query(holder.url, 'CREATE TABLE kept AS SELECT 42 AS answer');
    const statement = query(holder.url, BUSY).catch(() => {});
    await until('the statement runs', async () => (await query(holder.url, RUNNING)).length > 0);
    killPostmaster(holder.home);
    await statement;
    const rows = await until('the server is back', () =>
      query(holder.url, 'SELECT answer FROM kept').catch(() => null),
    );
    expect(rows).toEqual([[42]]);
    await letGo(holder);
  });

  it('starts after it was killed together with whoever held it', async () => {
    const dataRoot = newFolder();
    const first = await hold(dataRoot);
    await query(first.url, 'CREATE TABLE kept AS SELECT 42 AS answer');
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
    const dataRoot = newFolder();
    const first = await hold(dataRoot);
    const stale = readFileSync(pidFile(first.home), 'utf8').replace(/^\d+/, String(pid()));
    await letGo(first);
    writeFileSync(pidFile(first.home), stale);
    const second = await hold(dataRoot);
    expect(await query(second.url, 'SELECT 1')).toEqual([[1]]);
    await letGo(second);
  });

  it('starts once when two processes start it at the same time, and in spite of a dead one that held the lock', async () => {
    const dataRoot = newFolder();
    mkdirSync(path.join(dataRoot, 'postgres'));
    writeFileSync(path.join(dataRoot, 'postgres', 'lock'), `${process.pid} a-start-time-of-long-ago x`);
    const holders = await Promise.all([hold(dataRoot), hold(dataRoot), hold(dataRoot)]);
    expect(holders.filter((holder) => !holder.adopted)).toHaveLength(1);
    expect(new Set(holders.map((holder) => holder.url)).size).toBe(1);
    await Promise.all(holders.map(letGo));
    expect(existsSync(pidFile(holders[0]?.home ?? ''))).toBe(false);
  });

  it('makes its data folder anew when the process that made it was killed half-way', async () => {
    const dataRoot = newFolder();
    const draft = path.join(dataRoot, 'postgres', 'cluster.new', 'data');
    mkdirSync(draft, { recursive: true });
    writeFileSync(path.join(draft, 'PG_VERSION'), '18\n');
    const holder = await hold(dataRoot);
    expect(await query(holder.url, 'SELECT 1')).toEqual([[1]]);
    await letGo(holder);
  });

  const asRoot = process.getuid?.() === 0 ? it : it.skip;
  asRoot('keeps its data elsewhere, and says where, when root has it under a folder closed to others', async () => {
    const closed = newFolder();
    chmodSync(closed, 0o700);
    const dataRoot = path.join(closed, 'project', '.data');
    const holder = await hold(dataRoot);
    expect(holder.home.startsWith(closed)).toBe(false);
    expect(readFileSync(path.join(dataRoot, 'postgres-is-elsewhere.txt'), 'utf8').split('\n')[0]).toBe(holder.home);
    expect(statSync(dataOf(holder.home)).uid).not.toBe(0);
    await letGo(holder);
    const again = await hold(dataRoot);
    expect(again.home).toBe(holder.home);
    await letGo(again);
  });
});
