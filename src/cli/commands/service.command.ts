import type { Command } from 'commander';
import { utc } from '../../monitoring/health-texts.js';
import type { CapabilityPageResponse } from '../../operations/overview/capabilities.dto.js';
import type { SendingResponse } from '../../sending/sending.dto.js';
import type { Api } from '../api/api.js';
import { examples } from '../output/help.js';
import { lines, printAnswer } from '../output/print.js';
import { exitCodeOf, readStatus, statusLines } from './status.js';

interface SendingOptions {
  reason?: string;
  restored?: boolean;
  json?: boolean;
}

/** `notebridge status`, `hold`, `release`, `capabilities` and `doctor`. */
export function addServiceCommands(program: Command, api: Api): void {
  program
    .command('status')
    .description('show what is wrong, what it affects, how to fix it, and which capabilities are off')
    .option('--json', 'print the status as JSON')
    .addHelpText('after', examples('status'))
    .action(async ({ json }: { json?: boolean }) => {
      const status = await readStatus(api);
      printAnswer(status, json, statusLines);
      process.exitCode = exitCodeOf(status);
    });

  program
    .command('hold')
    .description('stop all changes to the platform, until release; notebridge still receives webhooks and reads')
    .requiredOption('--reason <code>', 'the id of a case or a ticket, for the audit log; no names')
    .option('--json', "print the service's answer")
    .addHelpText('after', examples('hold --reason CASE-2026-17'))
    .action((options: SendingOptions) => setSending(api, true, options));

  program
    .command('release')
    .description('end the hold: send the changes that have waited')
    .option('--reason <code>', 'the id of a case or a ticket, for the audit log; no names')
    .option(
      '--restored',
      'the database was restored, or a failover lost data: send nothing twice, and let the EHR read the feed again',
    )
    .option('--json', "print the service's answer")
    .addHelpText('after', examples('release', 'release --restored'))
    .action((options: SendingOptions) => setSending(api, false, options));

  program
    .command('capabilities')
    .description('list the capabilities (features that need the contract file), and what those that are off need')
    .option('--json', "print the service's answer")
    .addHelpText('after', examples('capabilities'))
    .action(async ({ json }: { json?: boolean }) =>
      printAnswer(await api.get<CapabilityPageResponse>('/v1/capabilities'), json, ({ items }) =>
        items
          .map(({ name, on, missing, hint }) =>
            on ? `✓ ${name}${hint ? ` (${hint})` : ''}` : `✗ ${name}: set ${missing.join(', ')}`,
          )
          .join('\n'),
      ),
    );

  program
    .command('doctor')
    .description('check the settings, database, queue, contract file and platform, and say how to fix each fault')
    .option('--json', 'print one JSON object per check, with its state: ok, faulty or unknown')
    .addHelpText('after', examples('doctor'))
    .action(async (options: { json?: boolean }) => (await import('../doctor/doctor.js')).examine(options));
}

async function setSending(api: Api, held: boolean, { reason, restored, json }: SendingOptions): Promise<void> {
  const answer = await api.send('PUT', '/v1/sending', { held, reason, restored });
  printAnswer((await answer.json()) as SendingResponse, json, sendingLines);
}

function sendingLines({ held, heldBySetting, since, by, reason }: SendingResponse): string {
  if (!held) return 'The hold has ended: pending changes go to the platform now.';
  return lines(
    since ? `Sending has been held since ${utc(new Date(since))} by ${by} (${reason}).` : 'Sending is held.',
    heldBySetting && 'HOLD_SENDING is true: remove the setting and restart before the release.',
  );
}
