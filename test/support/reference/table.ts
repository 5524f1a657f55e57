/** A Markdown table. @param rows one list of cells for each, in the order of the titles */
export function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(escaped).join(' | ')} |`;
  return [line(titles), line(titles.map(() => '---')), ...rows.map(line)].join('\n');
}

/** Keeps Markdown from reading `|` as the end of a cell, and `__` as emphasis. */
const escaped = (cell: string): string => cell.replaceAll('|', String.raw`\|`).replaceAll('__', String.raw`\_\_`);

/** Names as code, separated by commas. */
export const codes = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(', ');
