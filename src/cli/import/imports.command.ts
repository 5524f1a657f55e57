import { open } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Command, Option } from 'commander';
import type { Page } from '../../http/request/page.js';
import type { GuardName } from '../../imports/model/import-guards.js';
import { ROW_OUTCOMES } from '../../imports/model/import-types.js';
import type { ImportRowView } from '../../imports/report/import-rows.service.js';
import type { ImportResponse } from '../../imports/report/import-view.js';
import type { Api } from '../api/api.js';
import { fileFault } from '../api/cli-fault.js';
import { printAnswer, printList, table } from '../output/print.js';
import { importSummary } from './import-summary.js';
import { goesOn, untilInterrupted, watchToEnd } from './import-watch.js';

const OVERRIDES: GuardName[] = ['deletes', 'providerRemovals', 'creates'];

/** What can be done with an import. */
const ACTIONS: Record<string, { description: string; overrides?: boolean; watched?: boolean }> = {
  apply: { description: 'do what a dry run or a snapshot planned', overrides: true, watched: true },
  pause: { description: 'calls under way finish, nothing else starts' },
  resume: { description: 'go on with a paused import', watched: true },
  cancel: { description: 'calls under way finish, and what was not sent is no longer wanted' },
  retry: { description: 'plan and send again what failed', overrides: true, watched: true },
};

/** `notebridge imports`, `import-rows`, and the actions. */
export function addImportsCommands(program: Command, api: Api): void {
  program
    .command('imports')
    .description('list the latest imports, or watch one to its end')
    .argument('[id]')
    .option('--no-wait', 'show it as it is now')
    .option('--json', 'print what the service answers')
    .action(async (id: string | undefined, { wait, json }: { wait: boolean; json?: boolean }) => {
      if (!id) return printAnswer(await api.get<Page<ImportResponse>>('/v1/imports?limit=20'), json, importsTable);
      if (wait && !json) return watch(api, id);
      printAnswer(await api.get<ImportResponse>(`/v1/imports/${id}`), json, importSummary);
    });

  program
    .command('import-rows')
    .description('show the rows of an import, each with its outcome and the reason')
    .argument('<id>')
    .addOption(new Option('--outcome <outcome>', 'only these').choices(ROW_OUTCOMES))
    .option('--rejected-csv <file>', 'write the rejected rows to a file that can be corrected and imported again')
    .option('--json', 'print one JSON object a line')
    .action(
      (id: string, { outcome, rejectedCsv, json }: { outcome?: string; rejectedCsv?: string; json?: boolean }) => {
        if (rejectedCsv) return saveRejected(api, id, rejectedCsv);
        const rows = api.all<ImportRowView>(`/v1/imports/${id}/rows`, { outcome });
        return printList(rows, { row: rowOf, none: 'There are no such rows.', json });
      },
    );

  for (const [action, { description, overrides, watched }] of Object.entries(ACTIONS)) {
    const command = program.command(action).description(description).argument('<id>');
    const override = new Option('--override <what...>', 'go over these thresholds, on your word');
    if (overrides) command.addOption(override.choices(OVERRIDES));
    if (watched) command.option('--no-wait', 'return at once');
    command.action(async (id: string, { override, wait }: { override?: string[]; wait?: boolean }) => {
      const view = await api.post<ImportResponse>(`/v1/imports/${id}/${action}`, { override });
      if (wait) return watch(api, id, true);
      console.log(importSummary(view));
    });
  }
}

async function watch(api: Api, id: string, applied = false): Promise<void> {
  await untilInterrupted(
    (signal) => watchToEnd(api, id, { signal, applied }),
    () => goesOn(id),
  );
}

function importsTable({ items }: Page<ImportResponse>): string {
  if (items.length === 0) return 'There was no import yet: npx notebridge import providers.csv clients.csv';
  return table(
    items.map(({ id, createdAt, state, kind, counts, calls, needAttention }) => ({
      id,
      'begun (UTC)': new Date(createdAt).toISOString().slice(0, 19),
      kind,
      state,
      rows: counts.total,
      pending: counts.pending,
      'need attention': needAttention,
      calls: calls.made,
    })),
  );
}

function rowOf({ file, line, externalId, outcome, code, field, hint }: ImportRowView) {
  return { row: `${file}:${line}`, 'external id': externalId, outcome, code, field, 'what to do': hint };
}

async function saveRejected(api: Api, id: string, file: string): Promise<void> {
  const { body } = await api.send('GET', `/v1/imports/${id}/rejected.csv`, undefined, { accept: 'text/csv' });
  const target = await open(file, 'wx', 0o600).catch((error: unknown) => {
    throw fileFault(file, error);
  });
  await pipeline(Readable.from(body ?? []), target.createWriteStream());
  console.log(`${file} holds the rejected rows, with line, code and hint; corrected, it can be imported as it is.`);
}
