/** One physical line without its line end; `text` is undefined where it is longer than the limit. */
export interface TextLine {
  line: number;
  text: string | undefined;
}

/** Cuts text into its lines as it comes; a line over the limit is skipped in constant memory. */
export class TextLines {
  private rest = '';
  private line = 1;
  private skipping = false;

  /** @param limit characters of one line */
  constructor(private readonly limit: number) {}

  /** @param last no more text will come: what remains is a line, too */
  *push(text: string, last = false): Generator<TextLine> {
    const buffer = this.rest + text;
    let at = 0;
    for (let end = buffer.indexOf('\n'); end >= 0; end = buffer.indexOf('\n', at)) {
      yield this.take(buffer, at, end);
      at = end + 1;
    }
    if (last && (at < buffer.length || this.skipping)) yield this.take(buffer, at, buffer.length);
    this.rest = last ? '' : buffer.slice(at);
    if (this.rest.length > this.limit) this.skipping = true;
    if (this.skipping) this.rest = '';
  }

  private take(buffer: string, from: number, to: number): TextLine {
    const fits = !this.skipping && to - from <= this.limit;
    this.skipping = false;
    return { line: this.line++, text: fits ? buffer.slice(from, to) : undefined };
  }
}

/** The lines of a whole stream. */
export async function* linesOf(source: AsyncIterable<string>, limit: number): AsyncGenerator<TextLine> {
  const lines = new TextLines(limit);
  for await (const text of source) yield* lines.push(text);
  yield* lines.push('', true);
}
