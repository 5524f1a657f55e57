import { cellOf, tableLines, widthsOf } from './table.js';

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
