import 'reflect-metadata';
import { Command } from 'commander';
import { readClientEnv } from '../../config/client-env.js';
import type { Env } from '../../config/env.js';
import { loadEnvFile, serviceSettings } from '../api/service-settings.js';
import { failed, withFaults } from '../output/failure.js';
import { examples } from '../output/help.js';
import { allChecks, machineChecks } from './checks.js';
import { type Checks, faultOf, findingLines, ok } from './finding.js';

/** Reads the environment as the service does, and looks at everything that it names. */
async function examine({ json }: { json?: boolean }): Promise<void> {
  loadEnvFile();
  process.exitCode = 0;
  for (const [name, look] of Object.entries(checksToMake())) {
    const finding = await Promise.resolve().then(look).catch(faultOf);
    if (finding.state === 'faulty') process.exitCode = 1;
    console.log(json ? JSON.stringify({ name, ...finding }) : findingLines(name, finding));
  }
}

/** Without settings of its own, this clone's demo is looked at; without any that are complete, the machine alone. */
function checksToMake(): Checks {
  const client = readClientEnv();
  const ofDemo = "complete: the demo's, since none are set here; its platform and service run only while it does";
  try {
    const { env, demo } = serviceSettings(client);
    return {
      Settings: () => ok(demo ? ofDemo : 'complete'),
      ...allChecks(env, client.url ?? demo?.url ?? addressOf(env), demo ? 'npm run demo' : 'npm start'),
    };
  } catch (error) {
    return { Settings: () => faultOf(error), ...machineChecks(client.dataDir, false) };
  }
}

function addressOf(env: Env): string {
  const host = ['0.0.0.0', '::'].includes(env.HOST) ? '127.0.0.1' : env.HOST;
  return `http://${host.includes(':') ? `[${host}]` : host}:${env.PORT}`;
}

withFaults(new Command('notebridge doctor'))
  .description('Checks the settings of this environment or .env, and everything that the service needs.')
  .addHelpText('after', '\nEnds with 0 when all is well, 1 when something is to be mended.')
  .addHelpText('after', examples('doctor'))
  .option('--json', 'print one JSON object a check, with its state: ok, faulty or unknown')
  .action(examine)
  .parseAsync()
  .catch(failed);
