import { type Command, InvalidArgumentError, Option } from 'commander';
import type { CancellationResponse, ImportResponse } from '../../imports/api/import-view.js';
import type { ImportQuery, ImportRowView } from '../../imports/api/imports.dto.js';
import { PLANNED_OUTCOMES, ROW_OUTCOMES } from '../../imports/model/import.js';
import { GUARD_NAMES } from '../../imports/model/import-guards.js';
import { inSentence, labelOf } from '../../words/words.js';
import { type Api, withQuery } from '../api/api.js';
import { CliFault } from '../api/cli-fault.js';
import { examples } from '../output/help.js';
import { listing } from '../output/list-command.js';
import { byteSize, printAnswer } from '../output/print.js';
import { saveAnswer } from '../output/save-answer.js';
import { formOf } from './import-files.js';
import { importSummary } from './import-summary.js';
import { onInterrupt, pathOf, watchToEnd } from './import-watch.js';

/** Columns by field, such as `{externalId: "PAT_ID"}`. */
type Columns = Record<string, string>;

interface ImportOptions {
  kind?: ImportQuery['kind'];
  mode: ImportQuery['mode'];
  dryRun?: boolean;
  column?: Columns;
  defaultProvider?: string;
  idSystem?: string[];
  encounterSince?: string;
  wait: boolean;
  json?: boolean;
}

interface ActionOptions {
  override?: string[];
  column?: Columns;
  wait?: boolean;
  json?: boolean;
}

const ID = '7b0f5a3e-0000-4000-8000-000000000000';

const columnOption = () =>
  new Option(
    '--column <field=NAME>',
    'the CSV column of a field, such as externalId=PAT_ID; clients.firstName=Vorname is for files of clients only; repeatable',
  ).argParser(addColumn);

const overrideOption = () =>
  new Option('--override <guards...>', 'confirm the guards that stop the plan').choices(GUARD_NAMES);

/** Commands that change an import; most of them watch it to its end. */
const ACTIONS = [
  { action: 'apply', about: 'apply the plan of a dry run or a snapshot', option: overrideOption, watched: true },
  {
    action: 'map',
    about: 'choose the columns of an import whose files are not clear (needs-mapping)',
    option: () => columnOption().makeOptionMandatory(),
    watched: true,
  },
  { action: 'pause', about: 'pause an import: only calls in flight finish' },
  { action: 'resume', about: 'continue a paused import', watched: true },
  { action: 'cancel', about: 'cancel an import: what was not sent is taken back, what is in progress finishes' },
  { action: 'retry', about: 'retry the rows of an import that failed or need review', watched: true },
];

/** `notebridge import FILE…`, `imports`, `import-rows`, and the commands that change an import. */
export function addImportCommands(program: Command, api: Api): void {
  const kind = new Option('--kind <kind>', 'the kind of all files; by default, the service detects the kind of each');
  const mode = new Option(
    '--mode <mode>',
    'upsert adds and changes; snapshot also deletes missing people, after a plan',
  );
  program
    .command('import')
    .description('import providers and clients from files: CSV, JSON lines or FHIR R4')
    .argument('<files...>', 'one file or several that belong together, such as providers.csv clients.csv')
    .addOption(kind.choices(['providers', 'clients', 'fhir']))
    .addOption(mode.choices(['upsert', 'snapshot']).default('upsert'))
    .option('--dry-run', 'plan and count only; nothing is sent until you apply it')
    .addOption(columnOption())
    .option('--default-provider <id>', 'external id of the provider that clients without a provider get')
    .option('--id-system <uris...>', 'FHIR identifier systems whose value is the external id')
    .option('--encounter-since <day>', 'ignore FHIR encounters before this day; defaults to a year ago')
    .option('--no-wait', 'return once the service has read the files; the import continues')
    .option('--json', 'print only the final state of the import, as JSON')
    .addHelpText(
      'after',
      examples(
        'import providers.csv clients.csv',
        'import clients.csv --mode snapshot --dry-run',
        'import export.csv --column externalId=PAT_ID --column clients.firstName=Vorname',
      ),
    )
    .action((files: string[], options: ImportOptions) => importFiles(api, files, options));

  const imports = program
    .command('imports [id]')
    .description('list the latest imports; with an id, watch that import to its end')
    .option('--no-wait', 'with an id, show the current state and return')
    .addHelpText('after', examples('imports --limit 5', `imports ${ID} --no-wait`));
  listing<ImportResponse>(imports, api, {
    from: () => api.all('/v1/imports', { limit: '20' }),
    limit: 20,
    row: importRow,
    none: 'There are no imports yet. To start one: npx notebridge import providers.csv clients.csv',
    instead: (_query, id) => (id === undefined ? undefined : showImport(api, id, imports.opts())),
  });

  const rows = program
    .command('import-rows <id>')
    .description('show the rows of an import, each with its outcome and the reason')
    .addHelpText('after', examples(`import-rows ${ID} --outcome rejected`));
  listing<ImportRowView>(rows, api, {
    from: (_query, id = '') => `${pathOf(id)}/rows`,
    options: [
      new Option('--outcome <outcome>', 'only rows with this outcome').choices(ROW_OUTCOMES),
      new Option('--planned <outcome>', 'only rows with this planned outcome').choices(PLANNED_OUTCOMES),
      new Option('--code <code>', 'only rows with this reason'),
      new Option('--rejected-csv <file>', 'write the rejected rows to a file that can be corrected and imported again'),
    ],
    limit: 200,
    row: rowOf,
    none: 'No matching rows.',
    instead: ({ rejectedCsv }, id = '') => (rejectedCsv === undefined ? undefined : saveRejected(api, id, rejectedCsv)),
  });

  for (const { action, about, option, watched } of ACTIONS) {
    const command = program.command(`${action} <id>`).description(about);
    if (option) command.addOption(option());
    if (watched) command.option('--no-wait', 'return immediately; the import continues');
    command.option('--json', 'print only the import, as JSON');
    const isMap = action === 'map';
    command.addHelpText('after', examples(`${action} ${ID}${isMap ? ' --column externalId=PAT_ID' : ''}`));
    command.action(async (id: string, { override, column: columns, wait, json }: ActionOptions) => {
      const path = `${pathOf(id)}/${isMap ? 'mapping' : action}`;
      const effect =
        action === 'cancel' ? await api.get<CancellationResponse>(`${pathOf(id)}/cancellation`) : undefined;
      const view = await api.post<ImportResponse>(path, { override, columns });
      // Mapped files are planned first: a plan may wait for a decision.
      if (wait) return watchToEnd(api, id, !isMap, json);
      printAnswer(view, json, (shown) => `${effect ? `${effect.text}\n\n` : ''}${importSummary(shown)}`);
    });
  }
}

function addColumn(text: string, columns: Columns = {}): Columns {
  const [, field, name] = /^([^=]+)=(.+)$/s.exec(text) ?? [];
  if (!field || !name) throw new InvalidArgumentError('It must be FIELD=COLUMN, such as externalId=PAT_ID.');
  if (field in columns) throw new InvalidArgumentError(`${field} has two columns.`);
  return { ...columns, [field]: name };
}

/** The columns as the query takes them, separated by commas. @throws {CliFault} if a name contains one */
function columnsText(columns: Columns): string {
  const broken = Object.values(columns).find((name) => name.includes(','));
  if (broken === undefined)
    return Object.entries(columns)
      .map((pair) => pair.join(':'))
      .join(',');
  const hint = 'Rename it, or import without --column, then use npx notebridge map if the columns are not clear.';
  throw new CliFault(`The column "${broken}" has a comma in its name. ${hint}`);
}

async function importFiles(
  api: Api,
  paths: string[],
  { json, wait, column, ...options }: ImportOptions,
): Promise<void> {
  const { form, bytes } = await formOf(paths, options.kind);
  const address = withQuery('/v1/imports', {
    ...options,
    dryRun: options.dryRun ? 'true' : undefined,
    columns: column && columnsText(column),
    idSystem: options.idSystem?.join(','),
  });
  const say = json ? () => undefined : console.log;
  say(`Uploading ${paths.join(', ')}: ${byteSize(bytes)}`);
  onInterrupt('Stopped during the upload. Nothing was imported.');
  const view = await api.post<ImportResponse>(address, form);
  say(`Import ${view.id}`);
  if (wait) return watchToEnd(api, view.id, false, json);
  if (json) console.log(JSON.stringify(view, null, 2));
  say(`It continues in the background. To watch it: npx notebridge imports ${view.id}`);
}

async function showImport(api: Api, id: string, { wait, json }: { wait?: boolean; json?: boolean }): Promise<void> {
  if (wait && !json) return watchToEnd(api, id);
  printAnswer(await api.get<ImportResponse>(pathOf(id)), json, importSummary);
}

function importRow({ id, createdAt, state, kind, counts, calls, needAttention }: ImportResponse) {
  return {
    id,
    'started (UTC)': new Date(createdAt).toISOString().slice(0, 19),
    kind,
    state: labelOf('importState', state),
    rows: counts.total,
    pending: counts.pending,
    'need attention': needAttention,
    calls: calls.made,
  };
}

function rowOf({ file, line, externalId, planned, outcome, code, field, hint }: ImportRowView) {
  const next = outcome === 'pending' && planned ? ` (${inSentence(labelOf('plannedOutcome', planned))})` : '';
  const shown = labelOf('rowOutcome', outcome) + next;
  return { row: `${file}:${line}`, 'external id': externalId, outcome: shown, code, field, 'what to do': hint };
}

async function saveRejected(api: Api, id: string, file: string): Promise<void> {
  await saveAnswer(await api.send('GET', `${pathOf(id)}/rejected.csv`, undefined, { accept: 'text/csv' }), file);
  console.log(`${file} contains the rejected rows. Correct them, clear their code, then import the file.`);
}
