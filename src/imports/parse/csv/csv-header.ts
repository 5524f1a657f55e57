import { FHIR_COLUMNS, type ImportKind } from '../row/import-row.js';
import { UnreadableFile } from '../row/rejection.js';
import { REJECTED_COLUMNS, unguardFormula, withoutPadding } from './rejected-cells.js';

export type Column = (typeof FHIR_COLUMNS)[number];

/** Columns and characters of a header; a file with more is refused. */
export const COLUMNS_MAX = 1000;
export const HEADER_MAX = 64 * 1024;

/** Characters of a column's name beyond which it is nobody's. */
const NAME_MAX = 100;

/** Unnamed columns at the end that may hold something; a spreadsheet pads its lines with any number. */
const UNNAMED_MAX = 16;

/** Letters and digits only, in lower case: `E-Mail Address *` and `email_address` are one name. */
export function plainName(name: string): string {
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
export function matchColumns(names: readonly string[], kind: ImportKind) {
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
export function neededColumns(kind: ImportKind): Column[] {
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
  const named = withoutPadding(cells);
  if (named.length > COLUMNS_MAX || named.reduce((sum, { length }) => sum + length, 0) > HEADER_MAX) {
    const hint = `The header has more than ${COLUMNS_MAX} columns or ${HEADER_MAX} characters: send only the columns that are needed.`;
    throw new UnreadableFile('bad-header', line, hint);
  }
  const comesBack = REJECTED_COLUMNS.every((name, place) => named.at(place - REJECTED_COLUMNS.length)?.trim() === name);
  const added = comesBack ? REJECTED_COLUMNS.length : 0;
  const names = comesBack ? named.slice(0, -added).map(unguardFormula) : cells.slice(0, named.length + UNNAMED_MAX);
  if (kind !== 'fhir' && FHIR_COLUMNS.every((name, place) => names[place]?.trim() === name)) {
    const hint = 'The file holds both kinds of people (its first column is kind): import it with kind=fhir.';
    throw new UnreadableFile('wrong-kind', line, hint);
  }
  const { at, doubled } = matchColumns(names, kind);
  if (doubled.length > 0) {
    const hint = `Two columns of the header could be ${doubled.join(', ')}: rename one of them.`;
    throw new UnreadableFile('duplicate-column', line, hint);
  }
  const missing = neededColumns(kind).filter((column) => at[column] === undefined);
  if (missing.length > 0) {
    // With fewer than two known names this line may well be a person's row and not a header: nothing of it is shown.
    const found =
      Object.keys(at).length >= 2 ? `Found: ${shownNames(names).join(', ')}.` : 'The first line must name the columns.';
    throw new UnreadableFile('missing-column', line, `The header has no column for ${missing.join(', ')}. ${found}`);
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
