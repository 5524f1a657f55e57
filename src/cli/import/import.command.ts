import { type Command, Option } from 'commander';
import type { ImportKind } from '../../imports/parse/row/import-row.js';
import type { ImportResponse } from '../../imports/report/import-view.js';
import { type Api, withQuery } from '../api/api.js';
import { byteSize } from '../output/duration.js';
import { LiveLine } from '../output/progress.js';
import { formOf, lookAtFiles } from './import-files.js';
import { exitCodeOf, importSummary } from './import-summary.js';
import { type WatchOptions, watchImport } from './import-watch.js';

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

/** `notebridge import FILE…` */
export function addImportCommand(program: Command, api: Api): void {
  program
    .command('import')
    .description('bring providers and clients across from files: CSV, JSON lines or FHIR R4')
    .argument('<files...>', 'one file or several that belong together, such as providers.csv clients.csv')
    .addOption(
      new Option('--kind <kind>', 'whom the files hold, when their names do not say').choices([
        'providers',
        'clients',
        'fhir',
      ]),
    )
    .addOption(
      new Option('--mode <mode>', 'upsert adds and changes; snapshot also deletes who is missing, after a plan')
        .choices(['upsert', 'snapshot'])
        .default('upsert'),
    )
    .option('--dry-run', 'plan and count only; nothing is sent until you apply it')
    .option('--default-provider <id>', 'external id of the provider for clients that name none')
    .option('--id-system <uris...>', 'FHIR identifier systems whose value is the external id')
    .option('--encounter-since <day>', 'FHIR encounters before this day name no provider; otherwise those of a year do')
    .option('--no-wait', 'return as soon as the files are read')
    .option('--json', 'print nothing but the import as the service shows it at the end')
    .addHelpText('after', '\nEnds with 0 when all rows are done, 2 when some need your attention, 1 on an error.')
    .action((files: string[], options: ImportOptions) => importFiles(api, files, options));
}

async function importFiles(api: Api, paths: string[], options: ImportOptions): Promise<void> {
  const files = await lookAtFiles(paths, options.kind);
  const size = byteSize(files.reduce((sum, file) => sum + file.bytes, 0));
  const say = options.json ? () => undefined : console.log;
  say(`Sending ${files.map((file) => `${file.path} (${file.kind})`).join(', ')}: ${size}`);
  const stop = stopOnInterrupt();
  try {
    const view = await send(api, files, options, stop.signal);
    say(`Import ${view.id}`);
    if (options.wait) return await watchToEnd(api, view.id, { signal: stop.signal }, options.json);
    if (options.json) console.log(JSON.stringify(view, null, 2));
    say(`It goes on by itself; to watch it: npx notebridge imports ${view.id}`);
  } finally {
    stop.release();
  }
}

async function send(
  api: Api,
  files: Awaited<ReturnType<typeof lookAtFiles>>,
  options: ImportOptions,
  signal: AbortSignal,
) {
  const path = withQuery('/v1/imports', {
    kind: files[0]?.kind,
    mode: options.mode,
    dryRun: options.dryRun ? 'true' : undefined,
    defaultProvider: options.defaultProvider,
    idSystem: options.idSystem?.join(','),
    encounterSince: options.encounterSince,
  });
  try {
    return await api.upload<ImportResponse>(path, await formOf(files), { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
    console.log('Stopped while sending: nothing of it is imported.');
    process.exit(130);
  }
}

/** Watches an import and ends the command as its outcome says. */
export async function watchToEnd(api: Api, id: string, options: WatchOptions, asJson = false): Promise<void> {
  try {
    const live = new LiveLine(asJson ? { write: () => undefined } : process.stdout);
    const view = await watchImport(api, id, live, options);
    console.log(asJson ? JSON.stringify(view, null, 2) : importSummary(view, 'npx notebridge'));
    process.exitCode = exitCodeOf(view);
  } catch (error) {
    if (!options.signal?.aborted) throw error;
    console.log(
      `The import goes on. To watch it again: npx notebridge imports ${id}; to stop it: npx notebridge cancel ${id}`,
    );
    process.exitCode = 130;
  }
}

/** Turns Ctrl-C into a signal that the command may answer. */
export function stopOnInterrupt(): { signal: AbortSignal; release: () => void } {
  const controller = new AbortController();
  const stop = () => controller.abort();
  process.once('SIGINT', stop);
  return { signal: controller.signal, release: () => process.off('SIGINT', stop) };
}
