/**
 * Rows in columns that are as wide as their widest cell, below a header; the last column is not padded.
 *
 * @param rows cells; null and undefined show as a dash
 */
export function table(header: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const lines = [[...header], ...rows.map((row) => row.map(cellOf))];
  return tableLines(lines, widthsOf(lines));
}

/** The width of each column's widest cell. */
export function widthsOf(lines: readonly (readonly string[])[]): number[] {
  const columns = lines[0]?.length ?? 0;
  return Array.from({ length: columns }, (_, column) =>
    lines.reduce((widest, line) => Math.max(widest, (line[column] ?? '').length), 0),
  );
}

/** Lines of cells, padded. */
export function tableLines(lines: readonly (readonly string[])[], widths: readonly number[]): string {
  return lines
    .map((line) => line.map((text, column) => (column < line.length - 1 ? text.padEnd(widths[column] ?? 0) : text)))
    .map((line) => line.join('  ').trimEnd())
    .join('\n');
}

/** What a cell shows. */
export function cellOf(value: unknown): string {
  return value === null || value === undefined || value === '' ? '–' : String(value).replaceAll(/\s+/g, ' ');
}

/** Rows that are printed at once; the columns are as wide as the first ones need. */
const PAGE = 200;

/**
 * Prints a table as its rows come: a list may be longer than what fits in memory.
 *
 * @returns how many rows there were; of none nothing is printed
 */
export async function printTable(
  header: readonly string[],
  rows: AsyncIterable<readonly unknown[]>,
  print: (text: string) => void = console.log,
): Promise<number> {
  let widths: number[] | undefined;
  let count = 0;
  let page: string[][] = [];
  const flush = () => {
    if (page.length === 0) return;
    const lines = widths ? page : [[...header], ...page];
    widths ??= widthsOf(lines);
    print(tableLines(lines, widths));
    page = [];
  };
  for await (const row of rows) {
    count += 1;
    page.push(row.map(cellOf));
    if (page.length === PAGE) flush();
  }
  flush();
  return count;
}
