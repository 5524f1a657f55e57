import path from 'node:path';
import { createClient } from '../client/create-client.js';
import { CliFault } from '../src/cli/api/cli-fault.js';
import { changeProviders, deleteClient } from './change-step.js';
import { createSessions } from './create-step.js';
import { freshDatabase } from './database.js';
import { firstImport, platformBefore, secondImport } from './import-step.js';
import { lookNext } from './look-next.js';
import { Platform } from './platform.js';
import { type ProgramPlan, startProgram } from './program.js';
import { readNotes } from './session-step.js';
import { CALLS_PER_MINUTE, dataOf, type LocalSettings, leaveNote, localSettings, USUAL_PORT } from './settings.js';
import { type Stage, tell, title } from './stage.js';

/** The steps of the demo, in order. */
const STEPS: ((stage: Stage) => Promise<void>)[] = [
  platformBefore,
  firstImport,
  secondImport,
  changeProviders,
  deleteClient,
  readNotes,
  createSessions,
];

/** Clean-up at the end, in reverse order. */
const undo: (() => Promise<void>)[] = [];
const stopping = new AbortController();

async function main(): Promise<void> {
  const begun = performance.now();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => stopping.abort(new CliFault('Stopped.', 130)));
  }
  const unknown = process.argv.slice(2).find((argument) => argument !== '--once');
  if (unknown !== undefined) throw new CliFault(`Unknown argument ${unknown}. Use --once, or none.`);
  const settings = await localSettings(dataOf('demo'));
  const { url, simulatorUrl } = await startAll(settings);
  const key = settings.service.ADMIN_API_KEY ?? '';
  const stage: Stage = {
    ehr: createClient({ url, key }),
    platform: new Platform(simulatorUrl),
    signal: stopping.signal,
  };
  for (const step of STEPS) {
    stopping.signal.throwIfAborted();
    await step(stage);
  }
  title(`The demo took ${Math.round((performance.now() - begun) / 1_000)} s.`);
  if (process.argv.includes('--once')) return;
  lookNext(url, simulatorUrl, key);
  title('Everything keeps running until you press Ctrl-C.');
  await untilStopped();
}

async function startAll(settings: LocalSettings): Promise<{ url: string; simulatorUrl: string }> {
  title('Starting PostgreSQL, a simulated platform and notebridge.');
  const database = await freshDatabase(dataOf('demo'));
  undo.push(database.stop);
  settings.service.DATABASE_URL = database.url;
  const simulator = await start('The simulator', 'simulator', 'simulator/main.js', settings.simulator);
  const service = await start('notebridge', 'service', 'src/main.js', settings.service);
  const url = String(service.address);
  const simulatorUrl = String(simulator.url);
  leaveNote(url, { ...settings.service, DATABASE_OWNER_URL: database.ownerUrl });
  const isElsewhere = process.env.PORT === undefined && settings.service.PORT !== USUAL_PORT;
  tell(
    'PostgreSQL  embedded, with an empty database, because the simulated platform loses its users when it stops',
    `platform    ${simulatorUrl}, limited to ${CALLS_PER_MINUTE} user-management calls in any 60 seconds`,
    `notebridge  ${url}${isElsewhere ? ` (another program uses port ${USUAL_PORT})` : ''}`,
  );
  return { url, simulatorUrl };
}

async function start(
  name: string,
  log: string,
  file: string,
  environment: Record<string, string>,
): Promise<Record<string, unknown>> {
  stopping.signal.throwIfAborted();
  const plan: ProgramPlan = {
    name,
    file,
    environment,
    log: path.join(dataOf('demo'), `${log}.log`),
    onDeath: (fault) => stopping.abort(fault),
  };
  const { program, ready } = await startProgram(plan);
  undo.push(() => program.stop());
  return ready;
}

/** Resolves when a user stops the demo; throws if one of its programs ends unexpectedly. */
async function untilStopped(): Promise<void> {
  await new Promise((resolve) => {
    if (stopping.signal.aborted) resolve(undefined);
    stopping.signal.addEventListener('abort', resolve);
  });
  const reason: unknown = stopping.signal.reason;
  if (reason instanceof CliFault && reason.exitCode !== 130) throw reason;
}

async function finish(): Promise<void> {
  for (const step of undo.reverse()) await step();
}

main()
  .catch((error: unknown) => {
    const reason: unknown = stopping.signal.aborted ? stopping.signal.reason : error;
    console.error(`\n${reason instanceof Error ? reason.message : 'The demo failed for an unknown reason.'}`);
    process.exitCode = reason instanceof CliFault ? reason.exitCode : 1;
  })
  .then(finish)
  .then(() => process.exit());
