import { REJECTED_COLUMNS } from '../parse/csv/csv-header.js';
import { guardFormula } from '../parse/csv/formula-guard.js';
import { rowCheck } from '../parse/csv/row-check.js';
import { parseRaw } from '../parse/row/raw-row.js';

/** A rejected row as it was read (`raw`, see `read/raw-row.ts`), and why it was rejected. */
export interface RejectedLine {
  raw: string;
  line: number;
  code: string;
  hint: string;
  /** External ids for an empty `providers` cell: a FHIR client's, which other resources named. */
  providers?: readonly string[];
}

/** A byte-order mark: without it Excel takes UTF-8 for the local code page. */
const BYTE_ORDER_MARK = '\ufeff';

function quoted(cell: string): string {
  return /[",\r\n;\t]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

function csvLine(cells: readonly string[]): string {
  return `${cells.map((cell) => quoted(guardFormula(cell))).join(',')}\r\n`;
}

/**
 * The file's own cells at their full width, then the added ones. Cells beyond that width, and the text of a row that has
 * no cells, stand behind those: nothing is lost, and left there they are refused again.
 */
function linesCells({ raw, line, code, hint, providers = [] }: RejectedLine, columns: readonly string[]): string[] {
  const { cells, text } = parseRaw(raw);
  const own = columns.map((column, index) => {
    const cell = cells[index] ?? '';
    return cell === '' && column === 'providers' ? providers.join('|') : cell;
  });
  const beyond = text === '' ? cells.slice(columns.length) : [text];
  return [...own, String(line), code, hint, rowCheck([...own, ...beyond]), ...beyond];
}

/**
 * The file of rejected rows (RFC 4180, UTF-8 with a byte-order mark, CRLF): the original columns, then line, code, hint
 * and a check of the row. Cells that begin like formulas are guarded, so that it is safe to open in a spreadsheet;
 * corrected, it can be imported as it is, since the reader knows it by its last columns and takes the guards off again.
 * A row that comes back as it was is known by its check.
 * @param columns of the file that the rows come from (`ColumnsFact`)
 */
export async function* rejectedCsv(
  columns: readonly string[],
  rows: AsyncIterable<RejectedLine> | Iterable<RejectedLine>,
): AsyncGenerator<string> {
  yield BYTE_ORDER_MARK + csvLine([...columns, ...REJECTED_COLUMNS]);
  for await (const row of rows) yield csvLine(linesCells(row, columns));
}
