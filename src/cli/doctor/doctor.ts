import 'reflect-metadata';
import type { Env } from '../../config/env.js';
import { misspelledSettings } from '../../config/env.validation.js';
import { serviceSettings } from '../api/service-settings.js';
import { allChecks } from './checks.js';
import { type Checks, faultOf, findingLines, ok, unknown } from './finding.js';

/** `notebridge doctor`: reads the environment as the service does, and checks everything that it names. */
export async function examine({ json }: { json?: boolean }): Promise<void> {
  process.exitCode = 0;
  for (const [name, look] of Object.entries(checksToMake())) {
    const finding = await Promise.resolve().then(look).catch(faultOf);
    if (finding.state === 'faulty') process.exitCode = 1;
    console.log(json ? JSON.stringify({ name, ...finding }) : findingLines(name, finding));
  }
}

/** The checks of the service, or of this clone's demo if nothing is set here. */
function checksToMake(): Checks {
  const ofDemo = "complete (the demo's, because none are set here; its platform and service run only with the demo)";
  try {
    const { env, demo, url = demo?.url ?? addressOf(env) } = serviceSettings();
    const misspelled = misspelledSettings();
    return {
      Settings: () => (misspelled.length > 0 ? unknown : ok)(demo ? ofDemo : 'complete', ...misspelled),
      ...allChecks(env, url, demo ? 'npm run demo' : 'npm start'),
    };
  } catch (error) {
    return { Settings: () => faultOf(error) };
  }
}

function addressOf(env: Env): string {
  const host = ['0.0.0.0', '::'].includes(env.HOST) ? '127.0.0.1' : env.HOST;
  return `http://${host.includes(':') ? `[${host}]` : host}:${env.PORT}`;
}
