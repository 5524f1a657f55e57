import type { PersonKind } from '../../../people/model/person.js';
import {
  type FileSummary,
  type ImportKind,
  type ReadEvent,
  type ReadLimits,
  type ReadRow,
  rawCells,
  rawText,
} from '../row/import-row.js';
import { isStuckCode, type Rejection, rejection, unchangedRejection } from '../row/rejection.js';
import { isImportableId, type Validated, validatePerson } from '../row/validate-person.js';
import { UnreadableFile } from '../text/unreadable-file.js';
import type { WorkMeter } from '../text/work-meter.js';
import { COLUMNS_MAX, type Column } from './csv-columns.js';
import { type CsvHeader, readHeader } from './csv-header.js';
import { BEGINNING_MAX, type CsvLayout, detectLayout } from './csv-layout.js';
import { type BrokenLine, CELLS_MAX, type CsvRecord, CsvRecords } from './csv-records.js';
import { rowCheck, unguardFormula, withoutPadding } from './rejected-cells.js';

const EMPTY = 'The file is empty: it must begin with a header line.';

function isBlank(cells: readonly string[]): boolean {
  return cells.every((cell) => cell.trim() === '');
}

/** The file's own cells: without what the project added to a rejected row, and as they were before it was written. */
function ownCells(cells: string[], { names, added }: CsvHeader): string[] {
  if (added === 0) return cells;
  return withoutPadding([...cells.slice(0, names.length), ...cells.slice(names.length + added)].map(unguardFormula));
}

/** Turns the records of one CSV file into rows. */
class CsvRows {
  constructor(
    private readonly header: CsvHeader,
    private readonly kind: ImportKind,
    private readonly limits: ReadLimits,
  ) {}

  row(record: CsvRecord): ReadRow {
    const { line, span } = record;
    const cells = ownCells(record.cells, this.header);
    const raw = rawCells(cells);
    const misfit = this.misfit(cells, record.cells.length);
    const judged = misfit ? { rejection: misfit } : this.validate(cells);
    const validated = this.unchanged(record.cells, cells, judged) ?? judged;
    if ('person' in validated) return { type: 'row', line, span, raw, ok: true, person: validated.person };
    const externalId = this.cell(cells, 'externalId');
    // Where the cells don't fit the header, the value under externalId may be another column's.
    const shifted = misfit?.code === 'cell-count' || validated.rejection.code === 'cell-count';
    const known = !shifted && isImportableId(externalId) ? { externalId } : {};
    return { type: 'row', line, span, raw, ok: false, ...known, ...validated.rejection };
  }

  /** A rejected row that comes back as it was is rejected for the same reason, though its cells may not show that. */
  private unchanged(cells: readonly string[], own: readonly string[], judged: Validated) {
    const { names, added } = this.header;
    const [, code = '', , check = ''] = cells.slice(names.length, names.length + added).map((cell) => cell.trim());
    if (!isStuckCode(code) || check !== rowCheck(own)) return undefined;
    return 'rejection' in judged && judged.rejection.code === code
      ? undefined
      : { rejection: unchangedRejection(code) };
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

  /** Undefined: the file has no such column, and does not speak of providers. */
  private providers(cells: readonly string[]): string[] | undefined {
    if (this.header.at.providers === undefined) return undefined;
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
    const { names, least, added } = this.header;
    // Of a row that comes back, a spreadsheet may have dropped empty cells, which are told from missing ones by its check.
    const missing = added === 0 ? cells.length < least : found < names.length + added - 1;
    if (missing || !isBlank(cells.slice(names.length))) {
      return rejection('cell-count', { found, expected: String(least + added) });
    }
    const index = cells.findIndex((cell) => cell.length > this.limits.cell);
    if (index < 0) return undefined;
    const known = Object.entries(this.header.at).find(([, place]) => place === index);
    return rejection('cell-too-large', { field: known?.[0], limit: this.limits.cell });
  }
}

/** The same text, its first piece as long as what a file's beginning is judged by, as far as there is so much. */
async function* fromBeginning(source: AsyncIterable<string>): AsyncGenerator<string> {
  const pieces: string[] = [];
  let length = 0;
  for await (const piece of source) {
    if (length >= BEGINNING_MAX) {
      yield piece;
      continue;
    }
    pieces.push(piece);
    length += piece.length;
    if (length >= BEGINNING_MAX) yield pieces.join('');
  }
  if (length > 0 && length < BEGINNING_MAX) yield pieces.join('');
}

/** One CSV file while it is read. */
class CsvFile {
  private readonly account: FileSummary = { type: 'end', units: 0, header: 0, blank: 0, supporting: 0 };
  private readonly records: CsvRecords;
  private readonly layout: CsvLayout;
  private header: { first: string | undefined; cells: string; of: CsvHeader } | undefined;
  private rows: CsvRows | undefined;

  /** @param beginning `BEGINNING_MAX` characters, or the whole file */
  constructor(
    beginning: string,
    private readonly kind: ImportKind,
    private readonly limits: ReadLimits,
    meter: WorkMeter,
  ) {
    this.layout = detectLayout(beginning, kind);
    meter.spend(Math.min(beginning.length, BEGINNING_MAX));
    this.records = new CsvRecords(this.layout.dialect, limits.row, meter);
  }

  *push(text: string, last = false): Generator<ReadEvent> {
    for (const record of this.records.push(text, last)) {
      this.account.units += record.span;
      if (this.isHeading(record)) this.account.header += record.span;
      else if ('broken' in record) yield this.broken(record);
      else if (isBlank(record.cells)) this.account.blank += record.span;
      else if (!this.rows) yield this.begin(record);
      else yield this.rows.row(record);
    }
  }

  end(): FileSummary {
    if (!this.header) throw new UnreadableFile('empty-file', 1, EMPTY);
    return this.account;
  }

  /** A line above the header, or the header once more (files that were put together, pages of a report). */
  private isHeading(record: CsvRecord | BrokenLine): boolean {
    if (!this.header) return record.line < this.layout.headerLine && !('cells' in record && isBlank(record.cells));
    // Most rows differ in their first cell.
    if (!('cells' in record) || record.cells[0]?.trim() !== this.header.first) return false;
    return headerText(record.cells) === this.header.cells;
  }

  private begin({ cells, line, span }: CsvRecord): ReadEvent {
    const header = readHeader(cells, this.kind, line);
    this.header = { first: cells[0]?.trim(), cells: headerText(cells), of: header };
    this.rows = new CsvRows(header, this.kind, this.limits);
    this.account.header += span;
    return { type: 'columns', columns: header.names, ignored: header.ignored, areRejects: header.added > 0 };
  }

  private broken({ line, span, broken, text }: BrokenLine): ReadEvent {
    const { least = 0, added = 0 } = this.header?.of ?? {};
    const more = { limit: this.limits.row, found: CELLS_MAX + 1, expected: String(least + added) };
    const why = rejection(broken, more);
    if (!this.header) throw new UnreadableFile('bad-header', line, why.hint);
    return { type: 'row', ok: false, line, span, raw: rawText(text), ...why };
  }
}

/** A header in one text, the same however its line is padded. */
function headerText(cells: readonly string[]): string {
  return cells.length > 2 * COLUMNS_MAX ? '' : JSON.stringify(withoutPadding(cells).map((cell) => cell.trim()));
}

/**
 * The rows of a CSV file; see `readPeople`.
 * @throws UnreadableFile when it has no header line that names the needed columns
 */
export async function* readCsvPeople(
  source: AsyncIterable<string>,
  kind: ImportKind,
  limits: ReadLimits,
  meter: WorkMeter,
): AsyncGenerator<ReadEvent> {
  let file: CsvFile | undefined;
  for await (const text of fromBeginning(source)) {
    file ??= new CsvFile(text, kind, limits, meter);
    for (const event of file.push(text)) yield event;
  }
  if (!file) throw new UnreadableFile('empty-file', 1, EMPTY);
  for (const event of file.push('', true)) yield event;
  yield file.end();
}
