// Every npm command of this project: it sets up what is missing, then does its work. Plain Node, for a machine on
// which nothing is installed yet.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { foreground, nodeModule, root } from './processes.mjs';
import { Fault, setUp } from './setup.mjs';

const notWritten = (what) => new Fault(`${what} is not part of this version.`);

/** Runs a compiled program in the foreground, if this version has it. */
function compiled(file, what, args) {
  if (!existsSync(path.join(root, file))) throw notWritten(what);
  return foreground(process.execPath, ['--enable-source-maps', file, ...args]);
}

/** Refuses what a program does not know: a misspelt word would be passed over. */
function onlyKnown(args, ...known) {
  const stranger = args.find((arg) => !known.includes(arg));
  const advice = known.length > 0 ? `say ${known.join(' or ')}, or nothing` : 'its settings stand in the environment';
  if (stranger !== undefined) throw new Fault(`Unknown argument ${stranger}: ${advice}.`);
  return args;
}

const commands = {
  setup: () => 0,
  build: () => 0,
  start: (args) => {
    if (existsSync(path.join(root, '.env'))) process.loadEnvFile(path.join(root, '.env')); // what is set already stays
    return compiled('dist/src/main.js', 'The service', onlyKnown(args, 'migrate'));
  },
  simulator: (args) => compiled('dist/simulator/main.js', 'The simulator', onlyKnown(args)),
  demo: (args) => compiled('dist/demo/main.js', 'The demo', onlyKnown(args, '--once')),
  bench: (args) => compiled('dist/bench/main.js', 'The benchmark', args),
  faults: (args) => compiled('dist/faults/main.js', 'The fault run', args),
  test: (args) => {
    console.error('Collecting the suites …');
    return foreground(process.execPath, [nodeModule('jest', 'jest'), ...args]);
  },
  check: async () => (await import('./check.mjs')).check(),
  audit: async (args) => onlyKnown(args) && (await import('./audit.mjs')).audit(),
  sbom: async (args) => (await import('./sbom.mjs')).sbom(root, args),
  'api-types': async ([url = 'http://127.0.0.1:3000']) => (await import('./api-types.mjs')).writeApiTypes(url),
  reference: (args) =>
    foreground(process.execPath, [nodeModule('jest', 'jest'), '--forceExit', 'test/reference.e2e-spec.ts'], {
      WRITE_REFERENCE: String(onlyKnown(args).length === 0),
    }),
  screenshots: async (args) => onlyKnown(args) && (await import('./screenshots.mjs')).takeScreenshots(),
  migration: async (args) => (await import('./migration/command.mjs')).migration(args),
};

async function main([name, ...args]) {
  const command = commands[name];
  if (!command) throw new Fault(`Unknown command ${name ?? ''}: one of ${Object.keys(commands).join(', ')}.`);
  await setUp();
  process.exitCode = await command(args);
}

/** What is wrong and what to do, for failures that say so or that have an obvious cause; else where it happened. */
function explain(error) {
  if (error instanceof Fault) return `✗ ${error.message}`;
  if (['EACCES', 'EPERM', 'EROFS'].includes(error.code)) {
    return `✗ ${error.message}: this folder is not yours to write; use a clone of your own, or the user who made it.`;
  }
  return error;
}

main(process.argv.slice(2)).catch((error) => {
  console.error(explain(error));
  process.exitCode = 1;
});
