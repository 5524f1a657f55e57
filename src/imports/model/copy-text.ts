/** A value of PostgreSQL's COPY text format. */
export type CopyValue = string | number | Buffer | Date | readonly string[] | null | undefined;

const SPECIAL = /[\\\t\n\r\0]/;
const EACH_SPECIAL = /[\\\t\n\r\0]/g;
/** PostgreSQL's text holds no NUL: where a file's unknown field is named with one, the sign for it stands. */
const ESCAPES: Record<string, string> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r', '\0': '\u2400' };

function escapeText(text: string): string {
  return SPECIAL.test(text) ? text.replace(EACH_SPECIAL, (character) => ESCAPES[character] ?? character) : text;
}

/** The text form of a PostgreSQL array (PostgreSQL manual, 8.15.2); the driver's own costs as much as the rest of a row. */
export function arrayLiteral(items: readonly (string | number)[]): string {
  return `{${items.map(element).join()}}`;
}

function element(item: string | number): string {
  if (typeof item === 'number') return String(item);
  return `"${/["\\]/.test(item) ? item.replace(/["\\]/g, '\\$&') : item}"`;
}

function field(value: CopyValue): string {
  if (value === null || value === undefined) return '\\N';
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return escapeText(value);
  if (Buffer.isBuffer(value)) return `\\\\x${value.toString('hex')}`;
  if (value instanceof Date) return value.toISOString();
  return escapeText(arrayLiteral(value));
}

/** One line of COPY's text format (PostgreSQL manual, COPY, "Text Format"), with its newline. */
export function copyLine(values: readonly CopyValue[]): string {
  let line = '';
  let separator = '';
  for (const value of values) {
    line += separator + field(value);
    separator = '\t';
  }
  return `${line}\n`;
}
