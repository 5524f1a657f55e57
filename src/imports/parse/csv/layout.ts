import type { ChosenColumns, FileKind } from '../row/import-row.js';
import { knownName, plainName } from './column-names.js';
import { withoutPadding } from './columns.js';
import { CELLS_MAX, type CsvDialect, CsvRecords } from './csv-records.js';

/** Maximum characters of a header, and of the beginning of a file that shows how it is written. */
export const HEADER_MAX = 64 * 1024;

const DELIMITERS = [',', ';', '\t', '|'];

/** Maximum lines above the header (titles, `sep=;`). */
const TITLES_MAX = 20;

/** Filled cells that a title may have, in any case and in proportion to the header's. */
const TITLE_CELLS = 2;
const TITLE_SHARE = 0.5;

const LINE_END = /\r\n?|\n/;

/** The newline after the first record, past line ends inside quotes. If its quote stays open, any line end counts. */
function newlineOf(text: string): CsvDialect['newline'] {
  const parts = text.split('"');
  const outside = parts.filter((_, at) => at % 2 === 0).join('"');
  const isOpen = parts.length % 2 === 0;
  const [end] = LINE_END.exec(outside) ?? LINE_END.exec(isOpen ? text : '') ?? [];
  return end === '\r' ? '\r' : '\n';
}

/** How many fields the names of some columns are known for, including the chosen columns. */
export function countKnown(header: readonly string[], kind: FileKind, columns: ChosenColumns = {}): number {
  const chosen = new Set(Object.values(columns).map(plainName));
  const known = new Set<string>();
  for (const name of header.map(plainName).filter((each) => each !== '')) {
    const field = chosen.has(name) ? name : knownName(name, kind)?.field;
    if (field !== undefined && field !== 'status') known.add(field);
  }
  return known.size;
}

/** A line that may be the header, of a file that is read with one delimiter. */
interface Candidate {
  delimiter: string;
  line: number;
  /** Known columns; 0 if they are too few for a header. */
  known: number;
  filled: number;
  cells: string[];
}

/** The line that is most likely the header: the first with two known columns, unless a person may be above it. */
function likelyHeader(lines: Iterable<Candidate>): Candidate | undefined {
  const above: Candidate[] = [];
  for (const candidate of lines) {
    if (candidate.known > 0) {
      // A line as long as the header may be a person, who must not be lost.
      return above.find(({ filled }) => filled > Math.max(TITLE_CELLS, TITLE_SHARE * candidate.filled)) ?? candidate;
    }
    if (above.push(candidate) > TITLES_MAX) break;
  }
  return above.find(({ filled }) => filled > TITLE_CELLS) ?? above[0];
}

/**
 * Detects, by the beginning of a CSV file, its dialect and the physical line on which its header begins.
 *
 * @param text `HEADER_MAX` characters, or the whole file
 */
export function detectLayout(text: string, kind: FileKind, columns?: ChosenColumns) {
  const beginning = text.slice(0, HEADER_MAX);
  const trimmed = beginning.trimStart();
  const newline = newlineOf(trimmed);
  function* candidates(delimiter: string): Generator<Candidate> {
    for (const record of new CsvRecords({ delimiter, newline }, HEADER_MAX).push(beginning, true)) {
      const cells = 'cells' in record ? record.cells : record.text.split(delimiter, CELLS_MAX);
      const filled = cells.filter((cell) => cell.trim() !== '').length;
      const known = 'cells' in record ? countKnown(cells, kind, columns) : 0;
      if (filled > 0) yield { delimiter, line: record.line, known: known < 2 ? 0 : known, filled, cells };
      if (!('cells' in record)) return;
    }
  }
  // Spreadsheets read and write this line to declare the delimiter.
  const [, declared] = /^"?sep=([^"\w\s]|\t)"?[ \t]*(?:[\r\n]|$)/i.exec(trimmed) ?? [];
  const [best] = (declared ? [declared] : DELIMITERS)
    .flatMap((delimiter) => likelyHeader(candidates(delimiter)) ?? [])
    .sort((a, b) => b.known - a.known || b.filled - a.filled || a.line - b.line);
  const dialect: CsvDialect = { delimiter: best?.delimiter ?? ',', newline };
  return { dialect, headerLine: best?.line ?? 1, header: withoutPadding(best?.cells ?? []) };
}
