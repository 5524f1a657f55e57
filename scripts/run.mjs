// Every npm command of this project: it sets up what is missing, then does its work. Plain Node, for a machine on
// which nothing is installed yet.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { foreground, nodeModule, root } from './processes.mjs';
import { Fault, setUp } from './setup.mjs';

/** Runs a compiled program in the foreground. */
const compiled = (file, args) => foreground(process.execPath, ['--enable-source-maps', `dist/${file}`, ...args]);
const jest = (args, env) => foreground(process.execPath, [nodeModule('jest', 'jest'), ...args], env);

/** Refuses unknown arguments, because a misspelt one would be ignored. */
function onlyKnown(args, ...known) {
  const unknown = args.find((arg) => !known.includes(arg));
  const advice = known.length > 0 ? `Use ${known.join(' or ')}, or none.` : 'Its settings are in the environment.';
  if (unknown !== undefined) throw new Fault(`Unknown argument ${unknown}. ${advice}`);
  return args;
}

const commands = {
  setup: () => 0,
  build: () => 0,
  start: (args) => {
    if (existsSync(path.join(root, '.env'))) process.loadEnvFile(path.join(root, '.env')); // keeps what is set already
    process.env.MALLOC_ARENA_MAX ??= '2'; // as in the Dockerfile
    return compiled('src/main.js', onlyKnown(args, 'migrate'));
  },
  simulator: (args) => compiled('simulator/main.js', onlyKnown(args)),
  demo: (args) => compiled('demo/main.js', onlyKnown(args, '--once')),
  bench: (args) => compiled('bench/main.js', args),
  faults: (args) => compiled('faults/main.js', args),
  soak: (args) => compiled('faults/soak/main.js', args),
  test: (args) => {
    console.error('Collecting the suites …');
    return jest(args);
  },
  mutants: (args) =>
    foreground(process.execPath, [
      nodeModule('@stryker-mutator/core', 'stryker'),
      ...['run', 'scripts/mutants.config.mjs', ...args],
    ]),
  check: async () => (await import('./check.mjs')).check(),
  audit: async (args) => onlyKnown(args) && (await import('./audit.mjs')).audit(),
  sbom: async (args) => (await import('./sbom.mjs')).sbom(root, args),
  release: async (args) =>
    (await import('./release.mjs')).release(root, onlyKnown(args, '--without-image', '--record-migrations')),
  reference: (args) =>
    onlyKnown(args) && jest(['--forceExit', 'test/http/reference.world-spec.ts'], { WRITE_REFERENCE: '1' }),
};

/** Returns the message of a Fault, advice for an obvious cause, or otherwise the stack. */
function explain(error) {
  if (error instanceof Fault) return `✗ ${error.message}`;
  if (['EACCES', 'EPERM', 'EROFS'].includes(error.code))
    return `✗ ${error.message}: this folder is not writable. Use your own clone, or the user that owns this one.`;
  return error;
}

const [name, ...args] = process.argv.slice(2);
try {
  if (!commands[name]) throw new Fault(`Unknown command ${name}. Use one of: ${Object.keys(commands).join(', ')}.`);
  await setUp();
  process.exitCode = await commands[name](args);
} catch (error) {
  console.error(explain(error));
  process.exitCode = 1;
}
