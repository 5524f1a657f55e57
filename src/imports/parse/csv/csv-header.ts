import { FHIR_COLUMNS, type ImportKind } from '../row/import-row.js';
import { UnreadableFile } from '../row/rejection.js';
import { CELLS_MAX, type CsvDialect, CsvRecords } from './csv-records.js';
import { REJECTED_COLUMNS, unguardFormula, withoutPadding } from './rejected-cells.js';

export type Column = (typeof FHIR_COLUMNS)[number];

/** Columns of a header; a file with more is refused. */
export const COLUMNS_MAX = 1000;

/** Characters of a header, and of a file's beginning by which it is judged how it is written. */
export const HEADER_MAX = 64 * 1024;

/** Characters of a column's name beyond which it is nobody's. */
const NAME_MAX = 100;

/** Unnamed columns at the end that may hold something; a spreadsheet pads its lines with any number. */
const UNNAMED_MAX = 16;

/** Letters and digits only, in lower case: `E-Mail Address *` and `email_address` are one name. */
function plainName(name: string): string {
  if (name.length > NAME_MAX) return '';
  return name
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '');
}

/** What people call the columns; of two columns of one file, the one whose name stands earlier here is meant. */
const NAMES = {
  kind: ['kind'],
  externalId:
    'externalid externaluserid partneruserid mrn medicalrecordnumber medicalrecordno recordnumber chartnumber chartid ehrid emrid uuid uid id'.split(
      ' ',
    ),
  email: 'email emailaddress mail primaryemail contactemail workemail homeemail'.split(' '),
  firstName: 'firstname givenname forename firstnames givennames legalfirstname first given fname'.split(' '),
  lastName: 'lastname surname familyname legallastname last family lname'.split(' '),
  providers: ['providers'],
} satisfies Record<Column, string[]>;

/** Words that may stand before a name (`Patient ID`, `Clinician e-mail`). */
const OF_CLIENT = ['patient', 'client', 'member', 'person', 'user'];
const OF_PROVIDER = 'provider therapist clinician practitioner doctor staff employee person user'.split(' ');

/** An id that only its subject makes one: `Patient number`. */
const ID_AFTER_SUBJECT = ['number', 'no', 'identifier', 'code', 'key'];

const PROVIDER_COLUMN =
  /^(?:primary|assigned|treating|main)?(?:(?:provider|therapist|clinician|practitioner|counsell?or|psychologist|psychiatrist|physician|doctor)s?(?:externalids?|ids?)?|generalpractitioners?|careteam)$/;

/** How well a column's name fits, 0 best; -1: not at all. */
function rank(column: Column, name: string, kind: ImportKind): number {
  const known = NAMES[column];
  const direct = known.indexOf(name);
  if (direct >= 0 || column === 'kind') return direct;
  if (column === 'providers') return PROVIDER_COLUMN.test(name) ? 1 : -1;
  const subject = (kind === 'providers' ? OF_PROVIDER : OF_CLIENT).find((word) => name.startsWith(word));
  if (!subject) return -1;
  const rest = name.slice(subject.length);
  return column === 'externalId' && ID_AFTER_SUBJECT.includes(rest) ? known.length : known.indexOf(rest);
}

/** The best column for each field, and the fields for which two are equally good. */
function matchColumns(names: readonly string[], kind: ImportKind) {
  const plainNames = names.slice(0, COLUMNS_MAX).map(plainName);
  const at: Partial<Record<Column, number>> = {};
  const doubled: Column[] = [];
  for (const column of FHIR_COLUMNS) {
    if (column === (kind === 'providers' ? 'providers' : kind === 'fhir' ? '' : 'kind')) continue;
    const ranked = plainNames
      .map((name, index) => ({ index, rank: rank(column, name, kind) }))
      .filter((candidate) => candidate.rank >= 0)
      .sort((a, b) => a.rank - b.rank);
    const [best, second] = ranked;
    if (best) at[column] = best.index;
    if (best && second?.rank === best.rank) doubled.push(column);
  }
  return { at, doubled };
}

/** The columns that a file must have. */
function neededColumns(kind: ImportKind): Column[] {
  const needed: Column[] = ['externalId', 'firstName', 'lastName'];
  return [...needed, ...(kind === 'providers' ? ['email' as const] : kind === 'fhir' ? ['kind' as const] : [])];
}

/** Names that may be repeated in a message: words as headers have, not what cells of a headless file may hold. */
function shownNames(names: readonly string[]): string[] {
  const words = names.map((name) => name.trim()).filter((name) => /^[\p{L}][\p{L}\p{N} _.\-/()]{0,40}$/u.test(name));
  return words.slice(0, 20);
}

export type CsvHeader = ReturnType<typeof readHeader>;

/**
 * Reads the header line of a CSV file; names are matched without regard to case, blanks and punctuation.
 * @param kind `fhir` stands for both kinds in one file, told apart by a column `kind`
 * @throws UnreadableFile when a needed column is missing, two columns claim one field, the header is too large, or it is
 * that of a file of both kinds
 */
export function readHeader(cells: readonly string[], kind: ImportKind, line: number) {
  const refuse = (code: string, hint: string): never => {
    throw new UnreadableFile(code, line, hint);
  };
  const named = withoutPadding(cells);
  if (named.length > COLUMNS_MAX || named.reduce((sum, { length }) => sum + length, 0) > HEADER_MAX) {
    refuse(
      'bad-header',
      `The header has more than ${COLUMNS_MAX} columns or ${HEADER_MAX} characters: send only the columns that are needed.`,
    );
  }
  const comesBack = REJECTED_COLUMNS.every((name, place) => named.at(place - REJECTED_COLUMNS.length)?.trim() === name);
  const added = comesBack ? REJECTED_COLUMNS.length : 0;
  const names = comesBack ? named.slice(0, -added).map(unguardFormula) : cells.slice(0, named.length + UNNAMED_MAX);
  if (kind !== 'fhir' && FHIR_COLUMNS.every((name, place) => names[place]?.trim() === name)) {
    refuse('wrong-kind', 'The file holds both kinds of people (its first column is kind): import it with kind=fhir.');
  }
  const { at, doubled } = matchColumns(names, kind);
  if (doubled.length > 0) {
    refuse('duplicate-column', `Two columns of the header could be ${doubled.join(', ')}: rename one of them.`);
  }
  const missing = neededColumns(kind).filter((column) => at[column] === undefined);
  if (missing.length > 0) {
    // With fewer than two known names this line may well be a person's row and not a header: nothing of it is shown.
    const found =
      Object.keys(at).length >= 2 ? `Found: ${shownNames(names).join(', ')}.` : 'The first line must name the columns.';
    refuse('missing-column', `The header has no column for ${missing.join(', ')}. ${found}`);
  }
  const read = new Set(Object.values(at));
  return {
    /** The file's own columns as they are named there. */
    names,
    /** Cells that a row must have: unnamed columns at the end may be left out. */
    least: withoutPadding(names).length,
    /** Where each known column stands among them. */
    at,
    /** Named columns that nothing is read from, as far as their names may be shown. */
    ignored: shownNames(names.filter((_, place) => !read.has(place))),
    /** How many columns of `REJECTED_COLUMNS` follow: none unless this is a file of rejected rows that comes back. */
    added,
  };
}

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
  for (const record of new CsvRecords(dialect, HEADER_MAX).push(text, true)) {
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
 * @param text `HEADER_MAX` characters, or the whole file
 */
export function detectLayout(text: string, kind: ImportKind) {
  const beginning = text.slice(0, HEADER_MAX);
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
