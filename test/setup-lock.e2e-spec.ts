import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { until } from '../harness/until.js';

/** Milliseconds after which a silent holder's lock is taken over here. */
const SILENT_MS = 3_000;
/** What a process says that could give no sign of life for half of that. */
const HELD_UP = 'held up';
const LOCK = path.resolve(__dirname, '../scripts/setup-lock.mjs');

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'notebridge-lock-'));
  file = path.join(folder, 'setup.lock');
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Takes the lock in a process of its own. @param held what it does while it has it */
function taking(held = ''): Promise<{ said: string; out: string }> {
  const program = `import { withSetupLock } from ${JSON.stringify(LOCK)};
    const before = process.env.HELD_BEFORE;
    let [last, longest] = [performance.now(), 0];
    const look = () => { const now = performance.now(); longest = Math.max(longest, now - last); last = now; };
    setInterval(look, 100).unref();
    if (before) { const fs = await import('node:fs'); fs.writeFileSync(${JSON.stringify(file)}, before.replace('OWN', process.pid)); }
    await withSetupLock(${JSON.stringify(file)}, async () => { console.log('begin'); ${held} console.log('end'); }, ${SILENT_MS});
    look();
    if (longest > ${SILENT_MS / 2}) console.error(${JSON.stringify(HELD_UP)});`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    env: { ...process.env, HELD_BEFORE: process.env.HELD_BEFORE ?? '' },
  });
  let [said, out] = ['', ''];
  child.stderr.on('data', (text) => {
    said += text;
  });
  child.stdout.on('data', (text) => {
    out += text;
  });
  // Not its exit: what it printed last may be read after that.
  return new Promise((resolve) => child.once('close', () => resolve({ said, out })));
}

const host = os.hostname();

test.each([
  ['is empty', ''],
  ['is of the former form', '1'],
  ['names a process that lives and has nothing to do with it', JSON.stringify({ host, pid: process.pid, token: 'x' })],
  ['names a process of another container', JSON.stringify({ host: 'another', pid: 1, token: 'x' })],
])('a lock that %s, and gives no sign of life, is taken over, and named while it is waited for', async (_, text) => {
  writeFileSync(file, text);
  const { said, out } = await taking();
  expect([said.includes(file), out]).toEqual([true, 'begin\nend\n']);
  expect(() => readFileSync(file)).toThrow('ENOENT');
});

test('a lock that names the own number is another’s of an earlier life, and is taken over', async () => {
  process.env.HELD_BEFORE = JSON.stringify({ host, pid: 'OWN', token: 'x' }).replace('"OWN"', 'OWN');
  const { out } = await taking().finally(() => delete process.env.HELD_BEFORE);
  expect(out).toBe('begin\nend\n');
});

test('a holder that lives keeps it, however long its work takes', async () => {
  const log = path.join(folder, 'log');
  const work = (name: string) =>
    `const fs = await import('node:fs'); fs.appendFileSync(${JSON.stringify(log)}, '${name}('); await new Promise((r) => setTimeout(r, ${1.5 * SILENT_MS})); fs.appendFileSync(${JSON.stringify(log)}, ')');`;
  const written = await until('nobody was held up for so long that he seemed dead', async () => {
    rmSync(log, { force: true });
    const all = await Promise.all([taking(work('a')), taking(work('b')), taking(work('c'))]);
    return all.some(({ said }) => said.includes(HELD_UP)) ? undefined : readFileSync(log, 'utf8');
  });
  expect(written).toMatch(/^([abc]\(\)){3}$/);
});
