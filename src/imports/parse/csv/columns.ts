import { FIELDS } from '../row/import-row.js';

/** Maximum characters of a column's name. */
const NAME_MAX = 100;

/** Maximum characters of an example. */
const EXAMPLE_MAX = 24;

/** The columns of the file of rejected rows. */
export const REJECTED_COLUMNS = [...FIELDS, 'file', 'line', 'code', 'hint'];

/** The columns of the file of all people (`GET /v1/people.csv`). */
const PEOPLE_COLUMNS = ['kind', 'externalId', 'platformUserId'];

export function isBlank(cells: readonly string[]): boolean {
  return cells.every((cell) => cell.trim() === '');
}

/** Trims cells, and removes the empty ones at the end, with which spreadsheets pad lines. */
export function withoutPadding(cells: readonly string[]): string[] {
  return cells.slice(0, cells.findLastIndex((cell) => cell.trim() !== '') + 1).map((cell) => cell.trim());
}

/** The cells of one column that are not blank. */
export function filledCells(sample: readonly (readonly string[])[], place: number): string[] {
  return sample.map((cells) => (cells[place] ?? '').trim()).filter((cell) => cell !== '');
}

/** A header as one text, regardless of padding. */
export function headerText(cells: readonly string[]): string {
  return JSON.stringify(withoutPadding(cells));
}

/** True if this is the header of a file of rejected rows. */
export function isRejectedHeader(header: readonly string[]): boolean {
  return headerText(header) === JSON.stringify(REJECTED_COLUMNS);
}

/** True if this is the header of a file that the service wrote, so that its cells are guarded. */
export function isOwnHeader(header: readonly string[]): boolean {
  return isRejectedHeader(header) || headerText(header) === JSON.stringify(PEOPLE_COLUMNS);
}

/** The columns of a header as users see and choose them: unique names without control characters. */
export function columnNames(header: readonly string[]): string[] {
  const used = new Set<string>();
  return header.map((cell, place) => {
    const text = cell.replace(/\p{Cc}+/gu, ' ').trim();
    const base = text.slice(0, NAME_MAX) || `Column ${place + 1}`;
    let name = base;
    for (let copy = 2; used.has(name); copy++) {
      const suffix = ` (${copy})`;
      name = base.slice(0, NAME_MAX - suffix.length) + suffix;
    }
    used.add(name);
    return name;
  });
}

/** A text with its letters and digits replaced, so that it shows a form and no person. */
export function maskedExample(text: string): string {
  return Array.from(text.trim().slice(0, 2 * EXAMPLE_MAX))
    .slice(0, EXAMPLE_MAX)
    .join('')
    .replace(/[\p{L}\p{M}]/gu, 'x')
    .replace(/\p{N}/gu, '9')
    .replace(/[\p{Cc}\p{Cs}]/gu, ' ');
}

/**
 * True if a line without two known names is still a header: its cells are words, and some column contains
 * numbers or addresses below a word. Otherwise it may be a person, whose cells must not be shown.
 */
export function looksLikeHeader(header: readonly string[], sample: readonly (readonly string[])[]): boolean {
  const isWord = (name: string) => name.trim() === '' || (/\p{L}/u.test(name) && !/@|\d[-/.]\d/.test(name));
  return (
    header.every(isWord) &&
    header.some((name, place) => {
      if (name.trim() === '' || /\d/.test(name)) return false;
      const cells = filledCells(sample, place);
      return cells.filter((cell) => /[\d@]/.test(cell)).length > cells.length / 2;
    })
  );
}
