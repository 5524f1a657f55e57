import { ResourceScan } from './resource-scan.js';
import { LINE_COST, type WorkMeter } from './work-meter.js';

/**
 * Text that waits for more: it is given out again only once it has doubled, or has come to the most that is waited for.
 * So the text that is looked at in vain is no more than the text that came.
 */
export class PiledText {
  private pieces: string[] = [];
  private length = 0;
  private enough = 0;

  /** @param most characters that are waited for at most */
  constructor(private readonly most: number) {}

  /** @returns all the text at hand, undefined while it is worth waiting for more */
  add(text: string, last: boolean): string | undefined {
    if (text !== '') this.pieces.push(text);
    this.length += text.length;
    if (!last && this.length < this.enough) return undefined;
    const whole = this.pieces.join('');
    this.pieces = [];
    [this.length, this.enough] = [0, 0];
    return whole;
  }

  /** Puts back what is of use only with more behind it. */
  keep(rest: string): void {
    this.pieces = rest === '' ? [] : [rest];
    this.length = rest.length;
    this.enough = Math.min(2 * rest.length, this.most + 1);
  }
}

/** One physical line without its line end; `text` is undefined where it is longer than the limit. */
export interface TextLine {
  line: number;
  text: string | undefined;
  /** What is known of a line that is too long, as far as it is JSON. */
  scan?: ResourceScan;
}

/** Cuts text into its lines as it comes; a line over the limit is looked through in constant memory, and not kept. */
export class TextLines {
  private readonly piled: PiledText;
  private line = 1;
  private skipped: ResourceScan | undefined;

  /** @param limit characters of one line */
  constructor(
    private readonly limit: number,
    private readonly meter?: WorkMeter,
  ) {
    this.piled = new PiledText(limit);
  }

  /** @param last no more text will come: what remains is a line, too */
  *push(text: string, last = false): Generator<TextLine> {
    const buffer = this.piled.add(text, last);
    if (buffer === undefined) return;
    this.meter?.spend(buffer.length);
    let at = 0;
    for (let end = buffer.indexOf('\n'); end >= 0; end = buffer.indexOf('\n', at)) {
      yield this.take(buffer, at, end);
      at = end + 1;
    }
    if (last && (at < buffer.length || this.skipped)) {
      yield this.take(buffer, at, buffer.length);
      at = buffer.length;
    }
    const rest = buffer.slice(at);
    if (this.skipped || rest.length > this.limit) this.skip(rest);
    else this.piled.keep(rest);
  }

  private take(buffer: string, from: number, to: number): TextLine {
    const line = this.line++;
    this.meter?.spend(LINE_COST);
    if (!this.skipped && to - from <= this.limit) return { line, text: buffer.slice(from, to) };
    const scan = this.skip(buffer.slice(from, to));
    this.skipped = undefined;
    return { line, text: undefined, scan };
  }

  private skip(text: string): ResourceScan {
    this.skipped ??= new ResourceScan('resource');
    this.meter?.spend(text.length);
    this.skipped.push(text);
    return this.skipped;
  }
}

/** The lines of a whole stream. */
export async function* linesOf(
  source: AsyncIterable<string>,
  limit: number,
  meter?: WorkMeter,
): AsyncGenerator<TextLine> {
  const lines = new TextLines(limit, meter);
  for await (const text of source) yield* lines.push(text);
  yield* lines.push('', true);
}
