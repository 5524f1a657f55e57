import { type Command, Option } from 'commander';
import type { ImportKind } from '../../imports/parse/row/import-row.js';
import type { ImportResponse } from '../../imports/report/import-view.js';
import { type Api, withQuery } from '../api/api.js';
import { byteSize } from '../output/duration.js';
import { formOf, type ImportFile, lookAtFiles } from './import-files.js';
import { goesOn, untilInterrupted, watchToEnd } from './import-watch.js';

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
    .action((files: string[], options: ImportOptions) => importFiles(api, files, options));
}

async function importFiles(api: Api, paths: string[], { json, wait, ...options }: ImportOptions): Promise<void> {
  const files = await lookAtFiles(paths, options.kind);
  const size = byteSize(files.reduce((sum, file) => sum + file.bytes, 0));
  const say = json ? () => undefined : console.log;
  say(`Sending ${files.map((file) => `${file.path} (${file.kind})`).join(', ')}: ${size}`);
  let id: string | undefined;
  await untilInterrupted(
    async (signal) => {
      const view = await api.post<ImportResponse>(addressOf(files, options), await formOf(files), { signal });
      id = view.id;
      say(`Import ${id}`);
      if (wait) return watchToEnd(api, id, { signal, json });
      if (json) console.log(JSON.stringify(view, null, 2));
      say(`It goes on by itself; to watch it: npx notebridge imports ${id}`);
    },
    () => (id ? goesOn(id) : 'Stopped while sending: nothing of it is imported.'),
  );
}

function addressOf(files: readonly ImportFile[], options: Omit<ImportOptions, 'json' | 'wait'>): string {
  return withQuery('/v1/imports', {
    kind: files[0]?.kind,
    mode: options.mode,
    dryRun: options.dryRun ? 'true' : undefined,
    defaultProvider: options.defaultProvider,
    idSystem: options.idSystem?.join(','),
    encounterSince: options.encounterSince,
  });
}
