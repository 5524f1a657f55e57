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
  const names = withoutPadding(header).map((name) => name.trim());
  return names.length === REJECTED_COLUMNS.length && REJECTED_COLUMNS.every((name, place) => names[place] === name);
}
