import type { CsvOptions, ReadEvent, StoredRecord } from '../row/import-row.js';
import { UnreadableFile } from '../row/rejection.js';
import { headerText, isBlank, withoutPadding } from './columns.js';
import { brokenLine, CsvRecords, type WorkMeter } from './csv-records.js';
import { CsvRows } from './csv-rows.js';
import { detectLayout, HEADER_MAX } from './layout.js';
import { ColumnMapper } from './mapping.js';

/** Maximum columns of a header. */
const COLUMNS_MAX = 1000;

/** Size of the first rows from which the mapping is judged: their characters, and two for each cell, even an empty one. */
const SAMPLE_SIZE = 64 * 1024;

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
    const { header, line, sample, options } = this;
    const cells = sample.flatMap((record) => ('cells' in record ? [record.cells] : []));
    this.meter.spend(this.sampleSize);
    const map = new ColumnMapper(header, line, cells, options).map();
    this.rows = map.mapping.question || options.isStored ? null : new CsvRows(header, map, options);
    yield { type: 'mapping', line, header, mapping: map.mapping };
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
  private records: CsvRecords | undefined;
  private headerLine = 1;
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
    this.beginning += text;
    if (!this.records && !last && this.beginning.length < HEADER_MAX) return;
    this.records ??= this.begin();
    for (const record of this.records.push(this.beginning, last)) {
      if (this.mapped) yield* this.mapped.push(record);
      else if (record.line >= this.headerLine && !('cells' in record && isBlank(record.cells))) {
        this.mapped = new MappedRecords(this.header(record), record.line, this.options, this.meter);
      }
    }
    this.beginning = '';
    if (!last) return;
    if (!this.mapped) throw new UnreadableFile('empty-file', 1, 'The file is empty. It must begin with a header.');
    yield* this.mapped.end();
  }

  private begin(): CsvRecords {
    const { kind, columns, limits } = this.options;
    const { dialect, headerLine } = detectLayout(this.beginning, kind, columns);
    this.meter.spend(Math.min(this.beginning.length, HEADER_MAX));
    this.headerLine = headerLine;
    return new CsvRecords(dialect, limits.row, this.meter);
  }

  /** The names of the columns, and the unnamed columns behind them, which may contain something. */
  private header(record: StoredRecord): string[] {
    const { line } = record;
    if (!('cells' in record)) {
      throw new UnreadableFile('bad-header', line, brokenLine(record, this.options.limits.row).hint);
    }
    const named = withoutPadding(record.cells);
    if (named.length > COLUMNS_MAX || named.join('').length > HEADER_MAX) {
      const hint = `The header has more than ${COLUMNS_MAX} columns or ${HEADER_MAX} characters. Send only the columns that are needed.`;
      throw new UnreadableFile('bad-header', line, hint);
    }
    return record.cells.slice(0, COLUMNS_MAX);
  }
}
