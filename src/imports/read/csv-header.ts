import type { PersonKind } from '../../people/person.js';
import { type CsvDialect, CsvRecords } from './csv-records.js';
import { unguardFormula } from './formula-guard.js';
import { CSV_COLUMNS, type ImportKind } from './import-row.js';
import { UnreadableFile } from './unreadable-file.js';

export type Column = 'kind' | (typeof CSV_COLUMNS)[number];

/** What the project adds to each line of a file of rejected rows, always last. */
export const REJECTED_COLUMNS = ['line', 'code', 'hint'] as const;

export interface CsvHeader {
  /** The file's own columns as they are named there. */
  names: string[];
  /** Where each known column stands among them. */
  at: Partial<Record<Column, number>>;
  /** Named columns that nothing is read from, as far as their names may be shown. */
  ignored: string[];
  /** Whether this is a file of rejected rows that comes back. */
  rejectedFile: boolean;
}

const DELIMITERS = [',', ';', '\t'] as const;

/** Letters and digits only, in lower case: `E-Mail Address *` and `email_address` are one name. */
function plain(name: string): string {
  return name
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '');
}

/** What people call the columns; of two columns of one file, the one whose name stands earlier here is meant. */
const NAMES: Record<'externalId' | 'email' | 'firstName' | 'lastName', readonly string[]> = {
  externalId: [
    'externalid',
    'externaluserid',
    'partneruserid',
    'mrn',
    'medicalrecordnumber',
    'medicalrecordno',
    'recordnumber',
    'chartnumber',
    'chartid',
    'ehrid',
    'emrid',
    'uuid',
    'uid',
    'id',
  ],
  email: ['email', 'emailaddress', 'mail', 'primaryemail', 'contactemail', 'workemail', 'homeemail'],
  firstName: [
    'firstname',
    'givenname',
    'forename',
    'firstnames',
    'givennames',
    'legalfirstname',
    'first',
    'given',
    'fname',
  ],
  lastName: ['lastname', 'surname', 'familyname', 'legallastname', 'last', 'family', 'lname'],
};

/** Words that may stand before a name (`Patient ID`, `Clinician e-mail`). */
const SUBJECTS: Record<PersonKind, readonly string[]> = {
  client: ['patient', 'client', 'member', 'person', 'user'],
  provider: ['provider', 'therapist', 'clinician', 'practitioner', 'doctor', 'staff', 'employee', 'person', 'user'],
};

/** An id that only its subject makes one: `Patient number`. */
const ID_AFTER_SUBJECT = ['number', 'no', 'identifier', 'code', 'key'];

const PROVIDER_COLUMN =
  /^(?:primary|assigned|treating|main)?(?:(?:provider|therapist|clinician|practitioner|counsell?or|psychologist|psychiatrist|physician|doctor)s?(?:externalids?|ids?)?|generalpractitioners?|careteam)$/;

/** How well a column's name fits, 0 best; undefined: not at all. */
function rank(column: Column, name: string, kind: PersonKind): number | undefined {
  if (column === 'kind') return name === 'kind' ? 0 : undefined;
  if (column === 'providers') {
    if (kind === 'provider') return undefined;
    return name === 'providers' ? 0 : PROVIDER_COLUMN.test(name) ? 1 : undefined;
  }
  const known = NAMES[column];
  const direct = known.indexOf(name);
  if (direct >= 0) return direct;
  const subject = SUBJECTS[kind].find((word) => name.startsWith(word) && name.length > word.length);
  if (!subject) return undefined;
  const rest = name.slice(subject.length);
  if (column === 'externalId' && ID_AFTER_SUBJECT.includes(rest)) return known.length;
  const behind = known.indexOf(rest);
  return behind >= 0 ? behind : undefined;
}

/** The best column for each field, and the fields for which two are equally good. */
function matchColumns(names: readonly string[], kind: ImportKind) {
  const person: PersonKind = kind === 'providers' ? 'provider' : 'client';
  const at: CsvHeader['at'] = {};
  const doubled: Column[] = [];
  const wanted: Column[] = kind === 'fhir' ? ['kind', ...CSV_COLUMNS] : [...CSV_COLUMNS];
  for (const column of wanted) {
    const ranked = names
      .map((name, index) => ({ index, rank: rank(column, plain(name), person) }))
      .filter((candidate): candidate is { index: number; rank: number } => candidate.rank !== undefined)
      .sort((a, b) => a.rank - b.rank);
    const [best, second] = ranked;
    if (!best) continue;
    at[column] = best.index;
    if (second?.rank === best.rank) doubled.push(column);
  }
  return { at, doubled };
}

/** Names that may be repeated in a message: words as headers have, not what cells of a headless file may hold. */
function shownNames(names: readonly string[]): string[] {
  const words = names.filter((name) => /^[\p{L}][\p{L}\p{N} _.\-/()]{0,40}$/u.test(name.trim()));
  return words.slice(0, 20).map((name) => name.trim());
}

/**
 * Reads the header line of a CSV file; names are matched without regard to case, blanks and punctuation.
 * @param kind `fhir` stands for both kinds in one file, told apart by a column `kind`
 * @throws UnreadableFile when a needed column is missing or two columns claim one field
 */
export function readHeader(cells: readonly string[], kind: ImportKind, line: number): CsvHeader {
  const tail = cells.slice(-REJECTED_COLUMNS.length).map((cell) => cell.trim());
  const rejectedFile = REJECTED_COLUMNS.every((name, index) => tail[index] === name);
  const names = rejectedFile ? cells.slice(0, -REJECTED_COLUMNS.length).map(unguardFormula) : [...cells];
  const { at, doubled } = matchColumns(names, kind);
  if (doubled.length > 0) {
    const hint = `Two columns of the header could be ${doubled.join(', ')}: rename one of them.`;
    throw new UnreadableFile('duplicate-column', line, hint);
  }
  const needed: Column[] = ['externalId', 'firstName', 'lastName'];
  if (kind === 'providers') needed.push('email');
  if (kind === 'fhir') needed.push('kind');
  const missing = needed.filter((column) => at[column] === undefined);
  if (missing.length > 0) {
    // With fewer than two known names this line may well be a person's row and not a header: nothing of it is shown.
    const found =
      Object.keys(at).length >= 2 ? `Found: ${shownNames(names).join(', ')}.` : 'The first line must name the columns.';
    throw new UnreadableFile('missing-column', line, `The header has no column for ${missing.join(', ')}. ${found}`);
  }
  const read = new Set(Object.values(at));
  const ignored = shownNames(names.filter((_, place) => !read.has(place)));
  return { names, at, ignored, rejectedFile };
}

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

/**
 * Tells how a file is written from its beginning.
 * @param text the file from its first line that is not blank, at least that whole line
 */
export function detectDialect(text: string, kind: ImportKind): CsvDialect {
  const end = firstEnd(text);
  const newline = text[end] === '\r' && text[end + 1] !== '\n' ? '\r' : '\n';
  const header = text.slice(0, end);
  const scored = DELIMITERS.map((delimiter) => {
    const [record] = new CsvRecords({ delimiter, newline }, header.length).push(header, true);
    const cells = record && 'cells' in record ? record.cells : header.split(delimiter);
    return { delimiter, known: Object.keys(matchColumns(cells, kind).at).length, cells: cells.length };
  }).sort((a, b) => b.known - a.known || b.cells - a.cells);
  return { delimiter: scored[0]?.delimiter ?? ',', newline };
}
