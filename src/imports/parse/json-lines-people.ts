import type { PersonKind } from '../../people/model/person.js';
import { CSV_COLUMNS, type ReadRow } from './row/import-row.js';
import { type Rejection, rejection } from './row/rejection.js';
import { rowOf, validatePerson } from './row/validate-person.js';
import { type JsonObject, type JsonRecord, parseObject } from './text/json-records.js';

/** What is wrong with the shape of a record: unknown fields, wrong types, cells that are too large. */
function shapeFault(record: JsonObject, kind: PersonKind, cellLimit: number): Rejection | undefined {
  const known: readonly string[] = kind === 'client' ? CSV_COLUMNS : CSV_COLUMNS.slice(0, -1);
  for (const [field, value] of Object.entries(record)) {
    if (!known.includes(field)) {
      const name = /^[A-Za-z][A-Za-z0-9_-]{0,40}$/.test(field) ? field : '';
      return rejection('unknown-field', { field: name, expected: known.join(', ') });
    }
    if (value === null) continue;
    const isList = field === 'providers';
    const texts: unknown[] = isList && Array.isArray(value) ? value : [value];
    if (Array.isArray(value) !== isList || texts.some((text) => typeof text !== 'string')) {
      return rejection('wrong-type', { field, expected: isList ? 'a list of texts' : 'a text, in quotes' });
    }
    const isTooLarge = texts.some((text) => String(text).length > cellLimit);
    if (isTooLarge) return rejection('cell-too-large', { field, limit: cellLimit });
  }
  return undefined;
}

/** The value as the cell of a CSV file would hold it. */
function asCell(value: unknown): string {
  if (Array.isArray(value)) return value.map((item) => (typeof item === 'string' ? item : '')).join('|');
  return typeof value === 'string' ? value : '';
}

/** The cells of a record: numbers as they are written, since 12345678901234567890 is another one once it was parsed. */
function cellsOf(text: string, record: JsonObject): string[] {
  const isNumber = (value: unknown): boolean =>
    typeof value === 'number' || (Array.isArray(value) && value.some((item) => typeof item === 'number'));
  const hasNumbers = CSV_COLUMNS.some((column) => isNumber(record[column]));
  const written = hasNumbers ? (parseObject(withNumbersQuoted(text)) ?? record) : record;
  return CSV_COLUMNS.map((column) => asCell(written[column]));
}

/** @param json sound JSON */
function withNumbersQuoted(json: string): string {
  return json.replace(/"[^"\\]*(?:\\[\s\S][^"\\]*)*"?|-?\d[\d.eE+-]*/g, (token) =>
    token.startsWith('"') ? token : `"${token}"`,
  );
}

/** The row of a record `{externalId, email, firstName, lastName, providers}`. */
export function jsonPersonRow(record: JsonRecord, kind: PersonKind, limits: { row: number; cell: number }): ReadRow {
  const { text } = record;
  if (text === undefined) return rowOf(record, '', rejection('row-too-large', { limit: limits.row }));
  const fields = parseObject(text);
  if (!fields) return rowOf(record, text, rejection('bad-json'));
  // A null is an absent field: `validatePerson` says which may be.
  const given = () => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
  const outcome = shapeFault(fields, kind, limits.cell) ?? validatePerson({ ...given(), kind });
  return rowOf(record, cellsOf(text, fields), outcome, { externalId: fields.externalId });
}
