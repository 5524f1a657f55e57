/** Rows per printed page; the first page decides the widths of the columns. */
const PAGE = 200;

/** Cells by the heading of their column; null, undefined and '' show as a dash. */
export type Row = Record<string, unknown>;

interface ListFormat<T> {
  row: (item: T) => Row;
  /** Printed if the list is empty. */
  none: string;
  /** Print each item as one line of JSON instead. */
  json?: boolean;
}

/** Prints a list page by page, because it may not fit in memory. */
export async function printList<T>(
  items: AsyncIterable<T> | Iterable<T>,
  { row, none, json = false }: ListFormat<T>,
  print: (text: string) => void = console.log,
): Promise<void> {
  const widths: number[] = [];
  const page: Row[] = [];
  let isEmpty = true;
  for await (const item of items) {
    isEmpty = false;
    if (json) print(JSON.stringify(item));
    else page.push(row(item));
    if (page.length === PAGE) print(table(page.splice(0), widths));
  }
  if (page.length > 0) print(table(page, widths));
  if (isEmpty && !json) print(none);
}

/** Rows below the headings of their columns. @param widths of the columns, if this is not the first page of a list */
export function table(rows: readonly Row[], widths: number[] = []): string {
  const lines = rows.map((row) =>
    Object.values(row).map((value) => String(value ?? '').replaceAll(/\s+/g, ' ') || '–'),
  );
  if (widths.length === 0) {
    lines.unshift(Object.keys(rows[0] ?? {}));
    for (const cells of lines) {
      for (const [column, text] of cells.entries()) widths[column] = Math.max(widths[column] ?? 0, text.length);
    }
  }
  const aligned = lines.map((cells) => cells.map((text, column) => text.padEnd(widths[column] ?? 0)).join('  '));
  return aligned.map((line) => line.trimEnd()).join('\n');
}

/** Prints an answer of the service, as it is or in words. */
export function printAnswer<T>(answer: T, json: boolean | undefined, words: (answer: T) => string): void {
  console.log(json ? JSON.stringify(answer, null, 2) : words(answer));
}

/** The lines that apply. */
export function lines(...texts: (string | false | null | undefined)[]): string {
  return texts.filter((text) => text).join('\n');
}

/** A count with its noun: `1 row`, `2 rows`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count.toLocaleString('en-GB')} ${count === 1 ? noun : plural}`;
}

/** A span of time for people, in whole seconds: `8 s`, `3 min 5 s`, `2 h 4 min`. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  const [size, unit, smaller] = whole < 3_600 ? ([60, 'min', 's'] as const) : ([3_600, 'h', 'min'] as const);
  const rest = Math.floor((whole % size) / (size / 60));
  return `${Math.floor(whole / size)} ${unit}${rest > 0 ? ` ${rest} ${smaller}` : ''}`;
}

/** A range of time for people: `8 s`, `8 s to 3 min`. @param min null if only the maximum is known */
export function durationRange(min: number | null | undefined, max: number): string {
  return [...new Set([min ?? max, max].map(duration))].join(' to ');
}

/** A number of bytes for people: `812 B`, `3.1 KiB`, `2.0 GiB`. */
export function byteSize(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return `${power === 0 ? bytes : (bytes / 1024 ** power).toFixed(1)} ${units[power]}`;
}
