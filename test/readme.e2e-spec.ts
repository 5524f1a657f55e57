import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Service } from '../harness/service.js';
import { ADMIN_KEY } from './support/app.js';
import { type Mirror, useMirrors } from './support/service.js';

const ROOT = path.resolve(__dirname, '..');
const read = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');
const readme = read('README.md');
const security = read('docs/security.md');

/** Every line of the README's shell blocks, in its order. */
const commands = [...readme.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].flatMap(([, block = '']) =>
  block.trim().split('\n'),
);
const spoken = [
  ...new Set([...(readme + security).matchAll(/`(npx notebridge [^`]+)`/g)].map(([, command = '']) => command)),
];

/** A shell command with the settings before it. */
function parse(command: string): { settings: string[]; words: string[] } {
  const words = command.split(' ');
  const first = words.findIndex((word) => !/^[A-Z_]+=/.test(word));
  return { settings: words.slice(0, first).map((word) => word.split('=')[0] ?? ''), words: words.slice(first) };
}

const isRun = (command: string) => /^(curl|npx notebridge) /.test(command);
const isNpm = (command: string) => parse(command).words[0] === 'npm';

const newMirror = useMirrors();
let mirror: Mirror;
let service: Service;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'notebridge-readme-'));
  mirror = await newMirror();
  service = await mirror.start();
  const files = ['providers', 'clients'].map((kind) => ({
    name: `${kind}.csv`,
    type: 'text/csv',
    content: read(`demo/data/${kind}.csv`),
  }));
  await service.importEnded((await service.startImport('kind=clients', files)).id);
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Where npx finds a command of this clone. */
const COMMANDS = path.join(ROOT, 'node_modules/.bin');

/** Runs a line as it stands, against the service of this suite. */
function run(command: string): Promise<{ code: number | null; output: string }> {
  const { PATH, HOME } = process.env;
  const env = {
    PATH: `${COMMANDS}${path.delimiter}${PATH}`,
    HOME,
    NOTEBRIDGE_URL: service.url,
    NOTEBRIDGE_KEY: ADMIN_KEY,
    PLATFORM_BASE_URL: mirror.simulator.url,
    PLATFORM_API_KEY: 'simulator-api-key',
    PLATFORM_WEBHOOK_SECRET: 'secret',
    PLATFORM_CONTRACT: 'simulator/contract.json',
    ADMIN_API_KEY: ADMIN_KEY,
    DATABASE_URL: mirror.database.url,
    DATA_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
    DATA_DIR: folder,
  };
  return new Promise((resolve) => {
    const child = spawn('sh', ['-c', command], { cwd: ROOT, env });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    }
    child.once('close', (code) => resolve({ code, output }));
  });
}

test('every command of the README is of a kind that is tested here', () => {
  const others = commands.filter((command) => !isRun(command) && !isNpm(command));
  expect(others).toEqual(['cp .env.example .env', 'docker compose up --build']);
  for (const file of ['.env.example', 'docker-compose.yml', 'Dockerfile'])
    expect(existsSync(path.join(ROOT, file))).toBe(true);
});

test('npx runs the command of this clone', async () => {
  const [npx, direct] = [await run('npx notebridge --version'), await run('notebridge --version')];
  expect([npx.code, npx.output]).toEqual([0, expect.stringContaining(direct.output)]);
  expect(direct.output).toMatch(/^\d+\.\d+\.\d+\n$/);
});

/** The same without npx itself, which takes longer than what it runs. */
const withoutNpx = (command: string): string => command.replace(/^npx /, '');

test.each(commands.filter(isRun))('%s', async (command) => {
  const { code, output } = await run(withoutNpx(command));
  const isImport = command.startsWith('npx notebridge import ');
  // The sample holds rows that need somebody, which ends an import with 2.
  expect([isImport ? 2 : 0, code, output]).toEqual([code, code, output]);
});

test.each(commands.filter(isNpm))('%s: the script and its settings exist', (command) => {
  const { settings, words } = parse(command);
  const [, verb, name] = words;
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  expect(Object.keys(scripts)).toContain(verb === 'run' ? name : verb);
  const known = read('.env.example') + read('simulator/options.ts');
  for (const setting of settings) expect(known).toContain(setting);
});

test.each(spoken)('%s, as the text names it: the command and its options exist', async (command) => {
  const words = command.split(' ').slice(2);
  const options = words
    .filter((word) => word.startsWith('--') && word !== '--help')
    .map((word) => word.split('=')[0] ?? '');
  const names = words
    .slice(0, ['keys', 'client', 'audit'].includes(words[0] ?? '') ? 2 : 1)
    .filter((word) => !word.startsWith('--'));
  const { code, output } = await run(`notebridge ${names.join(' ')} --help`);
  expect(code).toBe(0);
  for (const option of options) expect(output).toContain(option);
});

test('every file that the README links is there', () => {
  const links = [...readme.matchAll(/\]\(([^)#]+)\)/g)].map(([, link = '']) => link);
  expect(links.length).toBeGreaterThan(0);
  for (const link of links) expect([link, existsSync(path.join(ROOT, link))]).toEqual([link, true]);
});

test('every safeguard in docs/security.md names tests that there are', () => {
  const safeguards =
    security
      .split('\n## ')
      .find((part) => part.startsWith('Safeguards'))
      ?.match(/^- .*$/gm) ?? [];
  expect(safeguards.length).toBeGreaterThan(20);
  for (const safeguard of safeguards) {
    const tests = [...safeguard.matchAll(/`([\w/.-]+spec\.ts)`/g)].map(([, file = '']) => file);
    expect([safeguard, tests.length > 0 && tests.every((file) => existsSync(path.join(ROOT, file)))]).toEqual([
      safeguard,
      true,
    ]);
  }
});
