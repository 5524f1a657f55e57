import type { PersonKind } from '../../people/model/person.js';
import { CSV_COLUMNS, type ReadRow, rawRow } from './row/import-row.js';
import { type Rejection, rejection } from './row/rejection.js';
import { isImportableId, type PersonCandidate, validatePerson } from './row/validate-person.js';
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

/** A null is an absent field: `validatePerson` says which may be. */
function candidateOf(record: JsonObject, kind: PersonKind): PersonCandidate {
  const given = Object.entries(record).filter(([, value]) => value !== null);
  return { ...Object.fromEntries(given), kind };
}

/** The row of a record `{externalId, email, firstName, lastName, providers}`. */
export function jsonPersonRow(
  { line, text }: JsonRecord,
  kind: PersonKind,
  limits: { row: number; cell: number },
): ReadRow {
  const record = parseObject(text ?? '');
  if (text === undefined || !record) {
    const why = text === undefined ? rejection('row-too-large', { limit: limits.row }) : rejection('bad-json');
    return { type: 'row', ok: false, line, span: 1, raw: rawRow(text ?? ''), ...why };
  }
  const raw = rawRow(cellsOf(text, record));
  const fault = shapeFault(record, kind, limits.cell);
  const validated = fault ? { rejection: fault } : validatePerson(candidateOf(record, kind));
  if ('person' in validated) return { type: 'row', line, span: 1, raw, ok: true, person: validated.person };
  const { externalId } = record;
  const known = isImportableId(externalId) && { externalId };
  return { type: 'row', line, span: 1, raw, ok: false, ...known, ...validated.rejection };
}
