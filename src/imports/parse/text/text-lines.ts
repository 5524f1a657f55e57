import { PiledText } from './piled-text.js';
import { ResourceScan } from './resource-scan.js';
import { LINE_COST, type WorkMeter } from './work-meter.js';

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
