import type { Command } from 'commander';
import type { DisclosureResponse } from '../../client-records/client-records.dto.js';
import type { Api } from '../api/api.js';
import { examples } from '../output/help.js';
import { listing } from '../output/list-command.js';
import { saveAnswer } from '../output/save-answer.js';

/** `notebridge client export` and `client accounting`. */
export function addClientCommands(program: Command, api: Api): void {
  const group = program.command('client').description('export the stored data of one client, or list its disclosures');

  group
    .command('export')
    .description('export all stored data of a client as one JSON document, for an access request')
    .argument('<externalId>')
    .option('--output <file>', 'write the data to a new file that only you can read, instead of printing it')
    .option('--json', 'with --output, print the name of the file as JSON')
    .addHelpText('after', examples('client export C-1002 --output C-1002.json'))
    .action((externalId: string, { output, json }: { output?: string; json?: boolean }) =>
      exportClient(api, externalId, output, json),
    );

  const accounting = group
    .command('accounting')
    .description('list disclosures of a client to the platform and to API keys, newest first; repeats share one line')
    .argument('<externalId>')
    .addHelpText('after', examples('client accounting C-1002', 'client accounting C-1002 --limit all'));
  listing<DisclosureResponse>(accounting, api, {
    from: (_query, externalId = '') => `${pathOf(externalId)}/disclosures`,
    limit: 100,
    row: disclosureRow,
    none: 'No data of this client was disclosed.',
  });
}

const pathOf = (externalId: string): string => `/v1/clients/${encodeURIComponent(externalId)}`;

function disclosureRow({
  at,
  firstAt,
  count,
  recipient,
  action,
  outcome,
  sessions,
  keyName,
  onBehalfOf,
  isCertain,
}: DisclosureResponse) {
  return {
    last: at,
    times: count,
    first: count === 1 ? null : firstAt,
    to: keyName ?? recipient,
    'on behalf of': onBehalfOf,
    what: action,
    outcome,
    sessions: sessions.join(' '),
    certain: isCertain ? 'yes' : 'no, this client may be one of many',
  };
}

async function exportClient(api: Api, externalId: string, file: string | undefined, json = false): Promise<void> {
  await saveAnswer(await api.send('GET', `${pathOf(externalId)}/export`), file);
  if (file === undefined) return;
  console.log(json ? JSON.stringify({ file }) : `${file} contains all stored data of this client.`);
}
