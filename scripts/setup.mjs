// Installs and builds what is missing or older than its sources. Plain Node, because nothing may be installed yet.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { takeTurn } from './take-turn.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const INSTALLED = 'node_modules/.package-lock.json';
const [PRISMA, METADATA] = ['dist/.built/prisma', 'dist/.built/metadata'];
const COMPILED = [
  'client',
  'src',
  'simulator',
  'demo',
  'bench',
  'harness',
  'faults',
  '.swcrc',
  'nest-cli.json',
  'tsconfig.build.json',
];

/** The steps of `npm run build`: its name, an output, its sources. All depend on the installed packages, too. */
const BUILDS = [
  ['Generating the database client', 'prisma', 'src/generated/prisma', ['prisma/schema.prisma', 'prisma.config.ts']],
  [
    'Describing the API',
    'metadata',
    'src/generated/metadata.ts',
    ['src', 'scripts/openapi-metadata.mjs', 'tsconfig.json', 'tsconfig.build.json'],
  ],
  ['Compiling', 'service', 'dist/src/main.js', [...COMPILED, PRISMA, METADATA]],
  ['Building the console', 'console', 'dist/console/index.html', ['client', 'console']],
  ['Packing the client', 'client', 'dist/client-package', ['client', 'tsconfig.json', 'scripts/pack-client.mjs']],
];

const json = (file) => JSON.parse(fs.readFileSync(file, 'utf8'));
const markOf = ([, name]) => `dist/.built/${name}`;

function fail(reason) {
  console.error(`✗ ${reason}`);
  process.exit(1);
}

/** True if the packages of the lockfile are installed, except for those of other platforms. */
function isInstalled() {
  if (!fs.existsSync(INSTALLED)) return false;
  const [{ '': _, ...locked }, installed] = ['package-lock.json', INSTALLED].map((file) => json(file).packages);
  return Object.entries(locked).every(([place, { version, optional }]) =>
    installed[place] ? installed[place].version === version : optional,
  );
}

const isTest = (name) => /\.spec(-support)?\.tsx?$/.test(name);

/** When a file last changed, or anything in a folder. A folder changes when something in it is added or removed. */
function lastChange(place) {
  const stat = fs.statSync(place);
  if (!stat.isDirectory()) return stat.mtimeMs;
  const names = fs.readdirSync(place).filter((name) => name !== 'generated' && !isTest(name));
  return Math.max(stat.mtimeMs, ...names.map((name) => lastChange(`${place}/${name}`)));
}

function isDue(build) {
  const [, , output, sources] = build;
  const isMade = fs.existsSync(markOf(build)) && fs.existsSync(output);
  return !isMade || Math.max(...[...sources, INSTALLED].map(lastChange)) > lastChange(markOf(build));
}

function npm(title, advice, ...args) {
  const start = Date.now();
  process.stderr.write(`${title} …`);
  const { status, stdout, stderr, error } = spawnSync('npm', args, { encoding: 'utf8', maxBuffer: 1e9 });
  process.stderr.write(` ${((Date.now() - start) / 1000).toFixed(1)} s\n`);
  const lines = `${stdout}${stderr}`.trim().split('\n');
  if (status !== 0) fail([advice, ...(error ? [error.message] : lines.slice(-30))].join('\n'));
}

function setUp() {
  const install = ['ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund', '--loglevel=error'];
  const advice = 'npm ci failed. Can the package registry be reached, and may you write to this folder?';
  if (!isInstalled()) npm('Installing packages (npm ci)', advice, ...install);
  // npm links only the commands of dependencies. With this link `npx notebridge` works in the clone.
  const link = 'node_modules/.bin/notebridge';
  if (!fs.existsSync(link)) fs.symlinkSync('../../bin/notebridge.js', link);
  for (const build of BUILDS) {
    if (!isDue(build)) continue; // asked only now, because a step may depend on the one before it
    const [title, name] = build;
    fs.mkdirSync('dist/.built', { recursive: true });
    fs.writeFileSync(`${markOf(build)}.begun`, ''); // older than what changes while the step reads its sources
    npm(title, `npm run build:${name} failed:`, 'run', '--silent', `build:${name}`);
    fs.renameSync(`${markOf(build)}.begun`, markOf(build));
  }
}

const oldest = json('package.json').engines.node.replace('>=', '');
if (process.versions.node.localeCompare(oldest, 'en', { numeric: true }) < 0)
  fail(`Node ${process.versions.node} is too old: install Node ${oldest} or later.`);
try {
  if (!isInstalled() || BUILDS.some(isDue)) takeTurn('.data/setup.lock', setUp);
} catch (error) {
  if (!['EACCES', 'EPERM', 'EROFS'].includes(error.code)) throw error;
  fail(`${error.message}: this folder is not writable. Use your own clone, or the user that owns this one.`);
}
