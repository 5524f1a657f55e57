import { csvLine } from '../../text/csv-line.js';
import { REJECTED_COLUMNS } from '../parse/csv/columns.js';
import { FIELDS, type RowCells } from '../parse/row/import-row.js';

/** A byte-order mark, because without it Excel reads UTF-8 as the local code page. */
const BYTE_ORDER_MARK = '\ufeff';

/** A rejected row with its texts, as far as they are stored, and the reason. */
export interface RejectedRow {
  cells: RowCells;
  file: string;
  line: number;
  code: string;
  hint: string;
}

/**
 * The rejected rows as CSV, safe to open in a spreadsheet (RFC 4180, UTF-8, CRLF). Once corrected, with its `code` cells
 * cleared, it can be imported as it is.
 *
 * @param pages of rows; each is one piece of the text
 */
export async function* rejectedCsv(pages: AsyncIterable<RejectedRow[]>): AsyncGenerator<string> {
  yield BYTE_ORDER_MARK + csvLine(REJECTED_COLUMNS);
  for await (const page of pages) yield page.map(line).join('');
}

function line({ cells, file, line: at, code, hint }: RejectedRow): string {
  return csvLine([...FIELDS.map((field) => cells[field] ?? ''), file, String(at), code, hint]);
}
