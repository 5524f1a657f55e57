import { Command } from 'commander';
import { version } from '../config/version.js';
import { Api } from './api/api.js';
import { readClientEnv } from './api/client-env.js';
import { connectionFrom } from './api/connection.js';
import { addCommands } from './commands/commands.js';
import { configureErrors, reportFailure } from './output/failure.js';
import { EXIT_CODES } from './output/help.js';

const ABOUT = `Administers a running notebridge. These environment variables apply:

NOTEBRIDGE_URL            the service's URL; http://127.0.0.1:3000 by default
NOTEBRIDGE_KEY            an API key; if unset, ADMIN_API_KEY or the demo's key
NOTEBRIDGE_ON_BEHALF_OF   your id, for the audit log
NOTEBRIDGE_INSECURE_HTTP  true allows plain http to other hosts`;

/** Prints which service answers, because a demo may run next to others. */
function printUrl(url: string): void {
  if (!process.argv.includes('--json')) console.error(`notebridge at ${url}`);
}

async function main(): Promise<void> {
  const api = new Api(() => connectionFrom(readClientEnv()), printUrl);
  const program = configureErrors(new Command('notebridge')).description(ABOUT).version(version());
  program.addHelpText('afterAll', EXIT_CODES);
  addCommands(program, api);
  await program.parseAsync();
}

main().catch(reportFailure);
