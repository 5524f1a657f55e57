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

/**
 * Reads one CSV file of people as its text arrives: its mapping, then the rows that are complete with each text.
 *
 * @returns a function that takes the next text, and whether it is the last; it throws UnreadableFile if the file has no
 * header with the required columns
 */
export function csvReader(options: CsvOptions, meter: WorkMeter) {
  const { kind, columns, limits } = options;
  /** The beginning of the file, until there is enough of it to see how it is written. */
  let beginning = '';
  let records: CsvRecords | undefined;
  let headerLine = 1;
  let mapped: MappedRecords | undefined;
  return function* (text: string, last: boolean): Generator<ReadEvent> {
    beginning += text;
    if (!records) {
      if (!last && beginning.length < HEADER_MAX) return;
      const layout = detectLayout(beginning, kind, columns);
      meter.spend(Math.min(beginning.length, HEADER_MAX));
      headerLine = layout.headerLine;
      records = new CsvRecords(layout.dialect, limits.row, meter);
    }
    for (const record of records.push(beginning, last)) {
      if (mapped) yield* mapped.push(record);
      else if (record.line >= headerLine && !('cells' in record && isBlank(record.cells))) {
        mapped = new MappedRecords(headerOf(record, limits.row), record.line, options, meter);
      }
    }
    beginning = '';
    if (!last) return;
    if (!mapped) throw new UnreadableFile('empty-file', 1, 'The file is empty. It must begin with a header.');
    yield* mapped.end();
  };
}

/** The names of the columns, and the unnamed columns behind them, which may contain something. */
function headerOf(record: StoredRecord, limit: number): string[] {
  const { line } = record;
  if (!('cells' in record)) throw new UnreadableFile('bad-header', line, brokenLine(record, limit).hint);
  const named = withoutPadding(record.cells);
  if (named.length > COLUMNS_MAX || named.join('').length > HEADER_MAX) {
    const hint = `The header has more than ${COLUMNS_MAX} columns or ${HEADER_MAX} characters. Send only the columns that are needed.`;
    throw new UnreadableFile('bad-header', line, hint);
  }
  return record.cells.slice(0, COLUMNS_MAX);
}
