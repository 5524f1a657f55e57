import type { ImportKind } from '../row/import-row.js';
import { HEADER_MAX, matchColumns, neededColumns, plainName } from './csv-header.js';
import { CELLS_MAX, type CsvDialect, CsvRecords } from './csv-records.js';
import { withoutPadding } from './rejected-cells.js';

/** Characters of a file's beginning by which it is judged how it is written. */
export const BEGINNING_MAX = HEADER_MAX;

const DELIMITERS = [',', ';', '\t', '|'];

/** Lines that may stand above the header (titles, `sep=;`), and how many of their cells may hold something. */
const TITLES_MAX = 20;
const TITLE_CELLS = 2;

const LINE_END = /\r\n?|\n/;

/** How lines end: as the first record does, past line ends inside quotes; any that is there where quotes are not closed. */
function newlineOf(text: string): CsvDialect['newline'] {
  const parts = text.split('"');
  const outside = parts.filter((_, at) => at % 2 === 0).join('"');
  const isOpen = parts.length % 2 === 0;
  const [end] = LINE_END.exec(outside) ?? LINE_END.exec(isOpen ? text : '') ?? [];
  return end === '\r' ? '\r' : '\n';
}

interface Candidate {
  delimiter: string;
  line: number;
  /** All columns that must be there are. */
  complete: boolean;
  known: number;
  cells: string[];
}

/** The line that is most like a header, read with one delimiter. */
function candidateOf(text: string, dialect: CsvDialect, kind: ImportKind): Candidate | undefined {
  const { delimiter } = dialect;
  let best: Candidate | undefined;
  let titles = 0;
  for (const record of new CsvRecords(dialect, BEGINNING_MAX).push(text, true)) {
    const isWhole = 'cells' in record;
    const cells = isWhole ? record.cells : record.text.split(delimiter, CELLS_MAX);
    const filled = cells.filter((cell) => cell.trim() !== '').length;
    if (isWhole && filled === 0) continue;
    const { at } = matchColumns(cells, kind);
    const complete = isWhole && neededColumns(kind).every((column) => at[column] !== undefined);
    const candidate = { delimiter, line: record.line, complete, known: Object.keys(at).length, cells };
    if (!best || better(candidate, best) < 0) best = candidate;
    if (complete || !isWhole || filled > TITLE_CELLS || ++titles > TITLES_MAX) return best;
  }
  return best;
}

/** Which of two says more; among those that say too little to be distinguished the earlier line. */
function better(a: Candidate, b: Candidate): number {
  const says = ({ complete, known }: Candidate) => (complete ? 100 : 0) + (known < 2 ? 0 : known);
  return says(b) - says(a) || a.line - b.line || b.cells.length - a.cells.length;
}

/**
 * How a CSV file is written, judged by its beginning, and on which physical line its header begins.
 * @param text `BEGINNING_MAX` characters, or the whole file
 */
export function detectLayout(text: string, kind: ImportKind) {
  const beginning = text.slice(0, BEGINNING_MAX);
  const trimmed = beginning.trimStart();
  const newline = newlineOf(trimmed);
  // What spreadsheets take for the delimiter when the first line says so.
  const [, said] = /^"?sep=([^"\w\s]|\t)"?[ \t]*(?:[\r\n]|$)/i.exec(trimmed) ?? [];
  const [best] = (said ? [said] : DELIMITERS)
    .flatMap((delimiter) => candidateOf(beginning, { delimiter, newline }, kind) ?? [])
    .sort(better);
  const dialect: CsvDialect = { delimiter: best?.delimiter ?? ',', newline };
  return { dialect, headerLine: best?.line ?? 1, header: withoutPadding(best?.cells ?? []) };
}

/** Words of column names that stand in files of one kind only. */
const OF_CLIENTS = /^(?:patient|client|member)|(?:birth|dob)|^mrn$|medicalrecord/;
const OF_PROVIDERS = /^npi$|nationalprovideridentifier|licen[cs]e|credential|taxonomy/;

/**
 * The kinds that the header of a CSV file shows: none, one, or several where it is ambiguous. A column `kind` beside the
 * others is that of the project's own file of rejected rows, which holds both.
 * @param beginning of the file
 */
export function kindsOfHeader(beginning: string): ImportKind[] {
  const { header } = detectLayout(beginning, 'clients');
  const columns = (kind: ImportKind) => matchColumns(header, kind).at;
  const [asClients, asBoth] = [columns('clients'), columns('fhir')];
  if (asBoth.kind !== undefined && asBoth.externalId !== undefined) return ['fhir'];
  const names = header.map(plainName);
  const isOfClients = names.some((name) => OF_CLIENTS.test(name));
  const isOfProviders = names.some((name) => OF_PROVIDERS.test(name));
  // A therapist's id is a client's provider beside an id of the client's own, else it is the id itself.
  const hasOwnId = asClients.externalId !== undefined;
  return [
    ...(isOfClients || (hasOwnId && asClients.providers !== undefined) ? ['clients' as const] : []),
    ...(isOfProviders || (!hasOwnId && columns('providers').externalId !== undefined) ? ['providers' as const] : []),
  ];
}
