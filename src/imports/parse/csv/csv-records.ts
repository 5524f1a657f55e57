import { setImmediate } from 'node:timers/promises';
import type { BrokenLine, CsvRecord } from '../row/import-row.js';
import { type Rejection, rejection } from '../row/rejection.js';

/** The dialect of a CSV file; both are single characters. */
export interface CsvDialect {
  delimiter: string;
  /** `\n` (also for CRLF), or `\r` for files of old Macs. */
  newline: '\n' | '\r';
}

/** Cells of one record: more would be a list of texts that no header names. */
export const CELLS_MAX = 4096;

/** Cost of a line in addition to its characters, in characters, even if it is blank. */
const LINE_COST = 8;

type Fault = BrokenLine['broken'];

/** Work after which a reader yields to the event loop, in characters: a few milliseconds on a slow machine. */
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
 * limit) costs its first physical line only: one stray quote never swallows the rest of a file. The lines up to the
 * faulty one are then read individually, so that every character is read at most three times.
 *
 * This is not csv-parse, because that ends the parse at its `max_record_size`, and takes everything behind a stray quote
 * for one record. Tests check that both agree on every well-formed file.
 */
export class CsvRecords {
  /** The beginning of a physical line; undefined inside a line that is too long, which is not kept. */
  private rest: string | undefined = '';
  private line = 1;
  /** The lines of a record whose quote is still open. */
  private open: string[] = [];
  private openSize = 0;
  private parser: RecordParser;

  /** @param rowLimit characters of one record */
  constructor(
    private readonly dialect: CsvDialect,
    private readonly rowLimit: number,
    private readonly meter = new WorkMeter(),
  ) {
    this.parser = new RecordParser(dialect);
  }

  /**
   * The records that are complete with this text.
   * @param last true if no more text follows, so that the rest is a record, too
   */
  *push(text: string, last = false): Generator<CsvRecord | BrokenLine> {
    const { newline } = this.dialect;
    let at = 0;
    for (let end = text.indexOf(newline); end >= 0; end = text.indexOf(newline, at)) {
      this.keep(text.slice(at, end));
      yield* this.endLine();
      at = end + 1;
    }
    this.keep(text.slice(at));
    if (last && this.rest !== '') yield* this.endLine();
    if (last) yield* this.giveUp('bad-quote');
  }

  private keep(part: string): void {
    this.meter.spend(part.length);
    const isTooLong = this.rest === undefined || this.rest.length + part.length > this.rowLimit;
    this.rest = isTooLong ? undefined : this.rest + part;
  }

  private *endLine(): Generator<CsvRecord | BrokenLine> {
    const { rest } = this;
    this.rest = '';
    if (rest !== undefined) return yield* this.read(rest);
    yield* this.giveUp('bad-quote');
    yield this.broken('row-too-large', '');
  }

  /** Reads a physical line, which continues the open record if there is one. */
  private *read(text: string): Generator<CsvRecord | BrokenLine> {
    if (this.open.length === 0 && !text.includes('"')) return yield this.single(text);
    this.open.push(text);
    this.openSize += text.length + 1;
    this.meter.spend(text.length + LINE_COST);
    const outcome = this.openSize > this.rowLimit + 1 ? 'bad-quote' : this.parser.read(text);
    if (outcome === 'open') return;
    if (outcome !== 'complete') {
      // The line on which the fault showed may begin a record of several lines.
      const next = this.open.length > 1 ? this.open.pop() : undefined;
      yield* this.giveUp(next === undefined ? outcome : 'bad-quote');
      if (next !== undefined) yield* this.read(next);
      return;
    }
    const span = this.open.length;
    yield { line: this.line, span, cells: this.parser.cells };
    this.line += span;
    this.close();
  }

  /** Ends the open record: its first line is broken, and the others are read individually. */
  private *giveUp(fault: Fault): Generator<CsvRecord | BrokenLine> {
    const [first, ...others] = this.open;
    this.close();
    if (first !== undefined) yield this.broken(fault, first);
    for (const text of others) yield this.single(text);
  }

  private close(): void {
    this.open = [];
    this.openSize = 0;
    this.parser = new RecordParser(this.dialect);
  }

  /** The record on one line. */
  private single(text: string): CsvRecord | BrokenLine {
    this.meter.spend(text.length + LINE_COST);
    const parser = new RecordParser(this.dialect);
    const outcome = parser.read(text);
    if (outcome !== 'complete') return this.broken(outcome === 'open' ? 'bad-quote' : outcome, text);
    return { line: this.line++, span: 1, cells: parser.cells };
  }

  private broken(broken: Fault, text: string): BrokenLine {
    return { line: this.line++, span: 1, broken, text: withoutReturn(text) };
  }
}

/** The rejection of a line that is not a record. */
export function brokenLine({ broken }: BrokenLine, limit: number, cells = 0): Rejection {
  return rejection(broken, { limit, found: CELLS_MAX + 1, expected: String(cells) });
}

/** Reads one record line by line. */
class RecordParser {
  cells: string[] = [];
  /** The text of the quoted cell that is open, as it is written. */
  private inside: string | undefined;

  constructor(private readonly dialect: CsvDialect) {}

  /** @returns `open` if a cell continues on the next line */
  read(text: string): 'complete' | 'open' | 'bad-quote' | 'cell-count' {
    const { delimiter, newline } = this.dialect;
    if (this.inside === undefined && !text.includes('"')) {
      this.cells = withoutReturn(text).split(delimiter, CELLS_MAX + 1);
      return this.cells.length > CELLS_MAX ? 'cell-count' : 'complete';
    }
    for (let at = 0; ; at++) {
      if (this.inside === undefined) {
        if (this.cells.length === CELLS_MAX) return 'cell-count';
        const start = skipSpaces(text, at);
        if (text[start] !== '"') {
          const end = text.indexOf(delimiter, at);
          this.cells.push(end < 0 ? withoutReturn(text.slice(at)) : text.slice(at, end));
          if (end < 0) return 'complete';
          at = end;
          continue;
        }
        this.inside = '';
        at = start + 1;
      }
      const close = closingQuote(text, at);
      if (close < 0) {
        this.inside += text.slice(at) + newline;
        return 'open';
      }
      this.cells.push((this.inside + text.slice(at, close)).replaceAll('""', '"'));
      this.inside = undefined;
      at = skipSpaces(text, close + 1);
      if (at >= withoutReturn(text).length) return 'complete';
      if (text[at] !== delimiter) return 'bad-quote';
    }
  }
}

function withoutReturn(text: string): string {
  return text.endsWith('\r') ? text.slice(0, -1) : text;
}

function skipSpaces(text: string, from: number): number {
  let at = from;
  while (text[at] === ' ') at++;
  return at;
}

/** The quote that closes a cell, past doubled ones; -1 if the line has none. */
function closingQuote(text: string, from: number): number {
  let at = text.indexOf('"', from);
  while (at >= 0 && text[at + 1] === '"') at = text.indexOf('"', at + 2);
  return at;
}
