/**
 * The places where a spreadsheet would take a formula for a cell: at the start of a cell, also where a program splits it
 * that separates by semicolon, tab or line, behind quotes and apostrophes.
 */
const RISKY = /(?<=^|[;\t\r\n])(?=(?:[^\S\t\r\n]|['"])*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20])|^(?='*[\t\r\n])/g;

/** The apostrophes at those places. */
const GUARDS = /(?<=^|[;\t\r\n])'(?=(?:[^\S\t\r\n]|['"])*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20])|^'(?='*[\t\r\n])/g;

/** Guards what could become a formula with an apostrophe (OWASP, CSV injection), and quotes cells (RFC 4180). */
export function csvLine(cells: readonly string[]): string {
  const guarded = cells.map((cell) => cell.replace(RISKY, "'"));
  const quoted = guarded.map((cell) => (/[",\r\n;\t]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell));
  return `${quoted.join(',')}\r\n`;
}

/** Undoes the guard of `csvLine` exactly: apostrophes that the cell had before stay. */
export function unguarded(cell: string): string {
  return cell.replace(GUARDS, '');
}
