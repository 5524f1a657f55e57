import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Command } from 'commander';
import { readClientEnv } from '../config/client-env.js';
import { Api } from './api/api.js';
import { CliFault } from './api/cli-fault.js';
import { connectionFrom } from './api/connection.js';
import { addClientCommands } from './commands/client.command.js';
import { addPeopleCommands } from './commands/people.command.js';
import { addRequestCommands } from './commands/requests.command.js';
import { addServiceCommands } from './commands/service.command.js';
import { addImportCommands } from './import/import.command.js';

const ABOUT = `Speaks to a running notebridge.

NOTEBRIDGE_URL   where it is (http://127.0.0.1:3000)
NOTEBRIDGE_KEY   an API key of it; else ADMIN_API_KEY, else the one of this clone's demo`;

/** The version of this notebridge, seen from the compiled file and from the source alike. */
function version(): string {
  const root = __dirname.includes(`${path.sep}dist${path.sep}`) ? '../../..' : '../..';
  const text = readFileSync(path.resolve(__dirname, root, 'package.json'), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

async function main(): Promise<void> {
  // A reader of the output may have had enough of it, such as `head`.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit();
  });
  const api = new Api(() => connectionFrom(readClientEnv()));
  const program = new Command('notebridge')
    .description(ABOUT)
    .version(version())
    .executableDir(__dirname)
    .showHelpAfterError('(see --help)');
  for (const add of [addImportCommands, addPeopleCommands, addClientCommands, addRequestCommands, addServiceCommands])
    add(program, api);
  program.command('doctor', 'check the settings and everything that the service needs', {
    executableFile: 'doctor/doctor.js',
  });
  await program.parseAsync();
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : 'The command failed without a reason.');
  process.exitCode = error instanceof CliFault ? error.exitCode : 1;
});
