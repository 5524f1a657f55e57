import type { PersonKind } from '../../../people/model/person.js';
import type { ImportedPerson, ImportKind, ReadEvent, ReadRow } from '../row/import-row.js';
import { type Rejection, rejection, UnreadableFile, unchangedRejection } from '../row/rejection.js';
import { rowOf, validatePerson } from '../row/validate-person.js';
import { COLUMNS_MAX, type Column, type CsvHeader, detectLayout, HEADER_MAX, readHeader } from './csv-header.js';
import { type BrokenLine, CELLS_MAX, type CsvRecord, CsvRecords, type WorkMeter } from './csv-records.js';
import { rowCheck, unguardFormula, withoutPadding } from './rejected-cells.js';

const EMPTY = 'The file is empty: it must begin with a header line.';

function isBlank(cells: readonly string[]): boolean {
  return cells.every((cell) => cell.trim() === '');
}

/** A header in one text, the same however its line is padded. */
function headerText(cells: readonly string[]): string {
  return cells.length > 2 * COLUMNS_MAX ? '' : JSON.stringify(withoutPadding(cells).map((cell) => cell.trim()));
}

/** Turns the records of one CSV file into rows. */
class CsvRows {
  private readonly names: string;

  constructor(
    private readonly headerCells: readonly string[],
    readonly header: CsvHeader,
    private readonly kind: ImportKind,
    private readonly cellLimit: number,
  ) {
    this.names = headerText(headerCells);
  }

  /** Whether this is the header once more: files that were put together, pages of a report. */
  isHeader(cells: readonly string[]): boolean {
    // Most rows differ in their first cell.
    return cells[0]?.trim() === this.headerCells[0]?.trim() && headerText(cells) === this.names;
  }

  row({ line, span, cells }: CsvRecord): ReadRow {
    const { names, added } = this.header;
    // The file's own cells: without what the project added to a rejected row, and as they were before it was written.
    const own =
      added === 0
        ? cells
        : withoutPadding([...cells.slice(0, names.length), ...cells.slice(names.length + added)].map(unguardFormula));
    const judged = this.misfit(own, cells.length) ?? this.validate(own);
    const unchanged = this.unchanged(cells, own);
    const isSame = 'code' in judged && judged.code === unchanged?.code;
    const outcome = isSame ? judged : (unchanged ?? judged);
    // Where the cells don't fit the header, the value under externalId may be another column's.
    const isShifted = [judged, outcome].some((one) => 'code' in one && one.code === 'cell-count');
    return rowOf({ line, span }, own, outcome, isShifted ? undefined : { externalId: this.cell(own, 'externalId') });
  }

  /** A rejected row that comes back as it was is rejected for the same reason, though its cells may not show that. */
  private unchanged(cells: readonly string[], own: readonly string[]): Rejection | undefined {
    const { names, added } = this.header;
    if (added === 0) return undefined;
    const [, code = '', , check = ''] = cells.slice(names.length, names.length + added).map((cell) => cell.trim());
    return check === rowCheck(own) ? unchangedRejection(code) : undefined;
  }

  private validate(cells: readonly string[]): ImportedPerson | Rejection {
    const kind = this.personKind(cells);
    if (!kind) return rejection('wrong-type', { field: 'kind', expected: 'provider or client' });
    const providers = this.cell(cells, 'providers')?.split('|');
    return validatePerson({
      kind,
      externalId: this.cell(cells, 'externalId'),
      email: this.cell(cells, 'email'),
      firstName: this.cell(cells, 'firstName'),
      lastName: this.cell(cells, 'lastName'),
      providers: providers?.map((id) => id.trim()).filter((id) => id !== ''),
    });
  }

  /** Undefined: the file has no such column. */
  private cell(cells: readonly string[], column: Column): string | undefined {
    const index = this.header.at[column];
    return index === undefined ? undefined : (cells[index] ?? '').trim();
  }

  private personKind(cells: readonly string[]): PersonKind | undefined {
    if (this.kind !== 'fhir') return this.kind === 'providers' ? 'provider' : 'client';
    const kind = this.cell(cells, 'kind')?.toLowerCase();
    return kind === 'provider' || kind === 'client' ? kind : undefined;
  }

  /** A row of another shape than the header's, or with a cell that is too large; surplus empty cells do no harm. */
  private misfit(cells: readonly string[], found: number): Rejection | undefined {
    const { names, least, added, at } = this.header;
    // Of a row that comes back, a spreadsheet may have dropped empty cells, which are told from missing ones by its check.
    const isShort = added === 0 ? cells.length < least : found < names.length + added - 1;
    if (isShort || !isBlank(cells.slice(names.length))) {
      return rejection('cell-count', { found, expected: String(least + added) });
    }
    const index = cells.findIndex((cell) => cell.length > this.cellLimit);
    if (index < 0) return undefined;
    const [field] = Object.entries(at).find(([, place]) => place === index) ?? [];
    return rejection('cell-too-large', { field, limit: this.cellLimit });
  }
}

/** Reads one CSV file of people as its text comes. */
export class CsvPeople {
  /** The file's beginning, until there is enough of it to see how it is written. */
  private beginning = '';
  private file: { records: CsvRecords; headerLine: number } | undefined;
  private rows: CsvRows | undefined;

  constructor(
    private readonly kind: ImportKind,
    private readonly limits: { row: number; cell: number },
    private readonly meter: WorkMeter,
  ) {}

  /**
   * The file's columns, then its rows, as far as they are complete with this text.
   * @param last no more text will come
   * @throws UnreadableFile when the file has no header line that names the needed columns
   */
  *push(text: string, last: boolean): Generator<ReadEvent> {
    if (this.file) return yield* this.read(this.file, text, last);
    this.beginning += text;
    if (!last && this.beginning.length < HEADER_MAX) return;
    const { dialect, headerLine } = detectLayout(this.beginning, this.kind);
    this.meter.spend(Math.min(this.beginning.length, HEADER_MAX));
    this.file = { records: new CsvRecords(dialect, this.limits.row, this.meter), headerLine };
    yield* this.read(this.file, this.beginning, last);
    this.beginning = '';
  }

  private *read(
    { records, headerLine }: { records: CsvRecords; headerLine: number },
    text: string,
    last: boolean,
  ): Generator<ReadEvent> {
    for (const record of records.push(text, last)) {
      if ('cells' in record && isBlank(record.cells)) continue;
      if (this.rows) {
        if (!('cells' in record)) yield rowOf(record, record.text, this.brokenWhy(record));
        else if (!this.rows.isHeader(record.cells)) yield this.rows.row(record);
      } else if (record.line >= headerLine) {
        if (!('cells' in record)) throw new UnreadableFile('bad-header', record.line, this.brokenWhy(record).hint);
        const header = readHeader(record.cells, this.kind, record.line);
        this.rows = new CsvRows(record.cells, header, this.kind, this.limits.cell);
        yield { type: 'columns', columns: header.names, ignored: header.ignored, areRejects: header.added > 0 };
      }
    }
    if (last && !this.rows) throw new UnreadableFile('empty-file', 1, EMPTY);
  }

  private brokenWhy({ broken }: BrokenLine): Rejection {
    const { least = 0, added = 0 } = this.rows?.header ?? {};
    return rejection(broken, { limit: this.limits.row, found: CELLS_MAX + 1, expected: String(least + added) });
  }
}
