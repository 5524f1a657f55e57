import type { Command } from 'commander';
import type { CapabilityPageResponse } from '../../operations/overview/capabilities.dto.js';
import type { Api } from '../api/api.js';
import { examples } from '../output/help.js';
import { printAnswer } from '../output/print.js';
import { exitCodeOf, readStatus, statusLines } from './status.js';

/** `notebridge status`, `capabilities` and `doctor`. */
export function addServiceCommands(program: Command, api: Api): void {
  program
    .command('status')
    .description('what works and what does not, what is off, and what waits for somebody')
    .option('--json', 'print it as JSON')
    .addHelpText('after', examples('status'))
    .action(async ({ json }: { json?: boolean }) => {
      const status = await readStatus(api);
      printAnswer(status, json, statusLines);
      process.exitCode = exitCodeOf(status);
    });

  program
    .command('capabilities')
    .description('say what the service can do, and which settings the rest lacks')
    .option('--json', 'print what the service answers')
    .addHelpText('after', examples('capabilities'))
    .action(async ({ json }: { json?: boolean }) =>
      printAnswer(await api.get<CapabilityPageResponse>('/v1/capabilities'), json, ({ items }) =>
        items.map(({ name, on, missing }) => (on ? `✓ ${name}` : `✗ ${name}: set ${missing.join(', ')}`)).join('\n'),
      ),
    );

  program
    .command('doctor')
    .description('check the settings of this environment or .env, and everything that the service needs')
    .option('--json', 'print one JSON object per check, with its state: ok, faulty or unknown')
    .addHelpText('after', examples('doctor'))
    .action(async (options: { json?: boolean }) => (await import('../doctor/doctor.js')).examine(options));
}
