import { PiledText } from '../text/text-lines.js';
import { LINE_COST, WorkMeter } from '../text/work-meter.js';

/** How a CSV file is written; both are single characters. */
export interface CsvDialect {
  delimiter: string;
  /** `\n` (also for CRLF), or `\r` for files of old Macs. */
  newline: '\n' | '\r';
}

/** One record: its first physical line, how many it covers, and its cells as they are, unquoted but not trimmed. */
export interface CsvRecord {
  line: number;
  span: number;
  cells: string[];
}

/** A physical line that begins no readable record. `text` is empty where the line is too long to keep. */
export interface BrokenLine {
  line: number;
  span: 1;
  broken: 'bad-quote' | 'row-too-large' | 'cell-count';
  text: string;
}

/** Cells of one record: more would be a list of texts that no header names. */
export const CELLS_MAX = 4096;

/** A record that was read; `end` and `next` stand behind its last character and behind its line end. */
interface Extent {
  cells: string[];
  end: number;
  next: number;
  span: number;
}

/** Why a record was not read, and up to where it was looked at. */
interface Failure {
  why: 'incomplete' | 'bad-quote' | 'cell-count';
  seen: number;
}

/**
 * Cuts CSV text (RFC 4180) into records as it comes, in memory bounded by the row limit. Tolerated: blanks around
 * quotes, quotes inside a cell that does not begin with one.
 *
 * A record that cannot be read (its quote is never closed, something follows its closing quote, it is longer than the
 * limit) costs its first physical line only: one stray quote never swallows the rest of a file. What comes out does not
 * depend on how the text was cut into pieces.
 *
 * Every character is looked at a few times at most: the lines that were looked at in vain are read each by itself, and
 * only from the line on which the fault showed may a record cover several lines again.
 *
 * This is not csv-parse, since that ends the parse at its `max_record_size`, and takes everything behind a stray quote
 * for one record. The tests hold that both agree on every well-formed file.
 */
export class CsvRecords {
  private readonly piled: PiledText;
  private line = 1;
  /** Inside a physical line that is too long: nothing of it is kept. */
  private skipping = false;
  /** Characters of the file before the text at hand. */
  private base = 0;
  /** Where in the file records may cover several lines again. */
  private singleUntil = 0;

  /** @param rowLimit characters of one record */
  constructor(
    private readonly dialect: CsvDialect,
    private readonly rowLimit: number,
    private readonly meter = new WorkMeter(),
  ) {
    this.piled = new PiledText(rowLimit);
  }

  /**
   * The records that are complete with this text.
   * @param last no more text will come: what remains is a record, too
   */
  *push(text: string, last = false): Generator<CsvRecord | BrokenLine> {
    const buffer = this.piled.add(text, last);
    if (buffer === undefined) return;
    let at = this.skipping ? this.skipLine(buffer) : 0;
    let quote = this.find(buffer, '"', at);
    while (at < buffer.length) {
      const found = this.find(buffer, this.dialect.newline, at);
      if (found < 0 && !last) break;
      const end = found < 0 ? buffer.length : found;
      if (quote >= 0 && quote < at) quote = this.find(buffer, '"', at);
      const record = this.read(buffer, at, end, quote >= 0 && quote < end, last);
      if (!record) break;
      yield record.is;
      at = record.next;
    }
    this.base += at;
    const rest = buffer.slice(at);
    if (!last && rest.length > this.rowLimit && this.find(rest, this.dialect.newline, 0) < 0) {
      this.base += rest.length;
      this.skipping = true;
      yield { line: this.line, span: 1, broken: 'row-too-large', text: '' };
    } else {
      this.piled.keep(rest);
    }
  }

  /** What begins on the physical line from `at` to `end`; undefined: more text is needed. */
  private read(
    buffer: string,
    at: number,
    end: number,
    quoted: boolean,
    last: boolean,
  ): { is: CsvRecord | BrokenLine; next: number } | undefined {
    const next = Math.min(end + 1, buffer.length);
    if (end - at > this.rowLimit) return { is: this.broken('row-too-large', ''), next };
    this.meter.spend(end - at + LINE_COST);
    if (!quoted) {
      const cells = withoutReturn(buffer, at, end).split(this.dialect.delimiter, CELLS_MAX + 1);
      if (cells.length > CELLS_MAX) return { is: this.broken('cell-count', withoutReturn(buffer, at, end)), next };
      return { is: { line: this.line++, span: 1, cells }, next };
    }
    const single = this.base + at < this.singleUntil;
    const limit = single ? end : Math.min(buffer.length, at + this.rowLimit);
    const extent = this.readQuoted(buffer, at, limit, single || last || limit < buffer.length);
    if ('cells' in extent) {
      const is = { line: this.line, span: extent.span, cells: extent.cells };
      this.line += extent.span;
      return { is, next: extent.next };
    }
    if (extent.why === 'incomplete' && !single && !last && limit === buffer.length) return undefined;
    // Up to the line on which the fault showed, or where nothing was found to end, lines stand by themselves.
    const fault = extent.why === 'incomplete' ? extent.seen : buffer.lastIndexOf(this.dialect.newline, extent.seen) + 1;
    this.meter.spend(extent.seen - fault);
    this.singleUntil = Math.max(this.singleUntil, this.base + fault);
    const why = extent.why === 'cell-count' && extent.seen <= end ? 'cell-count' : 'bad-quote';
    return { is: this.broken(why, withoutReturn(buffer, at, end)), next };
  }

  private broken(broken: BrokenLine['broken'], text: string): BrokenLine {
    return { line: this.line++, span: 1, broken, text };
  }

  /** Where the line after the one that is skipped begins. */
  private skipLine(buffer: string): number {
    const end = this.find(buffer, this.dialect.newline, 0);
    if (end < 0) return buffer.length;
    this.skipping = false;
    this.line++;
    return end + 1;
  }

  private find(text: string, what: string, from: number): number {
    const found = text.indexOf(what, from);
    this.meter.spend((found < 0 ? text.length : found) - from);
    return found;
  }

  /**
   * Reads one record that holds a quote.
   * @param limit where it ends at the latest
   * @param whole nothing behind `limit` can complete it
   */
  private readQuoted(text: string, from: number, limit: number, whole: boolean): Extent | Failure {
    const { delimiter, newline } = this.dialect;
    const cells: string[] = [];
    let span = 1;
    let at = from;
    for (;;) {
      if (cells.length === CELLS_MAX) return this.failure('cell-count', from, at);
      let stop = skipSpaces(text, at, limit);
      if (stop < limit && text[stop] === '"') {
        const close = closingQuote(text, stop + 1, limit);
        if (close < 0) return this.failure('incomplete', from, limit);
        const inside = text.slice(stop + 1, close);
        span += inside.split(newline).length - 1;
        cells.push(inside.replaceAll('""', '"'));
        stop = skipSpaces(text, close + 1, limit);
        if (stop < limit && text[stop] === '\r' && newline === '\n') stop++;
        if (stop < limit && text[stop] !== delimiter && text[stop] !== newline) {
          return this.failure('bad-quote', from, stop);
        }
      } else {
        stop = at;
        while (stop < limit && text[stop] !== delimiter && text[stop] !== newline) stop++;
        const cellEnds = stop < limit && text[stop] === delimiter;
        cells.push(cellEnds ? text.slice(at, stop) : withoutReturn(text, at, stop));
      }
      if (stop >= limit) {
        // Only the end of the file, or a line end right here, completes it.
        const ends = stop === text.length ? whole : text[stop] === newline;
        if (!ends) return this.failure('incomplete', from, limit);
        this.meter.spend(stop - from);
        return { cells, end: stop, next: Math.min(stop + 1, text.length), span };
      }
      at = stop + 1;
      if (text[stop] === newline) {
        this.meter.spend(at - from);
        return { cells, end: stop, next: at, span };
      }
    }
  }

  private failure(why: Failure['why'], from: number, seen: number): Failure {
    this.meter.spend(seen - from);
    return { why, seen };
  }
}

function withoutReturn(text: string, start: number, end: number): string {
  return text.slice(start, end > start && text[end - 1] === '\r' ? end - 1 : end);
}

function skipSpaces(text: string, from: number, limit: number): number {
  let at = from;
  while (at < limit && text[at] === ' ') at++;
  return at;
}

/** The quote that closes a cell, past doubled ones; -1 where there is none before the limit. */
function closingQuote(text: string, from: number, limit: number): number {
  for (let at = from; at < limit; at++) {
    if (text[at] !== '"') continue;
    if (text[at + 1] !== '"') return at;
    at++;
  }
  return -1;
}
