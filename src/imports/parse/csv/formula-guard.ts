/** What a spreadsheet would take for a formula or a break-out from a cell, behind any quotes that already guard it. */
const RISKY = /^'*(?:\s*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]|[\t\r\n])/;

/** The cell made safe to open in a spreadsheet: one quote before it when it begins like a formula (OWASP, CSV injection). */
export function guardFormula(cell: string): string {
  return RISKY.test(cell) ? `'${cell}` : cell;
}

/** The cell as it was before `guardFormula`, exactly: a quote of the cell's own stays. */
export function unguardFormula(cell: string): string {
  return cell.startsWith("'") && RISKY.test(cell.slice(1)) ? cell.slice(1) : cell;
}
