import { open } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Command, Option } from 'commander';
import { ROW_OUTCOMES } from '../../imports/model/import-types.js';
import type { ImportRowView } from '../../imports/report/import-rows.service.js';
import type { ImportResponse } from '../../imports/report/import-view.js';
import { type Api, type Page, withQuery } from '../api/api.js';
import { fileFault } from '../api/cli-fault.js';
import { printTable, table } from '../output/table.js';
import { stopOnInterrupt, watchToEnd } from './import.command.js';
import { importSummary } from './import-summary.js';

const OVERRIDES = ['deletes', 'providerRemovals', 'creates'];

/** `notebridge imports`, `import-rows`, and what steers an import. */
export function addImportsCommands(program: Command, api: Api): void {
  program
    .command('imports')
    .description('list the latest imports, or watch one to its end')
    .argument('[id]')
    .option('--no-wait', 'show it as it is now')
    .option('--json', 'print what the service answers')
    .action(async (id: string | undefined, options: { wait: boolean; json?: boolean }) => {
      if (!id) return listImports(api, options.json);
      if (options.wait && !options.json) return watch(api, id);
      const view = await api.get<ImportResponse>(`/v1/imports/${id}`);
      console.log(options.json ? JSON.stringify(view, null, 2) : importSummary(view, 'npx notebridge'));
    });

  program
    .command('import-rows')
    .description('show the rows of an import, each with its outcome and the reason')
    .argument('<id>')
    .addOption(new Option('--outcome <outcome>', 'only these').choices(ROW_OUTCOMES))
    .option('--rejected-csv <file>', 'write the rejected rows to a file that can be corrected and imported again')
    .option('--json', 'print one JSON object a line')
    .action(async (id: string, options: { outcome?: string; rejectedCsv?: string; json?: boolean }) => {
      if (options.rejectedCsv) return saveRejected(api, id, options.rejectedCsv);
      const rows = api.all<ImportRowView>(`/v1/imports/${id}/rows`, { outcome: options.outcome });
      return options.json ? printLines(rows) : printRows(rows);
    });

  program
    .command('apply')
    .description('do what a dry run or a snapshot planned')
    .argument('<id>')
    .addOption(new Option('--override <what...>', 'go over these thresholds, on your word').choices(OVERRIDES))
    .option('--no-wait', 'return at once')
    .action((id: string, options: { override?: string[]; wait: boolean }) =>
      steer(api, id, 'apply', options.wait, { override: options.override ?? [] }),
    );
  steering(program, api, 'pause', 'calls under way finish, nothing else starts');
  steering(program, api, 'resume', 'go on with a paused import');
  steering(program, api, 'cancel', 'calls under way finish, and what was not sent is no longer wanted');
  program
    .command('retry')
    .description('plan and send again what failed')
    .argument('<id>')
    .addOption(new Option('--override <what...>', 'go over these thresholds, on your word').choices(OVERRIDES))
    .option('--no-wait', 'return at once')
    .action((id: string, options: { override?: string[]; wait: boolean }) =>
      steer(api, id, 'retry', options.wait, { override: options.override ?? [] }),
    );
}

function steering(program: Command, api: Api, action: string, description: string): void {
  const follows = action === 'resume';
  const command = program.command(action).description(description).argument('<id>');
  if (follows) command.option('--no-wait', 'return at once');
  command.action((id: string, options: { wait?: boolean }) => steer(api, id, action, follows && options.wait === true));
}

async function steer(api: Api, id: string, action: string, wait: boolean, body: unknown = {}): Promise<void> {
  const view = await api.post<ImportResponse>(`/v1/imports/${id}/${action}`, body);
  if (wait) return watch(api, id, true);
  console.log(importSummary(view, 'npx notebridge'));
}

async function watch(api: Api, id: string, applied = false): Promise<void> {
  const stop = stopOnInterrupt();
  await watchToEnd(api, id, { signal: stop.signal, applied }).finally(stop.release);
}

async function listImports(api: Api, asJson: boolean | undefined): Promise<void> {
  const page = await api.get<Page<ImportResponse>>(withQuery('/v1/imports', { limit: '20' }));
  if (asJson) return console.log(JSON.stringify(page, null, 2));
  if (page.items.length === 0)
    return console.log('There was no import yet: npx notebridge import providers.csv clients.csv');
  const rows = page.items.map(({ id, createdAt, state, kind, counts, calls, needAttention }) => {
    return [
      id,
      new Date(createdAt).toISOString().slice(0, 19),
      kind,
      state,
      counts.total,
      counts.pending,
      needAttention,
      calls.made,
    ];
  });
  console.log(table(['id', 'begun (UTC)', 'kind', 'state', 'rows', 'pending', 'need attention', 'calls'], rows));
}

async function printRows(rows: AsyncIterable<ImportRowView>): Promise<void> {
  const header = ['row', 'external id', 'outcome', 'code', 'field', 'what to do'];
  if ((await printTable(header, cellsOf(rows))) === 0) console.log('There are no such rows.');
}

async function* cellsOf(rows: AsyncIterable<ImportRowView>): AsyncGenerator<unknown[]> {
  for await (const row of rows)
    yield [`${row.file}:${row.line}`, row.externalId, row.outcome, row.code, row.field, row.hint];
}

async function printLines(rows: AsyncIterable<unknown>): Promise<void> {
  for await (const row of rows) console.log(JSON.stringify(row));
}

async function saveRejected(api: Api, id: string, file: string): Promise<void> {
  const content = await api.stream(`/v1/imports/${id}/rejected.csv`, { accept: 'text/csv' });
  const target = await open(file, 'wx', 0o600).catch((error: unknown) => {
    throw fileFault(file, error);
  });
  await pipeline(Readable.from(content), target.createWriteStream());
  console.log(`${file} holds the rejected rows, with line, code and hint; corrected, it can be imported as it is.`);
}
