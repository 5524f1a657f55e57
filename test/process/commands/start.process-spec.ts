import { execFile } from 'node:child_process';
import { cpSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ROOT } from '../../support/pages.js';

const NOT_BUILT = 'notebridge is not built: run npm ci && npm run build first.';
const NOT_INSTALLED = 'The packages of notebridge are not installed: run npm ci first.';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'notebridge-start-'));
  for (const name of ['scripts', 'package.json', 'package-lock.json', '.npmrc'])
    cpSync(path.join(ROOT, name), path.join(folder, name), { recursive: true });
});
afterEach(() => rmSync(folder, { recursive: true }));

const write = (file: string, text: string) => {
  mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
  writeFileSync(path.join(folder, file), text);
};

/** Every file and folder, with the number of its inode. */
const files = () =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => `${name} ${lstatSync(path.join(folder, name)).ino}`)
    .sort();

/** Runs `npm start migrate` without a registry. */
function start(env: NodeJS.ProcessEnv = {}): Promise<{ code: number | null; output: string }> {
  const { PATH, HOME } = process.env;
  const options = { cwd: folder, env: { PATH, HOME, npm_config_registry: 'http://127.0.0.1:9', ...env } };
  return new Promise((resolve) => {
    const child = execFile('npm', ['--silent', 'start', 'migrate'], options, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode, output: `${stdout}${stderr}`.trim() }),
    );
  });
}

const installProduction = () => {
  write('node_modules/.package-lock.json', '{ "lockfileVersion": 3, "packages": {} }');
  write('node_modules/pg/package.json', '{ "name": "pg" }');
};

test.each([
  ['nothing is installed or built', () => {}, NOT_BUILT],
  ['the packages of production are installed, and nothing is built', installProduction, NOT_BUILT],
  ['nothing is installed', () => write('dist/src/main.js', ''), NOT_INSTALLED],
])('npm start says what to do, and installs and builds nothing: %s', async (_, prepare, sentence) => {
  prepare();
  const before = files();
  expect(await start()).toEqual({ code: 1, output: sentence });
  expect(files()).toEqual(before);
});

test('npm start runs the built service with its arguments and the settings of .env', async () => {
  installProduction();
  write('.env', 'PORT=3999\nHOST=0.0.0.0\n');
  write('dist/src/main.js', `console.log(process.argv.slice(2), process.env.PORT, process.env.HOST)`);
  const { code, output } = await start({ HOST: '127.0.0.1' });
  expect([code, output]).toEqual([0, "[ 'migrate' ] 3999 127.0.0.1"]);
});
