import type { ImportKind } from '../row/import-row.js';
import { matchColumns, neededColumns } from './csv-columns.js';
import { HEADER_MAX } from './csv-header.js';
import { CELLS_MAX, type CsvDialect, CsvRecords } from './csv-records.js';
import { withoutPadding } from './rejected-cells.js';

/** How a CSV file is written, and on which physical line its header begins. */
export interface CsvLayout {
  dialect: CsvDialect;
  headerLine: number;
}

/** Characters of a file's beginning by which that is judged. */
export const BEGINNING_MAX = HEADER_MAX;

const DELIMITERS = [',', ';', '\t', '|'] as const;

/** Lines that may stand above the header (titles, `sep=;`), and how many of their cells may hold something. */
const TITLES_MAX = 20;
const TITLE_CELLS = 2;

/** Where the first record ends, past line ends inside quotes; its first physical line where quotes are not closed. */
function firstEnd(text: string): number {
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') quoted = !quoted;
    else if (!quoted && (character === '\n' || character === '\r')) return at;
  }
  const end = quoted ? text.search(/[\r\n]/) : -1;
  return end < 0 ? text.length : end;
}

/** What spreadsheets take for the delimiter when the first line says so. */
function saidDelimiter(text: string): string | undefined {
  return /^"?sep=([^"\w\s]|\t)"?[ \t]*(?:[\r\n]|$)/i.exec(text)?.[1];
}

interface Candidate {
  delimiter: string;
  line: number;
  /** All that must be there is. */
  complete: boolean;
  known: number;
  cells: number;
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
    const candidate = { delimiter, line: record.line, complete, known: Object.keys(at).length, cells: cells.length };
    if (!best || better(candidate, best) < 0) best = candidate;
    if (complete || !isWhole || filled > TITLE_CELLS || ++titles > TITLES_MAX) return best;
  }
  return best;
}

/** Which of two says more; among those that say too little to be distinguished the earlier line. */
function better(a: Candidate, b: Candidate): number {
  const says = ({ complete, known }: Candidate) => (complete ? 100 : 0) + (known < 2 ? 0 : known);
  return says(b) - says(a) || a.line - b.line || b.cells - a.cells;
}

/**
 * How a file is written, judged by its beginning.
 * @param text `BEGINNING_MAX` characters, or the whole file
 */
export function detectLayout(text: string, kind: ImportKind): CsvLayout {
  const beginning = text.slice(0, BEGINNING_MAX);
  const trimmed = beginning.trimStart();
  const end = firstEnd(trimmed);
  const newline = trimmed[end] === '\r' && trimmed[end + 1] !== '\n' ? '\r' : '\n';
  const said = saidDelimiter(trimmed);
  const [best] = (said ? [said] : DELIMITERS)
    .flatMap((delimiter) => candidateOf(beginning, { delimiter, newline }, kind) ?? [])
    .sort(better);
  return { dialect: { delimiter: best?.delimiter ?? ',', newline }, headerLine: best?.line ?? 1 };
}

/** Words of column names that stand in files of one kind only. */
const OF_CLIENTS = /^(?:patient|client|member)|(?:birth|dob)|^mrn$|medicalrecord/;
const OF_PROVIDERS = /^npi$|nationalprovideridentifier|licen[cs]e|credential|taxonomy/;

/**
 * The kinds that the header of a CSV file shows: none, one, or several where it is ambiguous. A column `kind` beside the others is that of the project's own file of rejected rows, which holds both.
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
