import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { dataOf, postmasterOf } from '../harness/postmaster.js';
import type { Program } from '../harness/program.js';
import { until } from '../harness/until.js';
import { processIdentity } from '../src/database/embedded-postgres-process.js';
import { usePrograms } from './support/programs.js';

const HOLD = 'test/support/hold-postgres.mjs';
const REFUSAL = /The embedded PostgreSQL in (\S+) is in use from another container or machine.* touching (\S+): stop/;
/** For a process that sees none of the others, as in a container; `--net` takes the loopback address from it, too. */
const ELSEWHERE = ['--pid', '--fork', '--mount-proc', '--kill-child'];

const run = usePrograms();
let dataRoot: string;
let home: string;
let file: string;
let beating: NodeJS.Timeout | undefined;

async function hold(): Promise<{ program: Program; url: string }> {
  const program = await run({ file: HOLD, args: [dataRoot] });
  const [, url = '', folder = ''] = await program.printed(/^held (\S+) in (\S+)$/m);
  home = folder;
  return { program, url };
}

async function letGo({ program }: { program: Program }): Promise<void> {
  program.send('release');
  expect(await program.ended()).toBe(0);
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query('SELECT 1');
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}

/** What another container leaves in the file and keeps doing to it. */
function beatElsewhere(): void {
  writeFileSync(file, 'another-boot pid:[1]');
  beating = setInterval(() => utimesSync(file, new Date(), new Date()), 500);
}

beforeAll(async () => {
  dataRoot = mkdtempSync(path.join(process.env.TEST_FOLDER ?? '', 'embedded-'));
  chmodSync(dataRoot, 0o755);
  await letGo(await hold());
  file = path.join(home, 'in-use');
});
afterEach(() => clearInterval(beating));
afterAll(() => {
  for (const folder of [home, dataRoot]) rmSync(folder, { recursive: true, force: true });
});

test('a data folder that another container keeps in use is left alone, and the refusal names the file that tells so', async () => {
  const pidFile = path.join(dataOf(home), 'postmaster.pid');
  const theirs = `${2 ** 22 - 3}\n${dataOf(home)}\n0\n1\n`;
  writeFileSync(pidFile, theirs);
  beatElsewhere();
  const refused = await run({ file: HOLD, args: [dataRoot] });
  const [, folder, named] = await refused.printed(REFUSAL);
  expect([folder, named]).toEqual([home, file]);
  expect(await refused.ended()).not.toBe(0);
  expect(readFileSync(pidFile, 'utf8')).toBe(theirs);
  rmSync(pidFile);
  rmSync(file);
});

test('a holder that was overtaken while it gave no sign of life ends its server, and has it back when the other one is silent', async () => {
  const holder = await hold();
  const server = postmasterOf(home);
  beatElsewhere();
  await until('the server has ended', () => processIdentity(server) === null);
  expect(await answers(holder.url)).toBe(false);
  clearInterval(beating);
  await until('it is back', () => answers(holder.url));
  await letGo(holder);
  expect(existsSync(file)).toBe(false);
});

const maySeparate = spawnSync('unshare', [...ELSEWHERE, '--net', 'true']).status === 0 ? test : test.skip;
maySeparate(
  'processes that do not see each other never start two servers on one data folder, and follow one another at once',
  async () => {
    const elsewhere = (...more: string[]) => {
      const args = [...ELSEWHERE, ...more, process.execPath, HOLD, dataRoot];
      return spawnSync('unshare', args, { input: 'release\n', encoding: 'utf8', env: { PATH: process.env.PATH } });
    };
    const holder = await hold();
    const server = postmasterOf(home);
    const refused = elsewhere('--net');
    expect([postmasterOf(home), refused.status === 0, REFUSAL.test(refused.stderr)]).toEqual([server, false, true]);
    expect(await answers(holder.url)).toBe(true);
    await letGo(holder);

    const { status, stdout } = elsewhere();
    expect([status, stdout.includes('started'), stdout.includes('waiting')]).toEqual([0, true, false]);
    expect(existsSync(file)).toBe(false);
  },
);
