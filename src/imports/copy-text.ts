/** A value of PostgreSQL's COPY text format. */
export type CopyValue = string | number | Buffer | Date | readonly string[] | null | undefined;

const SPECIAL = /[\\\t\n\r\0]/g;
/** PostgreSQL's text holds no NUL: where a file's unknown field is named with one, the sign for it stands. */
const ESCAPES: Record<string, string> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r', '\0': '\u2400' };

function escapeText(text: string): string {
  return text.replace(SPECIAL, (character) => ESCAPES[character] ?? character);
}

/** The text form of a PostgreSQL array of texts. */
export function arrayLiteral(items: readonly string[]): string {
  return `{${items.map((item) => `"${item.replace(/["\\]/g, '\\$&')}"`).join(',')}}`;
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
  return `${values.map(field).join('\t')}\n`;
}
