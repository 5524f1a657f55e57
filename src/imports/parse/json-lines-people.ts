import { type JsonObject, parseObject } from '../../text/json-object.js';
import { FIELDS, type FileKind, type ReadLimits, type ReadRow, type RowCells } from './row/import-row.js';
import { type Rejection, rejection } from './row/rejection.js';
import { candidateOf, personKind, rowOf, UNKNOWN_KIND, validatePerson } from './row/validate-person.js';
import type { JsonRecord } from './text/json-cutter.js';

/** Finds the fault in the shape of a record: unknown fields, wrong types, cells that are too large. */
function shapeFault(record: JsonObject, kind: FileKind, limit: number): Rejection | undefined {
  const unknown = kind === 'both' ? [] : kind === 'providers' ? ['kind', 'providers'] : ['kind'];
  const known: string[] = FIELDS.filter((field) => !unknown.includes(field));
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
    if (texts.some((text) => String(text).length > limit)) return rejection('cell-too-large', { field, limit });
  }
  return undefined;
}

/** The value as a cell of a CSV file would contain it. Of a number, parsing may have lost digits. */
function asCell(value: unknown): string {
  if (Array.isArray(value)) return value.map((item) => (Array.isArray(item) ? '' : asCell(item))).join('|');
  return typeof value === 'string' || Number.isSafeInteger(value) ? String(value) : '';
}

/** The row of one record of JSON lines; null stands for an absent field. */
export function jsonPersonRow({ line, text }: JsonRecord, fileKind: FileKind, limits: ReadLimits): ReadRow {
  if (text === undefined) return rowOf(line, rejection('row-too-large', { limit: limits.row }));
  const record = parseObject(text);
  if (!record) return rowOf(line, rejection('bad-json'));
  const written = FIELDS.map((field) => [field, asCell(record[field])] as const).filter(([, cell]) => cell !== '');
  const cells: RowCells = Object.fromEntries(written);
  const kind = personKind(fileKind, cells.kind);
  const known = { kind, externalId: cells.externalId, cells };
  const fault = shapeFault(record, fileKind, limits.cell);
  if (fault || !kind) return rowOf(line, fault ?? UNKNOWN_KIND, known);
  const providers = Array.isArray(record.providers) ? (record.providers as string[]) : undefined;
  return rowOf(line, validatePerson(candidateOf(cells, kind, providers)), known);
}
