/**
 * A row as it was, in one string: a JSON list of its cells in the order of the file's columns, or a JSON string of its
 * text where no cells could be told apart (broken JSON, broken quotes).
 */
export function rawCells(cells: readonly string[]): string {
  return JSON.stringify(cells);
}

/** The raw form of a row that has no cells: its text, or nothing where it was too large to keep. */
export function rawText(text: string): string {
  return JSON.stringify(text);
}

/** The cells of a raw row, or its text. Throws SyntaxError on what is neither. */
export function parseRaw(raw: string): { cells: string[]; text: string } {
  const value: unknown = JSON.parse(raw);
  return Array.isArray(value) ? { cells: value.map(String), text: '' } : { cells: [], text: String(value) };
}
