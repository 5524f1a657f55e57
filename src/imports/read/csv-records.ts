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
  broken: 'bad-quote' | 'row-too-large';
  text: string;
}

interface Extent {
  cells: string[];
  /** Behind its last character, and behind its line end. */
  end: number;
  next: number;
  span: number;
}

/**
 * Cuts CSV text (RFC 4180) into records as it comes, in memory bounded by the row limit. Tolerated: blanks around
 * quotes, quotes inside a cell that does not begin with one.
 *
 * A record that cannot be read (its quote is never closed, something follows its closing quote, it is longer than the
 * limit) costs its first physical line only, and reading goes on with the next line: one stray quote never swallows
 * the rest of a file. What comes out does not depend on how the text was cut into pieces.
 *
 * This is not csv-parse, since that ends the parse at its `max_record_size`, and takes everything behind a stray quote
 * for one record. The tests hold that both agree on every well-formed file.
 */
export class CsvRecords {
  private rest = '';
  private line = 1;
  /** Inside a physical line that is too long: nothing of it is kept. */
  private skipping = false;

  /** @param rowLimit characters of one record */
  constructor(
    private readonly dialect: CsvDialect,
    private readonly rowLimit: number,
  ) {}

  /**
   * The records that are complete with this text.
   * @param last no more text will come: what remains is a record, too
   */
  *push(text: string, last = false): Generator<CsvRecord | BrokenLine> {
    const { newline, delimiter } = this.dialect;
    const buffer = this.rest + text;
    let at = this.skipping ? this.skipLine(buffer) : 0;
    let quote = buffer.indexOf('"', at);
    while (at < buffer.length) {
      const found = buffer.indexOf(newline, at);
      if (found < 0 && !last) break;
      const end = found < 0 ? buffer.length : found;
      const next = found < 0 ? end : end + 1;
      if (quote >= 0 && quote < at) quote = buffer.indexOf('"', at);
      if (end - at > this.rowLimit) {
        yield this.brokenLine('row-too-large', '');
        at = next;
      } else if (quote < 0 || quote >= end) {
        yield { line: this.line++, span: 1, cells: withoutReturn(buffer, at, end).split(delimiter) };
        at = next;
      } else {
        const extent = this.readQuoted(buffer, at, last);
        if (extent === 'open' && !last && buffer.length - at <= this.rowLimit) break;
        if (typeof extent === 'string' || extent.end - at > this.rowLimit) {
          yield this.brokenLine('bad-quote', withoutReturn(buffer, at, end));
          at = next;
        } else {
          yield { line: this.line, span: extent.span, cells: extent.cells };
          this.line += extent.span;
          at = extent.next;
        }
      }
    }
    this.rest = buffer.slice(at);
    if (!last && this.rest.length > this.rowLimit && !this.rest.includes(newline)) {
      this.rest = '';
      this.skipping = true;
      yield { line: this.line, span: 1, broken: 'row-too-large', text: '' };
    }
  }

  private brokenLine(broken: BrokenLine['broken'], text: string): BrokenLine {
    return { line: this.line++, span: 1, broken, text };
  }

  /** Where the line after the one that is skipped begins. */
  private skipLine(buffer: string): number {
    const end = buffer.indexOf(this.dialect.newline);
    if (end < 0) return buffer.length;
    this.skipping = false;
    this.line++;
    return end + 1;
  }

  /** Reads one record that holds a quote; `open`: it is not complete; `malformed`: it never will be. */
  private readQuoted(text: string, from: number, last: boolean): Extent | 'open' | 'malformed' {
    const { delimiter, newline } = this.dialect;
    const cells: string[] = [];
    let span = 1;
    let at = from;
    for (;;) {
      const start = skipSpaces(text, at);
      let stop: number;
      if (text[start] === '"') {
        const close = closingQuote(text, start + 1);
        if (close < 0) return 'open';
        const inside = text.slice(start + 1, close);
        span += inside.split(newline).length - 1;
        cells.push(inside.replaceAll('""', '"'));
        stop = skipSpaces(text, close + 1);
        if (text[stop] === '\r' && newline === '\n') stop++;
        if (stop < text.length && text[stop] !== delimiter && text[stop] !== newline) return 'malformed';
      } else {
        stop = at;
        while (stop < text.length && text[stop] !== delimiter && text[stop] !== newline) stop++;
        const cellEnds = text[stop] === delimiter;
        cells.push(cellEnds ? text.slice(at, stop) : withoutReturn(text, at, stop));
      }
      if (stop >= text.length) return last ? { cells, end: stop, next: stop, span } : 'open';
      at = stop + 1;
      if (text[stop] === newline) return { cells, end: stop, next: at, span };
    }
  }
}

function withoutReturn(text: string, start: number, end: number): string {
  return text.slice(start, end > start && text[end - 1] === '\r' ? end - 1 : end);
}

function skipSpaces(text: string, from: number): number {
  let at = from;
  while (text[at] === ' ') at++;
  return at;
}

/** The quote that closes a cell, past doubled ones; -1 where it has not come yet. */
function closingQuote(text: string, from: number): number {
  for (let at = text.indexOf('"', from); at >= 0; at = text.indexOf('"', at + 2)) {
    if (text[at + 1] !== '"') return at;
  }
  return -1;
}
