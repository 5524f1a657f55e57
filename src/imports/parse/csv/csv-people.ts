import type { ReadEvent, StoredRecord } from '../row/import-row.js';
import { UnreadableFile } from '../row/rejection.js';
import { CsvRecords, type WorkMeter } from './csv-records.js';
import { brokenLine, type CsvOptions, CsvRows, isBlank } from './csv-rows.js';
import { detectLayout, HEADER_MAX } from './layout.js';
import { mapColumns } from './mapping.js';
import { withoutPadding } from './rejected-cells.js';

/** Maximum columns of a header. */
export const COLUMNS_MAX = 1000;

/** Maximum unnamed columns at the end that may contain something. Spreadsheets pad lines with any number of them. */
const UNNAMED_MAX = 16;

/** Size of the first rows from which the mapping is judged: their characters, and two for each cell, even an empty one. */
const SAMPLE_SIZE = 64 * 1024;

/** A header in one text, regardless of padding. */
function headerText(cells: readonly string[]): string {
  return cells.length > 2 * COLUMNS_MAX ? '' : JSON.stringify(withoutPadding(cells).map((cell) => cell.trim()));
}

/** Turns the records below a header into the mapping and the rows; or into themselves if they must be stored. */
export class MappedRecords {
  private readonly headerText: string;
  private sample: StoredRecord[] = [];
  private sampleSize = 0;
  /** Undefined until the mapping is judged, and null if it has a question. */
  private rows: CsvRows | null | undefined;

  constructor(
    private readonly header: string[],
    private readonly line: number,
    private readonly options: CsvOptions,
    private readonly meter: WorkMeter,
  ) {
    this.headerText = headerText(header);
  }

  *push(record: StoredRecord): Generator<ReadEvent> {
    if ('cells' in record && (isBlank(record.cells) || this.isHeader(record.cells))) return;
    if (this.rows !== undefined) return yield* this.events(record);
    this.sample.push(record);
    const cells = 'cells' in record ? record.cells : [record.text];
    this.sampleSize += cells.reduce((size, cell) => size + cell.length, 2 * Math.max(cells.length, this.header.length));
    if (this.sampleSize >= SAMPLE_SIZE) yield* this.end();
  }

  /** Call it after the last record. */
  *end(): Generator<ReadEvent> {
    if (this.rows !== undefined) return;
    const { header, sample } = this;
    const cells = sample.flatMap((record) => ('cells' in record ? [record.cells] : []));
    this.meter.spend(this.sampleSize);
    const map = mapColumns(header, this.line, cells, this.options);
    this.rows = map.mapping.question || this.options.isStored ? null : new CsvRows(header, map, this.options);
    yield { type: 'mapping', line: this.line, header, mapping: map.mapping };
    this.sample = [];
    for (const record of sample) yield* this.events(record);
  }

  private *events(record: StoredRecord): Generator<ReadEvent> {
    if (this.rows) yield* this.rows.events(record);
    else yield { type: 'record', record };
  }

  /** True for the header again: in concatenated files, or on the pages of a report. */
  private isHeader(cells: readonly string[]): boolean {
    // Most rows differ in their first cell.
    return cells[0]?.trim() === this.header[0]?.trim() && headerText(cells) === this.headerText;
  }
}

/** Reads one CSV file of people as its text arrives. */
export class CsvPeople {
  /** The beginning of the file, until there is enough of it to see how it is written. */
  private beginning = '';
  private file: { records: CsvRecords; headerLine: number } | undefined;
  private mapped: MappedRecords | undefined;

  constructor(
    private readonly options: CsvOptions,
    private readonly meter: WorkMeter,
  ) {}

  /**
   * The mapping, then the rows that are complete with this text.
   *
   * @param last no more text will come
   * @throws UnreadableFile if the file has no header with the required columns
   */
  *push(text: string, last: boolean): Generator<ReadEvent> {
    if (this.file) return yield* this.read(this.file, text, last);
    this.beginning += text;
    if (!last && this.beginning.length < HEADER_MAX) return;
    const { dialect, headerLine } = detectLayout(this.beginning, this.options.kind, this.options.columns);
    this.meter.spend(Math.min(this.beginning.length, HEADER_MAX));
    this.file = { records: new CsvRecords(dialect, this.options.limits.row, this.meter), headerLine };
    yield* this.read(this.file, this.beginning, last);
    this.beginning = '';
  }

  private *read(
    { records, headerLine }: { records: CsvRecords; headerLine: number },
    text: string,
    last: boolean,
  ): Generator<ReadEvent> {
    for (const record of records.push(text, last)) {
      if (this.mapped) yield* this.mapped.push(record);
      else if (record.line >= headerLine && !('cells' in record && isBlank(record.cells))) this.begin(record);
    }
    if (!last) return;
    if (!this.mapped) throw new UnreadableFile('empty-file', 1, 'The file is empty. It must begin with a header.');
    yield* this.mapped.end();
  }

  private begin(record: StoredRecord): void {
    const { line } = record;
    if (!('cells' in record)) {
      throw new UnreadableFile('bad-header', line, brokenLine(record.broken, this.options.limits.row).hint);
    }
    const named = withoutPadding(record.cells);
    if (named.length > COLUMNS_MAX || named.reduce((sum, { length }) => sum + length, 0) > HEADER_MAX) {
      const hint = `The header has more than ${COLUMNS_MAX} columns or ${HEADER_MAX} characters. Send only the columns that are needed.`;
      throw new UnreadableFile('bad-header', line, hint);
    }
    const header = record.cells.slice(0, named.length + UNNAMED_MAX);
    this.mapped = new MappedRecords(header, line, this.options, this.meter);
  }
}
