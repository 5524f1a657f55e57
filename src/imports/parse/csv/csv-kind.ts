import type { ImportKind } from '../row/import-row.js';
import { matchColumns } from './csv-columns.js';
import { withoutPadding } from './csv-header.js';
import { detectLayout } from './csv-layout.js';
import { CsvRecords } from './csv-records.js';

/** Words of column names that stand in files of one kind only. */
const OF_CLIENTS = /^(?:patient|client|member)|(?:birth|dob)|^mrn$|medicalrecord/;
const OF_PROVIDERS = /^npi$|nationalprovideridentifier|licen[cs]e|credential|taxonomy/;

/**
 * Whom a CSV file holds as far as its header tells: nobody where it says nothing, several where it says more than one
 * thing. A column `kind` beside the others is that of the project's own file of rejected rows, which holds both.
 *
 * @param beginning of the file
 */
export function kindsOfHeader(beginning: string): ImportKind[] {
  const cells = headerOf(beginning);
  const asClients = matchColumns(cells, 'clients').at;
  const asBoth = matchColumns(cells, 'fhir').at;
  if (asBoth.kind !== undefined && asBoth.externalId !== undefined) return ['fhir'];
  const plain = cells.map((cell) => cell.toLowerCase().replace(/[^a-z]/g, ''));
  // A therapist's id is a client's provider beside an id of the client's own, else it is the id itself.
  const clients =
    (asClients.providers !== undefined && asClients.externalId !== undefined) ||
    plain.some((name) => OF_CLIENTS.test(name));
  const isProviderId =
    asClients.externalId === undefined && matchColumns(cells, 'providers').at.externalId !== undefined;
  const providers = isProviderId || plain.some((name) => OF_PROVIDERS.test(name));
  return [...(clients ? ['clients' as const] : []), ...(providers ? ['providers' as const] : [])];
}

function headerOf(beginning: string): string[] {
  const { dialect, headerLine } = detectLayout(beginning, 'clients');
  for (const record of new CsvRecords(dialect, beginning.length).push(beginning, true)) {
    if (record.line >= headerLine && 'cells' in record) return withoutPadding(record.cells);
  }
  return [];
}
