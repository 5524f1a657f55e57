/** The columns of the file of rejected rows. */
export const REJECTED_COLUMNS = [
  'kind',
  'externalId',
  'email',
  'firstName',
  'lastName',
  'providers',
  'platformUserId',
  'file',
  'line',
  'code',
  'hint',
] as const;

/** The columns of the file of all people (`GET /v1/people.csv`). */
const PEOPLE_COLUMNS = ['kind', 'externalId', 'platformUserId'];

/** A text that a spreadsheet may execute as a formula, or that leaves its cell, after quotes that already guard it. */
const RISKY = /^'*(?:\s*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]|[\t\r\n])/;

/** Makes a cell safe for spreadsheets: puts a quote before a text that begins like a formula (OWASP, CSV injection). */
export function guardFormula(cell: string): string {
  return RISKY.test(cell) ? `'${cell}` : cell;
}

/** Undoes `guardFormula` exactly: quotes that the cell had before stay. */
export function unguardFormula(cell: string): string {
  return cell.startsWith("'") && RISKY.test(cell.slice(1)) ? cell.slice(1) : cell;
}

/** Removes the empty cells at the end. */
export function withoutPadding(cells: readonly string[]): string[] {
  return cells.slice(0, cells.findLastIndex((cell) => cell.trim() !== '') + 1);
}

/** True if this is the header of a file of rejected rows. */
export function isRejectedHeader(header: readonly string[]): boolean {
  return isHeader(header, REJECTED_COLUMNS);
}

/** True if this is the header of a file that the service wrote, so that its cells are guarded. */
export function isOwnHeader(header: readonly string[]): boolean {
  return isRejectedHeader(header) || isHeader(header, PEOPLE_COLUMNS);
}

function isHeader(header: readonly string[], columns: readonly string[]): boolean {
  const names = withoutPadding(header).map((name) => name.trim());
  return names.length === columns.length && columns.every((name, place) => names[place] === name);
}
