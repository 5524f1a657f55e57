/** The start of a cell that a spreadsheet takes for a formula or a new cell, behind any quotes that guard it already. */
const RISKY_START = /^'*(?:\s*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]|[\t\r\n])/;

/** Guards cells that start like formulas with an apostrophe (OWASP, CSV injection), and quotes cells (RFC 4180). */
export function csvLine(cells: readonly string[]): string {
  const guarded = cells.map((cell) => (RISKY_START.test(cell) ? `'${cell}` : cell));
  const quoted = guarded.map((cell) => (/[",\r\n;\t]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell));
  return `${quoted.join(',')}\r\n`;
}

/** Undoes the guard of `csvLine` exactly: apostrophes that the cell had before stay. */
export function unguarded(cell: string): string {
  return cell.startsWith("'") && RISKY_START.test(cell.slice(1)) ? cell.slice(1) : cell;
}
