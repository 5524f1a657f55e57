import { setImmediate } from 'node:timers/promises';

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

/** What a line costs in addition to its characters, in characters, even if it is blank. */
const LINE_COST = 8;

/** Work after which the event loop is given to others, in characters: a few milliseconds on a slow machine. */
export const PAUSE_EVERY = 64 * 1024;

/** Counts what reading a file costs, in characters that were read, and yields to the event loop when it is due. */
export class WorkMeter {
  private stretch = 0;

  spend(characters: number): void {
    this.stretch += characters;
  }

  get isPauseDue(): boolean {
    return this.stretch >= PAUSE_EVERY;
  }

  async pause(): Promise<void> {
    this.stretch = 0;
    await setImmediate();
  }
}

/**
 * Cuts CSV text (RFC 4180) into records as it comes, in memory bounded by the row limit. Tolerated: blanks around
 * quotes, quotes inside a cell that does not begin with one.
 *
 * A record that cannot be read (its quote is never closed, something follows its closing quote, it is longer than the
 * limit) costs its first physical line only: one stray quote never swallows the rest of a file. What comes out does not
 * depend on how the text was cut into pieces.
 *
 * Every character is looked at a few times at most: text that waits for more is looked at again once it has doubled; the
 * lines that were read without success are read individually, and only from the line on which the fault showed may a
 * record cover several lines again.
 *
 * This is not csv-parse, since that ends the parse at its `max_record_size`, and takes everything behind a stray quote
 * for one record. The tests hold that both agree on every well-formed file.
 */
export class CsvRecords {
  private waiting = '';
  /** Characters with which the waiting text is worth another look. */
  private enough = 0;
  private line = 1;
  /** Inside a physical line that is too long, none of which is kept. */
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
  ) {}

  /**
   * The records that are complete with this text.
   * @param last no more text will come: what remains is a record, too
   */
  *push(text: string, last = false): Generator<CsvRecord | BrokenLine> {
    this.waiting += text;
    if (!last && this.waiting.length < this.enough) return;
    const buffer = this.waiting;
    let at = this.skipping ? this.skipLine(buffer) : 0;
    let quote = this.find(buffer, '"', at);
    while (at < buffer.length) {
      const found = this.find(buffer, this.dialect.newline, at);
      if (found < 0 && !last) break;
      const end = found < 0 ? buffer.length : found;
      if (quote >= 0 && quote < at) quote = this.find(buffer, '"', at);
      const read = this.read(buffer, at, end, quote >= 0 && quote < end, last);
      if (!read) break;
      yield read.record;
      at = read.next;
    }
    this.waiting = buffer.slice(at);
    if (!last && this.waiting.length > this.rowLimit && this.find(this.waiting, this.dialect.newline, 0) < 0) {
      at = buffer.length;
      this.waiting = '';
      this.skipping = true;
      yield { line: this.line, span: 1, broken: 'row-too-large', text: '' };
    }
    this.base += at;
    this.enough = Math.min(2 * this.waiting.length, this.rowLimit + 1);
  }

  /** What begins on the physical line from `at` to `end`; undefined: more text is needed. */
  private read(
    buffer: string,
    at: number,
    end: number,
    quoted: boolean,
    last: boolean,
  ): { record: CsvRecord | BrokenLine; next: number } | undefined {
    const { delimiter, newline } = this.dialect;
    const broken = (why: BrokenLine['broken'], text = withoutReturn(buffer, at, end)) => ({
      record: { line: this.line++, span: 1, broken: why, text } as const,
      next: Math.min(end + 1, buffer.length),
    });
    if (end - at > this.rowLimit) return broken('row-too-large', '');
    this.meter.spend(end - at + LINE_COST);
    if (!quoted) {
      const cells = withoutReturn(buffer, at, end).split(delimiter, CELLS_MAX + 1);
      if (cells.length > CELLS_MAX) return broken('cell-count');
      return { record: { line: this.line++, span: 1, cells }, next: Math.min(end + 1, buffer.length) };
    }
    const single = this.base + at < this.singleUntil;
    const limit = single ? end : Math.min(buffer.length, at + this.rowLimit);
    const extent = readQuoted(buffer, at, limit, single || last || limit < buffer.length, this.dialect);
    this.meter.spend(extent.seen - at);
    if ('cells' in extent) {
      const { cells, span, seen } = extent;
      this.line += span;
      return { record: { line: this.line - span, span, cells }, next: seen };
    }
    const { why, seen } = extent;
    if (why === 'incomplete' && !single && !last && limit === buffer.length) return undefined;
    // Up to the line on which the fault showed, or where nothing was found to end, lines are read individually.
    const fault = why === 'incomplete' ? seen : buffer.lastIndexOf(newline, seen) + 1;
    this.meter.spend(seen - fault);
    this.singleUntil = Math.max(this.singleUntil, this.base + fault);
    return broken(why === 'cell-count' && seen <= end ? why : 'bad-quote');
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
}

/** A record that was read, or why not, and up to where it was looked at: of a record, to behind its line end. */
type Extent =
  | { cells: string[]; span: number; seen: number }
  | { why: 'incomplete' | 'bad-quote' | 'cell-count'; seen: number };

/**
 * Reads one record that holds a quote.
 * @param limit where it ends at the latest
 * @param whole nothing behind `limit` can complete it
 */
function readQuoted(text: string, from: number, limit: number, whole: boolean, dialect: CsvDialect): Extent {
  const { delimiter, newline } = dialect;
  const cells: string[] = [];
  let span = 1;
  for (let at = from; ; ) {
    if (cells.length === CELLS_MAX) return { why: 'cell-count', seen: at };
    let stop = skipSpaces(text, at, limit);
    if (stop < limit && text[stop] === '"') {
      const close = closingQuote(text, stop + 1, limit);
      if (close < 0) return { why: 'incomplete', seen: limit };
      const inside = text.slice(stop + 1, close);
      span += inside.split(newline).length - 1;
      cells.push(inside.replaceAll('""', '"'));
      stop = skipSpaces(text, close + 1, limit);
      if (stop < limit && text[stop] === '\r' && newline === '\n') stop++;
      if (stop < limit && text[stop] !== delimiter && text[stop] !== newline) return { why: 'bad-quote', seen: stop };
    } else {
      stop = at;
      while (stop < limit && text[stop] !== delimiter && text[stop] !== newline) stop++;
      const cellEnds = stop < limit && text[stop] === delimiter;
      cells.push(cellEnds ? text.slice(at, stop) : withoutReturn(text, at, stop));
    }
    // At the limit only the end of the file, or a line end right here, completes it.
    if (stop >= limit && !(stop === text.length ? whole : text[stop] === newline)) {
      return { why: 'incomplete', seen: limit };
    }
    at = Math.min(stop + 1, text.length);
    if (stop >= limit || text[stop] === newline) return { cells, span, seen: at };
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
