import type { PersonKind } from '../../people/model/person.js';
import { isPlaceholder, usableEmail } from './row/email-text.js';
import { FIELDS, type FileKind, type ReadRow, type RowCells } from './row/import-row.js';
import { type Rejection, rejection } from './row/rejection.js';
import { canonicalId, rowOf, validatePerson } from './row/validate-person.js';
import { type JsonObject, type JsonRecord, parseObject } from './text/json-records.js';

/** The fields that a record of a file may have. */
function fieldsOf(kind: FileKind): string[] {
  return FIELDS.filter((field) => {
    if (field === 'kind') return kind === 'both';
    return field !== 'providers' || kind !== 'providers';
  });
}

/** What is wrong with the shape of a record: unknown fields, wrong types, cells that are too large. */
function shapeFault(record: JsonObject, known: readonly string[], cellLimit: number): Rejection | undefined {
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

/** The value as a cell of a CSV file would contain it. */
function asCell(value: unknown): string {
  if (Array.isArray(value)) return value.map((item) => (typeof item === 'string' ? item : '')).join('|');
  return typeof value === 'string' ? value : '';
}

/** The cells of a record, with numbers as they are written, because parsing changes 12345678901234567890. */
function cellsOf(text: string, record: JsonObject): RowCells {
  const isNumber = (value: unknown): boolean =>
    typeof value === 'number' || (Array.isArray(value) && value.some((item) => typeof item === 'number'));
  const hasNumbers = FIELDS.some((field) => isNumber(record[field]));
  const written = hasNumbers ? (parseObject(withNumbersQuoted(text)) ?? record) : record;
  const cells = FIELDS.map((field) => [field, asCell(written[field])] as const);
  return Object.fromEntries(cells.filter(([, cell]) => cell !== ''));
}

/** @param json valid JSON */
function withNumbersQuoted(json: string): string {
  return json.replace(/"[^"\\]*(?:\\[\s\S][^"\\]*)*"?|-?\d[\d.eE+-]*/g, (token) =>
    token.startsWith('"') ? token : `"${token}"`,
  );
}

function kindOf(fileKind: FileKind, fields: JsonObject): PersonKind | undefined {
  if (fileKind !== 'both') return fileKind === 'providers' ? 'provider' : 'client';
  const { kind } = fields;
  return kind === 'provider' || kind === 'client' ? kind : undefined;
}

/** @param fields of a sound shape; null stands for an absent field */
function personOf(kind: PersonKind, fields: JsonObject) {
  const text = (field: string) => (typeof fields[field] === 'string' ? fields[field] : '');
  const providers = Array.isArray(fields.providers) ? (fields.providers as string[]) : undefined;
  const platformUserId = text('platformUserId');
  return validatePerson({
    ...{ kind, externalId: canonicalId(text('externalId')), firstName: text('firstName'), lastName: text('lastName') },
    email: usableEmail(text('email')),
    ...(providers && { providers: providers.filter((id) => !isPlaceholder(id)).map(canonicalId) }),
    platformUserId: isPlaceholder(platformUserId) ? '' : platformUserId,
  });
}

/** The row of one record of JSON lines. */
export function jsonPersonRow(
  { line, text }: JsonRecord,
  fileKind: FileKind,
  limits: { row: number; cell: number },
): ReadRow {
  if (text === undefined) return rowOf(line, rejection('row-too-large', { limit: limits.row }));
  const fields = parseObject(text);
  if (!fields) return rowOf(line, rejection('bad-json'));
  const kind = kindOf(fileKind, fields);
  const outcome =
    shapeFault(fields, fieldsOf(fileKind), limits.cell) ??
    (kind ? personOf(kind, fields) : rejection('wrong-type', { field: 'kind', expected: 'provider or client' }));
  const externalId = typeof fields.externalId === 'string' ? canonicalId(fields.externalId) : undefined;
  return rowOf(line, outcome, 'code' in outcome ? { kind, externalId, cells: cellsOf(text, fields) } : {});
}
