import type { PersonKind } from '../../people/model/person.js';
import {
  CSV_COLUMNS,
  type FileSummary,
  type ReadEvent,
  type ReadLimits,
  type ReadRow,
  rawCells,
  rawText,
} from './row/import-row.js';
import { type JsonObject, parseObject } from './row/json-object.js';
import { type Rejection, rejection } from './row/rejection.js';
import { isImportableId, type PersonCandidate, validatePerson } from './row/validate-person.js';
import { linesOf } from './text/text-lines.js';
import type { WorkMeter } from './text/work-meter.js';

const TEXT_FIELDS = ['externalId', 'email', 'firstName', 'lastName'] as const;

/** A record is no longer than so many of the largest cells: reading one blocks the event loop briefly. */
const CELLS_IN_RECORD = 4;

function isTextList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

/** What is wrong with the shape of a record: unknown fields, wrong types, cells that are too large. */
function shapeFault(record: JsonObject, kind: PersonKind, cellLimit: number): Rejection | undefined {
  const known: readonly string[] = kind === 'client' ? CSV_COLUMNS : TEXT_FIELDS;
  for (const field in record) {
    const value = record[field];
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
  if (Array.isArray(value)) return value.map((item) => (typeof item === 'string' ? item : '')).join('|');
  return typeof value === 'string' ? value : '';
}

/** The cells of a record: numbers as they are written, since 12345678901234567890 is another one once it was parsed. */
function cellsOf(text: string, record: JsonObject): string[] {
  const hasNumbers = CSV_COLUMNS.some((column) => isOrHoldsNumber(record[column]));
  const written = hasNumbers ? (parseObject(withNumbersQuoted(text)) ?? record) : record;
  return CSV_COLUMNS.map((column) => asCell(written[column]));
}

function isOrHoldsNumber(value: unknown): boolean {
  return typeof value === 'number' || (Array.isArray(value) && value.some((item) => typeof item === 'number'));
}

const DIGITS = '0123456789';

/** @param json sound JSON */
function withNumbersQuoted(json: string): string {
  const parts: string[] = [];
  let copied = 0;
  for (let at = 0; at < json.length; at++) {
    const character = json[at] ?? '';
    if (character === '"') {
      for (at++; json[at] !== '"' && at < json.length; at++) if (json[at] === '\\') at++;
    } else if (character === '-' || DIGITS.includes(character)) {
      const from = at;
      while (`${DIGITS}.+-eE`.includes(json[at + 1] ?? ' ')) at++;
      parts.push(json.slice(copied, from), `"${json.slice(from, at + 1)}"`);
      copied = at + 1;
    }
  }
  return parts.join('') + json.slice(copied);
}

/** The person that a record of the right shape is. */
function candidateOf(record: JsonObject, kind: PersonKind): PersonCandidate {
  // A null is an absent field: validatePerson says which may be.
  const given = Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null));
  return { ...given, kind } as PersonCandidate;
}

function readRecord(text: string, record: JsonObject, kind: PersonKind, line: number, cellLimit: number): ReadRow {
  const raw = rawCells(cellsOf(text, record));
  const at = { type: 'row', line, span: 1, raw } as const;
  const fault = shapeFault(record, kind, cellLimit);
  const validated = fault ? { rejection: fault } : validatePerson(candidateOf(record, kind));
  if ('person' in validated) return { ...at, ok: true, person: validated.person };
  const externalId = isImportableId(record.externalId) ? { externalId: record.externalId } : {};
  return { ...at, ok: false, ...externalId, ...validated.rejection };
}

/** The rows of a file of JSON lines, one object `{externalId, email, firstName, lastName, providers}` on each. */
export async function* readJsonLinesPeople(
  source: AsyncIterable<string>,
  kind: PersonKind,
  limits: ReadLimits,
  meter: WorkMeter,
): AsyncGenerator<ReadEvent> {
  const account: FileSummary = { type: 'end', units: 0, header: 0, blank: 0, supporting: 0 };
  yield { type: 'columns', columns: [...CSV_COLUMNS] };
  const limit = Math.min(limits.row, CELLS_IN_RECORD * limits.cell);
  for await (const { line, text } of linesOf(source, limit, meter)) {
    account.units++;
    if (text?.trim() === '') {
      account.blank++;
      continue;
    }
    const record = text === undefined ? undefined : parseObject(text);
    if (text !== undefined && record) {
      yield readRecord(text, record, kind, line, limits.cell);
      continue;
    }
    const why = text === undefined ? rejection('row-too-large', { limit }) : rejection('bad-json');
    yield { type: 'row', ok: false, line, span: 1, raw: rawText(text ?? ''), ...why };
  }
  yield account;
}
