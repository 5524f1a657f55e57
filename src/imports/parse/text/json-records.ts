import { UnreadableFile } from '../row/rejection.js';
import { JsonCutter, type JsonRecord } from './json-cutter.js';

/** Cuts text into its lines, one record on each, including blank lines. Cuts up Bundles, and lines over the limit. */
export class JsonLines {
  private kept = '';
  private cutter: JsonCutter | undefined;
  private line = 1;

  /** @param limit maximum characters of a record */
  constructor(private readonly limit: number) {}

  /** @param last True if no more text will come. */
  *push(text: string, last: boolean): Generator<JsonRecord> {
    let at = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', at)) {
      yield* this.add(text.slice(at, end));
      yield* this.take();
      at = end + 1;
    }
    yield* this.add(text.slice(at));
    if (last && (this.kept !== '' || this.cutter)) yield* this.take();
  }

  private *add(part: string): Generator<JsonRecord> {
    this.kept += part;
    if (this.cutter || this.kept.length > this.limit) yield* this.cut();
  }

  private *cut(): Generator<JsonRecord> {
    this.cutter ??= new JsonCutter(this.limit, this.line);
    yield* this.cutter.push(this.kept);
    this.kept = '';
  }

  private *take(): Generator<JsonRecord> {
    if (this.kept.includes('"entry"')) yield* this.cut();
    yield this.cutter?.take() ?? { line: this.line, text: this.kept };
    [this.kept, this.cutter] = ['', undefined];
    this.line++;
  }
}

/** Cuts a file that holds one FHIR Bundle into its entries, followed by the Bundle without them. */
export class BundleEntries {
  private readonly cutter: JsonCutter;

  /** @param limit maximum characters of an entry */
  constructor(limit: number) {
    this.cutter = new JsonCutter(limit);
  }

  /**
   * Returns the records that are complete with this text.
   * @param last True if no more text will come.
   * @throws UnreadableFile if the file is not one Bundle in JSON
   */
  *push(text: string, last: boolean): Generator<JsonRecord> {
    const { cutter } = this;
    yield* cutter.push(text);
    if (cutter.strayLine !== undefined) throw new UnreadableFile('bad-json', cutter.strayLine, STRAY_HINT);
    if (!last) return;
    if (!cutter.isOver)
      throw new UnreadableFile('bad-json', cutter.line, 'The JSON ends too early. Send the whole file.');
    const bundle = cutter.take();
    if (bundle.resourceType !== 'Bundle') throw new UnreadableFile('not-a-bundle', 1, NOT_A_BUNDLE_HINT);
    yield bundle;
  }
}

const STRAY_HINT =
  'The file must hold one FHIR Bundle, with nothing before or after it. Send several resources as application/fhir+ndjson, one on each line.';
const NOT_A_BUNDLE_HINT =
  'The file is not a FHIR Bundle. Send a Bundle, or one resource on each line as application/fhir+ndjson.';
