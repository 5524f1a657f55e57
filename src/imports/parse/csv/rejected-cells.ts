import { createHash } from 'node:crypto';

/** What the project adds to each line of a file of rejected rows, always last. */
export const REJECTED_COLUMNS = ['line', 'code', 'hint', 'check'] as const;

/** What a spreadsheet would take for a formula or a break-out from a cell, behind any quotes that already guard it. */
const RISKY = /^'*(?:\s*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]|[\t\r\n])/;

/** Characters of a check. */
const CHECK_LENGTH = 12;

/** The cell made safe to open in a spreadsheet: one quote before it when it begins like a formula (OWASP, CSV injection). */
export function guardFormula(cell: string): string {
  return RISKY.test(cell) ? `'${cell}` : cell;
}

/** The cell as it was before `guardFormula`, exactly: a quote of the cell's own stays. */
export function unguardFormula(cell: string): string {
  return cell.startsWith("'") && RISKY.test(cell.slice(1)) ? cell.slice(1) : cell;
}

/** Without the empty cells at the end. */
export function withoutPadding(cells: readonly string[]): string[] {
  return cells.slice(0, cells.findLastIndex((cell) => cell.trim() !== '') + 1);
}

/**
 * A check of a rejected row's own cells, by which it is known when it comes back as it was. Blanks around cells, empty
 * cells at the end and the kind of line ends make no difference, since a spreadsheet changes them. Letters only: digits
 * would become a number there.
 */
export function rowCheck(cells: readonly string[]): string {
  const own = withoutPadding(cells).map((cell) => cell.replaceAll('\r\n', '\n').trim());
  const digest = createHash('sha256').update(JSON.stringify(own)).digest();
  return [...digest.subarray(0, CHECK_LENGTH)].map((byte) => String.fromCharCode(97 + (byte % 26))).join('');
}
