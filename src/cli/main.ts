import { Command } from 'commander';
import { readClientEnv } from '../config/client-env.js';
import { Api } from './api.js';
import { addCapabilitiesCommand } from './capabilities.command.js';
import { CliFault } from './cli-fault.js';
import { connectionFrom } from './connection.js';
import { addDeliveriesCommands } from './deliveries.command.js';
import { addImportCommand } from './import.command.js';
import { addImportsCommands } from './imports.command.js';
import { addKeysCommands } from './keys.command.js';
import { addPeopleCommands } from './people.command.js';
import { addRefreshCommand } from './refresh.command.js';
import { addRequestCommands } from './requests.command.js';
import { version } from './version.js';

const ABOUT = `Speaks to a running notebridge.

NOTEBRIDGE_URL   where it is (http://127.0.0.1:3000)
NOTEBRIDGE_KEY   an API key of it; else ADMIN_API_KEY, else the one of this clone's demo`;

/** Whoever reads the output may have had enough of it, such as `head`. */
function endWithReader(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit();
  });
}

async function main(): Promise<void> {
  endWithReader();
  const api = new Api(() => connectionFrom(readClientEnv()));
  const program = new Command('notebridge')
    .description(ABOUT)
    .version(version())
    .executableDir(__dirname)
    .showHelpAfterError('(see --help)');
  addImportCommand(program, api);
  addImportsCommands(program, api);
  addPeopleCommands(program, api);
  addRefreshCommand(program, api);
  addRequestCommands(program, api);
  addDeliveriesCommands(program, api);
  addCapabilitiesCommand(program, api);
  addKeysCommands(program, api);
  program.command('doctor', 'check the settings and everything that the service needs', {
    executableFile: 'doctor.js',
  });
  await program.parseAsync();
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : 'The command failed without a reason.');
  process.exitCode = error instanceof CliFault ? error.exitCode : 1;
});
