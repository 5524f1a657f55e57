import type { PersonKind } from '../../people/person.js';
import { CSV_COLUMNS, type EndFact, type ReadEvent, type ReadLimits, type ReadRow } from './import-row.js';
import { type JsonObject, parseObject } from './json-object.js';
import { rawCells, rawText } from './raw-row.js';
import { type Rejection, rejection } from './rejection.js';
import { linesOf } from './text-lines.js';
import { isImportableId, type PersonCandidate, validatePerson } from './validate-person.js';

const TEXT_FIELDS = ['externalId', 'email', 'firstName', 'lastName'] as const;

function isTextList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

/** What is wrong with the shape of a record: unknown fields, wrong types, cells that are too large. */
function shapeFault(record: JsonObject, kind: PersonKind, cellLimit: number): Rejection | undefined {
  const known: readonly string[] = kind === 'client' ? CSV_COLUMNS : TEXT_FIELDS;
  for (const [field, value] of Object.entries(record)) {
    if (!known.includes(field)) {
      const name = /^[A-Za-z][A-Za-z0-9_-]{0,40}$/.test(field) ? field : '';
      return rejection('unknown-field', { field: name, expected: known.join(', ') });
    }
    if (value === null) continue;
    const list = field === 'providers';
    if (list ? !isTextList(value) : typeof value !== 'string') {
      return rejection('wrong-type', { field, expected: list ? 'a list of texts' : 'a text, in quotes' });
    }
    const texts = list ? (value as string[]) : [value as string];
    if (texts.some((text) => text.length > cellLimit)) return rejection('cell-too-large', { field, limit: cellLimit });
  }
  return undefined;
}

/** The value as the cell of a CSV file would hold it. */
function asCell(value: unknown): string {
  if (isTextList(value)) return value.join('|');
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

function readRecord(record: JsonObject, kind: PersonKind, line: number, cellLimit: number): ReadRow {
  const raw = rawCells(CSV_COLUMNS.map((column) => asCell(record[column])));
  const at = { type: 'row', line, span: 1, raw } as const;
  const fault = shapeFault(record, kind, cellLimit);
  // A null is an absent field: validatePerson says which may be.
  const given = Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null));
  const candidate = { providers: [], ...given, kind } as PersonCandidate;
  const validated = fault ? { rejection: fault } : validatePerson(candidate);
  if ('person' in validated) return { ...at, ok: true, person: validated.person };
  const externalId = isImportableId(record.externalId) ? { externalId: record.externalId } : {};
  return { ...at, ok: false, ...externalId, ...validated.rejection };
}

/** The rows of a file of JSON lines, one object `{externalId, email, firstName, lastName, providers}` on each. */
export async function* readJsonLinesPeople(
  source: AsyncIterable<string>,
  kind: PersonKind,
  limits: ReadLimits,
): AsyncGenerator<ReadEvent> {
  const account: EndFact = { type: 'end', units: 0, header: 0, blank: 0, supporting: 0 };
  yield { type: 'columns', columns: [...CSV_COLUMNS] };
  for await (const { line, text } of linesOf(source, limits.row)) {
    account.units++;
    if (text?.trim() === '') {
      account.blank++;
      continue;
    }
    const record = text === undefined ? undefined : parseObject(text);
    if (record) {
      yield readRecord(record, kind, line, limits.cell);
      continue;
    }
    const why = text === undefined ? rejection('row-too-large', { limit: limits.row }) : rejection('bad-json');
    yield { type: 'row', ok: false, line, span: 1, raw: rawText(text ?? ''), ...why };
  }
  yield account;
}
