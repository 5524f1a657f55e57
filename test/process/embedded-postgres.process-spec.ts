import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { dataOf, killPostmaster, postmasterOf } from '../../harness/postmaster.js';
import { processIdentity } from '../../harness/process-identity.js';
import type { Program } from '../../harness/program.js';
import { until } from '../../harness/until.js';
import { usePrograms } from '../support/programs.js';

interface Owner {
  readonly program: Program;
  readonly url: string;
  readonly home: string;
}

const OWN = 'test/support/hold-postgres.mjs';
const IN_USE = /The embedded PostgreSQL in (\S+) is in use by another process.* name another folder in DATA_DIR/;
const KEPT = 'SELECT answer FROM kept';

const run = usePrograms();
const folders: string[] = [];
const homes = new Set<string>();

function newFolder(): string {
  const folder = mkdtempSync(path.join(process.env.TEST_FOLDER ?? '', 'embedded-'));
  chmodSync(folder, 0o755);
  folders.push(folder);
  return folder;
}

async function own(dataRoot: string): Promise<Owner> {
  const program = await run({ file: OWN, args: [dataRoot] });
  const [, url = '', home = ''] = await program.printed(/^held (\S+) in (\S+)$/m);
  homes.add(home);
  return { program, url, home };
}

async function release(owner: Owner): Promise<void> {
  owner.program.send('release');
  expect(await owner.program.ended()).toBe(0);
}

/** Starts an owner that is refused. */
async function refusal(dataRoot: string, sentence: RegExp): Promise<RegExpExecArray> {
  const program = await run({ file: OWN, args: [dataRoot] });
  const match = await program.printed(sentence);
  expect(await program.ended()).not.toBe(0);
  return match;
}

async function query(url: string, sql: string): Promise<unknown[][]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  try {
    await client.connect();
    return (await client.query({ text: sql, rowMode: 'array' })).rows;
  } finally {
    await client.end().catch(() => {});
  }
}

/** Keeps the shared memory of a killed server until it ends; until then no server can start. */
const BUSY = `DO $$ BEGIN WHILE (pg_stat_file('go', true)).size IS NULL LOOP END LOOP; END $$`;
const RUNNING = `SELECT 1 FROM pg_stat_activity WHERE query LIKE 'DO %' AND state = 'active'`;

const logOf = (home: string): string => readFileSync(path.join(home, 'cluster/server.log'), 'utf8');

const pidFile = (home: string): string => path.join(dataOf(home), 'postmaster.pid');

describe('the embedded PostgreSQL', () => {
  /** A cluster that holds a table with one row; its server is stopped before each test. */
  let dataRoot: string;

  beforeAll(async () => {
    dataRoot = newFolder();
    const owner = await own(dataRoot);
    await query(owner.url, 'CREATE TABLE kept AS SELECT 42 AS answer');
    await release(owner);
  });
  afterAll(() => {
    for (const folder of [...homes, ...folders]) rmSync(folder, { recursive: true, force: true });
  });

  it('is durable, local, in UTC and UTF-8, keeps its password, and is stopped by its only owner', async () => {
    const owner = await own(dataRoot);
    const pid = postmasterOf(owner.home);
    const settings = ['fsync', 'TimeZone', 'server_encoding', 'lc_messages', 'listen_addresses'];
    const sql = `SELECT ${settings.map((name) => `current_setting('${name}')`).join(', ')}`;
    expect(await query(owner.url, sql)).toEqual([['on', 'UTC', 'UTF8', 'C', '127.0.0.1']]);
    expect(await query(owner.url, 'SHOW unix_socket_directories')).toEqual([['']]);
    expect(statSync(path.join(owner.home, 'cluster', 'password')).mode & 0o777).toBe(0o600);
    const wrong = new URL(owner.url);
    wrong.password = 'guessed';
    await expect(query(wrong.toString(), 'SELECT 1')).rejects.toThrow(/password/);
    if (process.platform === 'linux') {
      expect(readFileSync(`/proc/${pid}/environ`, 'utf8')).not.toContain('HOME=');
    }
    expect((await refusal(dataRoot, IN_USE))[1]).toBe(owner.home);
    expect(await query(owner.url, KEPT)).toEqual([[42]]);
    await release(owner);
    expect(processIdentity(pid)).toBeNull();
    expect(existsSync(pidFile(owner.home))).toBe(false);
  });

  it('ends with a killed owner, and the next owner finds every row', async () => {
    const first = await own(dataRoot);
    const pid = postmasterOf(first.home);
    await query(first.url, 'INSERT INTO kept VALUES (43)');
    await first.program.kill();
    const second = await own(dataRoot);
    expect(processIdentity(pid)).toBeNull();
    expect(await query(second.url, 'DELETE FROM kept WHERE answer = 43 RETURNING answer')).toEqual([[43]]);
    await second.program.kill();
    await until('the server has ended', () => !existsSync(pidFile(second.home)));
  });

  it('stays down when it is killed, and the next owner waits for what is left of it', async () => {
    const first = await own(dataRoot);
    const statement = query(first.url, BUSY).catch(() => {});
    await until('the statement runs', async () => (await query(first.url, RUNNING)).length > 0);
    const pid = postmasterOf(first.home);
    killPostmaster(first.home);
    await until('the server has ended', () => processIdentity(pid) === null);
    await release(first);
    const starting = own(dataRoot);
    await until('another server was refused', () => logOf(first.home).includes('shared memory block'));
    writeFileSync(path.join(dataOf(first.home), 'go'), '');
    await statement;
    const second = await starting;
    expect(await query(second.url, KEPT)).toEqual([[42]]);
    await release(second);
  });

  it('starts despite a postmaster.pid of an ended process or of another program', async () => {
    const first = await own(dataRoot);
    const stale = readFileSync(pidFile(first.home), 'utf8');
    await release(first);
    for (const pid of [2 ** 22 - 3, process.pid]) {
      writeFileSync(pidFile(first.home), stale.replace(/^\d+/, String(pid)));
      const next = await own(dataRoot);
      expect(await query(next.url, KEPT)).toEqual([[42]]);
      await release(next);
    }
  });

  it('names the cause when the password or the version does not fit', async () => {
    const { home } = await own(dataRoot).then((owner) => release(owner).then(() => owner));
    for (const [name, text, sentence] of [
      ['password', 'another', /the user or the password in (\S+) \(28P01\)\. Correct it/],
      [
        'data/PG_VERSION',
        '17\n',
        /does not start \(database files are incompatible with server\): see (\S+)\/server.log, or set DATA_DIR/,
      ],
    ] as const) {
      const file = path.join(home, 'cluster', name);
      const before = readFileSync(file, 'utf8');
      writeFileSync(file, text);
      expect((await refusal(dataRoot, sentence))[1]).toMatch(path.join(home, 'cluster'));
      writeFileSync(file, before);
    }
    const again = await own(dataRoot);
    expect(await query(again.url, KEPT)).toEqual([[42]]);
    await release(again);
  });

  it('has one owner when three processes start concurrently in an empty folder', async () => {
    const fresh = newFolder();
    const programs = await Promise.all([1, 2, 3].map(() => run({ file: OWN, args: [fresh] })));
    const starts = await Promise.all(programs.map((program) => program.printed(/is in use|^held (\S+)/m)));
    const urls = starts.flatMap(([, url]) => url ?? []);
    expect(urls).toHaveLength(1);
    expect(await query(urls[0] ?? '', 'SELECT 1')).toEqual([[1]]);
    for (const program of programs) program.send('release');
    const codes = await Promise.all(programs.map((program) => program.ended()));
    expect(codes.filter((code) => code === 0)).toHaveLength(1);
    expect(readdirSync(path.join(fresh, 'postgres')).filter((name) => name.startsWith('cluster'))).toEqual(['cluster']);
  });

  it('makes a role that owns nothing', async () => {
    const owner = await own(dataRoot);
    const role = `FROM pg_roles WHERE rolname = 'notebridge_service'`;
    expect(await query(owner.url, `SELECT rolsuper, rolcreaterole, rolcreatedb, rolbypassrls ${role}`)).toEqual([
      [false, false, false, false],
    ]);
    expect(await query(owner.url, `SELECT count(*)::int FROM pg_class WHERE relowner = (SELECT oid ${role})`)).toEqual([
      [0],
    ]);
    await release(owner);
  });

  const asRoot = process.getuid?.() === 0 ? it : it.skip;
  asRoot('keeps its data elsewhere when the folder of root is closed to others', async () => {
    const closed = newFolder();
    chmodSync(closed, 0o700);
    const inside = path.join(closed, 'project', '.data');
    const owner = await own(inside);
    expect(owner.home.startsWith(closed)).toBe(false);
    expect(realpathSync(path.join(inside, 'postgres'))).toBe(owner.home);
    expect(statSync(dataOf(owner.home)).uid).not.toBe(0);
    await release(owner);
    const again = await own(inside);
    expect(again.home).toBe(owner.home);
    await release(again);
  });
});
