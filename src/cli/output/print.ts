/** Rows that are printed at once; the columns are as wide as the first of them need. */
const PAGE = 200;

/** Cells by the heading of their column; null, undefined and '' show as a dash. */
type Row = Record<string, unknown>;

interface ListFormat<T> {
  row: (item: T) => Row;
  /** Printed in place of a list without items. */
  none: string;
  /** Print each item as one line of JSON instead. */
  json?: boolean;
}

/** Prints a list item by item as it comes: it may be longer than what fits in memory. */
export async function printList<T>(
  items: AsyncIterable<T> | Iterable<T>,
  { row, none, json = false }: ListFormat<T>,
  print: (text: string) => void = console.log,
): Promise<void> {
  let widths: number[] | undefined;
  let isEmpty = true;
  let page: string[][] = [];
  const flush = () => {
    widths ??= widthsOf(page);
    if (page.length > 0) print(aligned(page, widths));
    page = [];
  };
  for await (const item of items) {
    if (json) print(JSON.stringify(item));
    else page.push(...(isEmpty ? tableCells([row(item)]) : [cellsOf(row(item))]));
    isEmpty = false;
    if (page.length > PAGE) flush();
  }
  flush();
  if (isEmpty && !json) print(none);
}

/** Rows below the headings of their columns. */
export function table(rows: readonly Row[]): string {
  const cells = tableCells(rows);
  return aligned(cells, widthsOf(cells));
}

/** Prints an answer of the service, as it is or in words. */
export function printAnswer<T>(answer: T, json: boolean | undefined, words: (answer: T) => string): void {
  console.log(json ? JSON.stringify(answer, null, 2) : words(answer));
}

function tableCells(rows: readonly Row[]): string[][] {
  return [Object.keys(rows[0] ?? {}), ...rows.map(cellsOf)];
}

function cellsOf(row: Row): string[] {
  return Object.values(row).map((value) =>
    value === null || value === undefined || value === '' ? '–' : String(value).replaceAll(/\s+/g, ' '),
  );
}

function widthsOf(lines: readonly (readonly string[])[]): number[] {
  const [heading = []] = lines;
  return heading.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
}

function aligned(lines: readonly (readonly string[])[], widths: readonly number[]): string {
  return lines
    .map((line) =>
      line
        .map((text, at) => text.padEnd(widths[at] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
