import { FHIR_COLUMNS, type ImportKind } from '../row/import-row.js';
import { UnreadableFile } from '../text/unreadable-file.js';
import { COLUMNS_MAX, type Column, matchColumns, neededColumns } from './csv-columns.js';
import { REJECTED_COLUMNS, unguardFormula, withoutPadding } from './rejected-cells.js';

/** Characters of a header. */
export const HEADER_MAX = 64 * 1024;

/** Unnamed columns at the end that may hold something; a spreadsheet pads its lines with any number. */
const UNNAMED_MAX = 16;

export interface CsvHeader {
  /** The file's own columns as they are named there. */
  names: string[];
  /** Cells that a row must have: unnamed columns at the end may be left out. */
  least: number;
  /** Where each known column stands among them. */
  at: Partial<Record<Column, number>>;
  /** Named columns that nothing is read from, as far as their names may be shown. */
  ignored: string[];
  /** How many columns of `REJECTED_COLUMNS` follow: none unless this is a file of rejected rows that comes back. */
  added: number;
}

/** Names that may be repeated in a message: words as headers have, not what cells of a headless file may hold. */
function shownNames(names: readonly string[]): string[] {
  const words = names.filter((name) => /^[\p{L}][\p{L}\p{N} _.\-/()]{0,40}$/u.test(name.trim()));
  return words.slice(0, 20).map((name) => name.trim());
}

/** How many of the columns that the project adds stand at the end. */
function addedColumns(named: readonly string[]): number {
  const counts = [REJECTED_COLUMNS.length, REJECTED_COLUMNS.length - 1];
  const stand = (count: number) => {
    const tail = named.slice(-count).map((cell) => cell.trim());
    return tail.length === count && tail.every((name, index) => name === REJECTED_COLUMNS[index]);
  };
  return counts.find(stand) ?? 0;
}

/**
 * Reads the header line of a CSV file; names are matched without regard to case, blanks and punctuation.
 * @param kind `fhir` stands for both kinds in one file, told apart by a column `kind`
 * @throws UnreadableFile when a needed column is missing, two columns claim one field, the header is too large, or it is
 * that of a file of both kinds
 */
export function readHeader(cells: readonly string[], kind: ImportKind, line: number): CsvHeader {
  const named = withoutPadding(cells);
  if (named.length > COLUMNS_MAX || named.reduce((sum, { length }) => sum + length, 0) > HEADER_MAX) {
    const hint = `The header has more than ${COLUMNS_MAX} columns or ${HEADER_MAX} characters: send only the columns that are needed.`;
    throw new UnreadableFile('bad-header', line, hint);
  }
  const added = addedColumns(named);
  const own = added > 0 ? named.slice(0, -added).map(unguardFormula) : cells.slice(0, named.length + UNNAMED_MAX);
  if (kind !== 'fhir' && FHIR_COLUMNS.every((name, place) => own[place]?.trim() === name)) {
    const hint = 'The file holds both kinds of people (its first column is kind): import it with kind=fhir.';
    throw new UnreadableFile('wrong-kind', line, hint);
  }
  const { at, doubled } = matchColumns(own, kind);
  if (doubled.length > 0) {
    const hint = `Two columns of the header could be ${doubled.join(', ')}: rename one of them.`;
    throw new UnreadableFile('duplicate-column', line, hint);
  }
  const missing = neededColumns(kind).filter((column) => at[column] === undefined);
  if (missing.length > 0) {
    // With fewer than two known names this line may well be a person's row and not a header: nothing of it is shown.
    const found =
      Object.keys(at).length >= 2 ? `Found: ${shownNames(own).join(', ')}.` : 'The first line must name the columns.';
    throw new UnreadableFile('missing-column', line, `The header has no column for ${missing.join(', ')}. ${found}`);
  }
  const read = new Set(Object.values(at));
  const ignored = shownNames(own.filter((_, place) => !read.has(place)));
  return { names: [...own], least: withoutPadding(own).length, at, ignored, added };
}
