import { open, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import type { DisclosureResponse } from '../../client-records/client-records.dto.js';
import type { Api } from '../api/api.js';
import { CliFault, fileFault } from '../api/cli-fault.js';
import { printList } from '../output/print.js';

/** `notebridge client export` and `client accounting`. */
export function addClientCommands(program: Command, api: Api): void {
  const group = program.command('client').description('what is held of one client, and to whom it was disclosed');

  group
    .command('export')
    .description('everything that is held about a client as one JSON document, for an access request')
    .argument('<externalId>')
    .option('--output <file>', 'write it to a new file that only you can read; else it is printed')
    .action((externalId: string, { output }: { output?: string }) => exportClient(api, externalId, output));

  group
    .command('accounting')
    .description('what of a client went to the platform, and which keys were given it, the newest first')
    .argument('<externalId>')
    .option('--json', 'print one JSON object a line')
    .action((externalId: string, { json }: { json?: boolean }) =>
      printList(api.all<DisclosureResponse>(`${pathOf(externalId)}/disclosures`), {
        row: disclosureRow,
        none: 'Nothing of this client was disclosed.',
        json,
      }),
    );
}

const pathOf = (externalId: string): string => `/v1/clients/${encodeURIComponent(externalId)}`;

function disclosureRow({ at, recipient, action, outcome, sessions, keyName, onBehalfOf }: DisclosureResponse) {
  return {
    at,
    to: keyName ?? recipient,
    'on behalf of': onBehalfOf,
    what: action,
    outcome,
    sessions: sessions.join(' '),
  };
}

/** Leaves no file that is not whole. */
async function exportClient(api: Api, externalId: string, file: string | undefined): Promise<void> {
  const { body } = await api.send('GET', `${pathOf(externalId)}/export`);
  const content = Readable.from(body ?? []);
  if (file === undefined) {
    await pipeline(content, process.stdout, { end: false }).catch(brokenOff);
    return;
  }
  const target = await open(file, 'wx', 0o600).catch((error: unknown) => {
    throw fileFault(file, error);
  });
  await pipeline(content, target.createWriteStream()).catch(async () => {
    await rm(file);
    brokenOff();
  });
  console.log(`${file} holds everything that is held about this client.`);
}

function brokenOff(): never {
  throw new CliFault('The export broke off, and is not whole; run it again.');
}
