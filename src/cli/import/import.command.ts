import { open } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Command, Option } from 'commander';
import type { Page } from '../../http/request/page.js';
import { ROW_OUTCOMES } from '../../imports/model/import.js';
import type { GuardName } from '../../imports/model/import-guards.js';
import type { ImportKind } from '../../imports/parse/row/import-row.js';
import type { ImportResponse } from '../../imports/report/import-view.js';
import type { ImportRowView } from '../../imports/report/imports.dto.js';
import { type Api, withQuery } from '../api/api.js';
import { fileFault } from '../api/cli-fault.js';
import { examples } from '../output/help.js';
import { listing } from '../output/list-command.js';
import { byteSize, printAnswer, table } from '../output/print.js';
import { formOf, lookAtFiles } from './import-files.js';
import { importSummary } from './import-summary.js';
import { onInterrupt, pathOf, watchToEnd } from './import-watch.js';

interface ImportOptions {
  kind?: ImportKind;
  mode: 'upsert' | 'snapshot';
  dryRun?: boolean;
  defaultProvider?: string;
  idSystem?: string[];
  encounterSince?: string;
  wait: boolean;
  json?: boolean;
}

const OVERRIDES: GuardName[] = ['deletes', 'providerRemovals'];

/** What can be done with an import: some of it is watched to its end, and goes over thresholds when it is told to. */
const ACTIONS = [
  { action: 'apply', about: 'do what a dry run or a snapshot planned', overrides: true, watched: true },
  { action: 'pause', about: 'calls under way finish, nothing else starts' },
  { action: 'resume', about: 'go on with a paused import', watched: true },
  { action: 'cancel', about: 'calls under way finish, and what was not sent is no longer wanted' },
  { action: 'retry', about: 'plan and send again what failed', overrides: true, watched: true },
];

/** `notebridge import FILE…`, `imports`, `import-rows`, and what can be done with an import. */
export function addImportCommands(program: Command, api: Api): void {
  const kind = new Option('--kind <kind>', 'whom the files hold, when their names do not say');
  const mode = new Option(
    '--mode <mode>',
    'upsert adds and changes; snapshot also deletes who is missing, after a plan',
  );
  program
    .command('import')
    .description('bring providers and clients across from files: CSV, JSON lines or FHIR R4')
    .argument('<files...>', 'one file or several that belong together, such as providers.csv clients.csv')
    .addOption(kind.choices(['providers', 'clients', 'fhir']))
    .addOption(mode.choices(['upsert', 'snapshot']).default('upsert'))
    .option('--dry-run', 'plan and count only; nothing is sent until you apply it')
    .option('--default-provider <id>', 'external id of the provider for clients that name none')
    .option('--id-system <uris...>', 'FHIR identifier systems whose value is the external id')
    .option('--encounter-since <day>', 'FHIR encounters before this day name no provider; otherwise those of a year do')
    .option('--no-wait', 'return as soon as the files are read')
    .option('--json', 'print nothing but the import as the service shows it at the end')
    .addHelpText('after', '\nEnds with 0 when all rows are done, 2 when some need your attention, 1 on an error.')
    .addHelpText('after', examples('import providers.csv clients.csv', 'import clients.csv --mode snapshot --dry-run'))
    .action((files: string[], options: ImportOptions) => importFiles(api, files, options));

  program
    .command('imports [id]')
    .description('list the latest imports, or watch one to its end')
    .option('--no-wait', 'show it as it is now')
    .option('--json', 'print what the service answers')
    .addHelpText('after', examples('imports', 'imports 7b0f5a3e-0000-4000-8000-000000000000 --no-wait'))
    .action(async (id: string | undefined, { wait, json }: { wait: boolean; json?: boolean }) => {
      if (!id) return printAnswer(await api.get<Page<ImportResponse>>('/v1/imports?limit=20'), json, importsTable);
      if (wait && !json) return watchToEnd(api, id);
      printAnswer(await api.get<ImportResponse>(pathOf(id)), json, importSummary);
    });

  const rows = program
    .command('import-rows <id>')
    .description('show the rows of an import, each with its outcome and the reason')
    .addHelpText('after', examples('import-rows 7b0f5a3e-0000-4000-8000-000000000000 --outcome rejected'));
  listing<ImportRowView>(rows, api, {
    from: (_query, id = '') => `${pathOf(id)}/rows`,
    options: [
      new Option('--outcome <outcome>', 'only these').choices(ROW_OUTCOMES),
      new Option('--rejected-csv <file>', 'write the rejected rows to a file that can be corrected and imported again'),
    ],
    limit: 200,
    row: rowOf,
    none: 'There are no such rows.',
    instead: ({ rejectedCsv }, id = '') => (rejectedCsv === undefined ? undefined : saveRejected(api, id, rejectedCsv)),
  });

  for (const { action, about, overrides, watched } of ACTIONS) {
    const command = program.command(`${action} <id>`).description(about);
    const override = new Option('--override <what...>', 'go over these thresholds, on your word');
    if (overrides) command.addOption(override.choices(OVERRIDES));
    if (watched) command.option('--no-wait', 'return at once');
    command.option('--json', 'print nothing but the import as the service shows it');
    command.addHelpText('after', examples(`${action} 7b0f5a3e-0000-4000-8000-000000000000`));
    type Options = { override?: string[]; wait?: boolean; json?: boolean };
    command.action(async (id: string, { override, wait, json }: Options) => {
      const view = await api.post<ImportResponse>(`${pathOf(id)}/${action}`, { override });
      if (wait) return watchToEnd(api, id, true, json);
      printAnswer(view, json, importSummary);
    });
  }
}

async function importFiles(api: Api, paths: string[], { json, wait, ...options }: ImportOptions): Promise<void> {
  const files = await lookAtFiles(paths, options.kind);
  const size = byteSize(files.reduce((sum, file) => sum + file.bytes, 0));
  const say = json ? () => undefined : console.log;
  say(`Sending ${files.map((file) => `${file.path} (${file.kind})`).join(', ')}: ${size}`);
  onInterrupt('Stopped while sending: nothing of it is imported.');
  const address = withQuery('/v1/imports', {
    ...options,
    kind: files[0]?.kind,
    dryRun: options.dryRun ? 'true' : undefined,
    idSystem: options.idSystem?.join(','),
  });
  const view = await api.post<ImportResponse>(address, await formOf(files));
  say(`Import ${view.id}`);
  if (wait) return watchToEnd(api, view.id, false, json);
  if (json) console.log(JSON.stringify(view, null, 2));
  say(`It goes on by itself; to watch it: npx notebridge imports ${view.id}`);
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
  const { body } = await api.send('GET', `${pathOf(id)}/rejected.csv`, undefined, { accept: 'text/csv' });
  const target = await open(file, 'wx', 0o600).catch((error: unknown) => {
    throw fileFault(file, error);
  });
  await pipeline(Readable.from(body ?? []), target.createWriteStream());
  console.log(`${file} holds the rejected rows, with line, code and hint; corrected, it can be imported as it is.`);
}
