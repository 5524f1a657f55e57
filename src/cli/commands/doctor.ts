import 'reflect-metadata';
import { existsSync } from 'node:fs';
import { Command } from 'commander';
import { readClientEnv } from '../../config/client-env.js';
import { type Env, readEnv, validateEnv } from '../../config/env.js';
import { readDemoNote } from '../api/connection.js';
import { type Check, type Finding, faultOf, findingLines } from '../doctor/finding.js';
import { machineChecks } from '../doctor/machine-checks.js';
import { platformChecks } from '../doctor/platform-checks.js';
import { storeChecks } from '../doctor/store-checks.js';

/** Reads the environment as the service does, and looks at everything that it names. */
async function examine(): Promise<void> {
  if (existsSync('.env')) process.loadEnvFile('.env');
  const { checks, settings, machine } = checksToMake();
  let isWell = settings.state !== 'faulty';
  console.log(findingLines('Settings', settings));
  for (const { name, look } of [...machine, ...checks]) {
    const finding = await Promise.resolve().then(look).catch(faultOf);
    isWell &&= finding.state !== 'faulty';
    console.log(findingLines(name, finding));
  }
  process.exitCode = isWell ? 0 : 1;
}

/** Without settings of its own, this clone's demo is looked at. */
function checksToMake(): { settings: Finding; checks: Check[]; machine: Check[] } {
  const client = readClientEnv();
  const demo = client.hasService ? undefined : readDemoNote(client.dataDir);
  try {
    const env = demo ? validateEnv(demo.environment) : readEnv();
    const what = demo
      ? "complete: the demo's, since none are set here; its platform and service run only while it does"
      : 'complete';
    const url = client.url ?? demo?.url ?? addressOf(env);
    return {
      settings: { state: 'ok', what },
      checks: [...storeChecks(env), ...platformChecks(env, url)],
      machine: machineChecks(env.DATA_DIR, !env.DATABASE_URL),
    };
  } catch (error) {
    return { settings: faultOf(error), checks: [], machine: machineChecks(client.dataDir, false) };
  }
}

function addressOf(env: Env): string {
  const host = ['0.0.0.0', '::'].includes(env.HOST) ? '127.0.0.1' : env.HOST;
  return `http://${host.includes(':') ? `[${host}]` : host}:${env.PORT}`;
}

void new Command('notebridge doctor')
  .description('Checks the settings of this environment or .env, and everything that the service needs.')
  .addHelpText('after', '\nEnds with 0 when all is well, 1 when something is to be mended.')
  .showHelpAfterError('(see --help)')
  .action(examine)
  .parseAsync();
