import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { SETTINGS } from '../src/config/env.validation.js';
import { freshDatabase } from './database.js';
import { STOP_MS, startProgram } from './program.js';
import { dataOf, leaveNote, localSettings, ROOT } from './settings.js';

/** Clean-up at the end, in reverse order. */
const undo: (() => Promise<void>)[] = [];

/** Runs PostgreSQL, the simulator and the service, which `nest start --watch` compiles and restarts after each change. */
async function main(): Promise<void> {
  const folder = dataOf('dev');
  const { service, simulator } = await localSettings(folder);
  const stopped = new Promise<Error | undefined>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve(undefined));
    void start(folder, service, simulator, resolve).catch(resolve);
  });
  const fault = await stopped;
  for (const step of undo.reverse()) await step();
  if (fault) throw fault;
}

async function start(
  folder: string,
  service: Record<string, string>,
  simulator: Record<string, string>,
  onEnd: (fault?: Error) => void,
): Promise<void> {
  const database = await freshDatabase(folder);
  undo.push(database.stop);
  const own = { ...service, DATABASE_URL: database.url };
  const environment = { ...settingsGiven(Object.keys(own)), ...own };
  const { program } = await startProgram({
    name: 'The simulator',
    file: 'simulator/main.js',
    environment: simulator,
    log: path.join(folder, 'simulator.log'),
    onDeath: onEnd,
  });
  undo.push(() => program.stop());
  const url = `http://127.0.0.1:${service.PORT}`;
  leaveNote(url, { ...environment, DATABASE_OWNER_URL: database.ownerUrl });
  console.log(`
PostgreSQL  embedded, with an empty database, because the simulated platform loses its users when it stops
platform    ${service.PLATFORM_BASE_URL}, simulated
notebridge  ${url}, restarts after each change of the source
console     ${url}/console; sign in with the key
key         ${service.ADMIN_API_KEY}

In another terminal, npx notebridge uses this service. Ctrl-C stops everything.
`);
  const nest = startNest(environment);
  const ended = new Promise((resolve) => nest.once('exit', resolve));
  undo.push(() => stopGroup(nest, ended));
  nest.once('error', onEnd).once('exit', () => onEnd(new Error('nest start --watch ended: see its output above.')));
}

/** In a process group of its own, so that the service ends with the command that restarts it. */
function startNest(environment: Record<string, string>): ChildProcess {
  const { PATH, HOME, TMPDIR } = process.env;
  const nest = path.join(ROOT, 'node_modules/.bin/nest');
  return spawn(nest, ['start', '--watch', '--no-shell'], {
    cwd: ROOT,
    // Both programs end when this process is killed: their standard input is a pipe that it holds.
    env: {
      PATH,
      HOME,
      TMPDIR,
      ...environment,
      NODE_OPTIONS: `--require ${path.join(ROOT, 'dist/harness/stop-with-parent.js')}`,
    },
    stdio: ['pipe', 'inherit', 'inherit'],
    detached: true,
  });
}

/** The settings in the environment of this command, such as one that a developer has just added. @param own are not taken */
function settingsGiven(own: readonly string[]): Record<string, string> {
  const taken = SETTINGS.filter((name) => !own.includes(name)).flatMap((name) => [name, `${name}_FILE`]);
  return Object.fromEntries(taken.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}

async function stopGroup({ pid, exitCode, signalCode }: ChildProcess, ended: Promise<unknown>): Promise<void> {
  if (pid === undefined || exitCode !== null || signalCode !== null) return;
  process.kill(-pid, 'SIGTERM');
  const killing = setTimeout(() => process.kill(-pid, 'SIGKILL'), STOP_MS);
  await ended;
  clearTimeout(killing);
}

main().then(
  () => process.exit(),
  (error: Error) => {
    console.error(error.message);
    process.exit(1);
  },
);
