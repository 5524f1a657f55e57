/**
 * Rows in columns that are as wide as their widest cell, below a header; the last column is not padded.
 *
 * @param rows cells; null and undefined show as a dash
 */
export function table(header: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const lines = [header, ...rows.map((row) => row.map(cell))];
  const widths = header.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? '').length)));
  return lines
    .map((line) => line.map((text, column) => (column < line.length - 1 ? text.padEnd(widths[column] ?? 0) : text)))
    .map((line) => line.join('  ').trimEnd())
    .join('\n');
}

function cell(value: unknown): string {
  return value === null || value === undefined || value === '' ? '–' : String(value).replaceAll(/\s+/g, ' ');
}
