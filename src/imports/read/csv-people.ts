import type { PersonKind } from '../../people/person.js';
import { type Column, type CsvHeader, detectDialect, REJECTED_COLUMNS, readHeader } from './csv-header.js';
import { type BrokenLine, type CsvRecord, CsvRecords } from './csv-records.js';
import { unguardFormula } from './formula-guard.js';
import type { EndFact, ImportKind, ReadEvent, ReadLimits, ReadRow } from './import-row.js';
import { rawCells, rawText } from './raw-row.js';
import { type Rejection, rejection } from './rejection.js';
import { UnreadableFile } from './unreadable-file.js';
import { isImportableId, type Validated, validatePerson } from './validate-person.js';

const EMPTY = 'The file is empty: it must begin with a header line.';

function isBlank(cells: readonly string[]): boolean {
  return cells.every((cell) => cell.trim() === '');
}

/** The file's own cells: without what the project added to a rejected row, and as they were before it was written. */
function ownCells(cells: string[], header: CsvHeader): string[] {
  if (!header.rejectedFile) return cells;
  const width = header.names.length;
  return [...cells.slice(0, width), ...cells.slice(width + REJECTED_COLUMNS.length)].map(unguardFormula);
}

/** Turns the records of one CSV file into rows. */
class CsvRows {
  constructor(
    private readonly header: CsvHeader,
    private readonly kind: ImportKind,
    private readonly limits: ReadLimits,
  ) {}

  row(record: CsvRecord, cells: string[]): ReadRow {
    const { line, span } = record;
    const raw = rawCells(cells);
    const misfit = this.misfit(cells, record.cells.length);
    const validated = misfit ? { rejection: misfit } : this.validate(cells);
    if ('person' in validated) return { type: 'row', line, span, raw, ok: true, person: validated.person };
    const externalId = this.cell(cells, 'externalId');
    // Where the cells don't fit the header, whatever stands under externalId may be another column's.
    const known = misfit?.code !== 'cell-count' && isImportableId(externalId) ? { externalId } : {};
    return { type: 'row', line, span, raw, ok: false, ...known, ...validated.rejection };
  }

  private validate(cells: readonly string[]): Validated {
    const kind = this.personKind(cells);
    if (!kind) return { rejection: rejection('wrong-type', { field: 'kind', expected: 'provider or client' }) };
    return validatePerson({
      kind,
      externalId: this.cell(cells, 'externalId'),
      email: this.cell(cells, 'email'),
      firstName: this.cell(cells, 'firstName'),
      lastName: this.cell(cells, 'lastName'),
      providers: kind === 'client' ? this.providers(cells) : undefined,
    });
  }

  private cell(cells: readonly string[], column: Column): string {
    const index = this.header.at[column];
    return index === undefined ? '' : (cells[index] ?? '').trim();
  }

  private providers(cells: readonly string[]): string[] {
    const cell = this.cell(cells, 'providers');
    if (cell === '') return [];
    return cell
      .split('|')
      .map((id) => id.trim())
      .filter((id) => id !== '');
  }

  private personKind(cells: readonly string[]): PersonKind | undefined {
    if (this.kind !== 'fhir') return this.kind === 'providers' ? 'provider' : 'client';
    const kind = this.cell(cells, 'kind').toLowerCase();
    return kind === 'provider' || kind === 'client' ? kind : undefined;
  }

  /** A row of another shape than the header's, or with a cell that is too large; surplus empty cells do no harm. */
  private misfit(cells: readonly string[], found: number): Rejection | undefined {
    const width = this.header.names.length;
    if (cells.length < width || (cells.length > width && !isBlank(cells.slice(width)))) {
      const added = this.header.rejectedFile ? REJECTED_COLUMNS.length : 0;
      return rejection('cell-count', { found, expected: String(width + added) });
    }
    const index = cells.findIndex((cell) => cell.length > this.limits.cell);
    if (index < 0) return undefined;
    const known = Object.entries(this.header.at).find(([, place]) => place === index);
    return rejection('cell-too-large', { field: known?.[0], limit: this.limits.cell });
  }
}

/** The same text, its first piece reaching beyond the end of the first line that is not blank. */
async function* fromFirstLine(source: AsyncIterable<string>, rowLimit: number): AsyncGenerator<string> {
  let beginning: string | undefined = '';
  for await (const piece of source) {
    if (beginning === undefined) {
      yield piece;
      continue;
    }
    beginning += piece;
    if (beginning.length <= rowLimit && !/[\r\n]./s.test(beginning.trimStart())) continue;
    yield beginning;
    beginning = undefined;
  }
  if (beginning) yield beginning;
}

/** One CSV file while it is read. */
class CsvFile {
  private readonly account: EndFact = { type: 'end', units: 0, header: 0, blank: 0, supporting: 0 };
  private readonly records: CsvRecords;
  private header: CsvHeader | undefined;
  private rows: CsvRows | undefined;

  /** @param beginning at least the first line that is not blank */
  constructor(
    beginning: string,
    private readonly kind: ImportKind,
    private readonly limits: ReadLimits,
  ) {
    this.records = new CsvRecords(detectDialect(beginning.trimStart(), kind), limits.row);
  }

  *push(text: string, last = false): Generator<ReadEvent> {
    for (const record of this.records.push(text, last)) {
      this.account.units += record.span;
      if ('broken' in record) yield this.broken(record);
      else if (isBlank(record.cells)) this.account.blank += record.span;
      else if (!this.rows || !this.header) yield this.begin(record);
      else yield this.rows.row(record, ownCells(record.cells, this.header));
    }
  }

  end(): EndFact {
    if (!this.header) throw new UnreadableFile('empty-file', 1, EMPTY);
    return this.account;
  }

  private begin({ cells, line, span }: CsvRecord): ReadEvent {
    this.header = readHeader(cells, this.kind, line);
    this.rows = new CsvRows(this.header, this.kind, this.limits);
    this.account.header = span;
    return { type: 'columns', columns: this.header.names, ignored: this.header.ignored };
  }

  private broken({ line, span, broken, text }: BrokenLine): ReadEvent {
    const why = rejection(broken, { limit: this.limits.row });
    if (!this.header) throw new UnreadableFile('bad-header', line, why.hint);
    return { type: 'row', ok: false, line, span, raw: rawText(text), ...why };
  }
}

/**
 * The rows of a CSV file; see `readPeople`.
 * @throws UnreadableFile when it has no header line that names the needed columns
 */
export async function* readCsvPeople(
  source: AsyncIterable<string>,
  kind: ImportKind,
  limits: ReadLimits,
): AsyncGenerator<ReadEvent> {
  let file: CsvFile | undefined;
  for await (const text of fromFirstLine(source, limits.row)) {
    file ??= new CsvFile(text, kind, limits);
    for (const event of file.push(text)) yield event;
  }
  if (!file) throw new UnreadableFile('empty-file', 1, EMPTY);
  for (const event of file.push('', true)) yield event;
  yield file.end();
}
