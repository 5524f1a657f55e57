import { UnreadableFile } from '../row/rejection.js';

export type JsonObject = Record<string, unknown>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The object that a text holds, or undefined when it is not JSON or something else. */
export function parseObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** One record of a file in JSON, and the line on which it begins. */
export interface JsonRecord {
  line: number;
  /** Undefined where it is longer than the limit: then `resourceType` and `id` are known as far as they stand there. */
  text: string | undefined;
  resourceType?: string;
  id?: string;
}

const NEWLINE = 0x0a;
const OPEN_LIST = 0x5b;
const OPEN_OBJECT = 0x7b;

/** How deep members are followed by name, and the longest name or value that is kept. */
const LEVELS = 3;
const LONGEST = 256;

/** Follows strings, brackets and members in JSON as it comes, in constant memory. Whether it is sound is not looked at. */
class JsonWalk {
  depth = 0;
  /** The member that is read at each level around the place, the outermost first. */
  readonly names: string[] = [];
  private inString = false;
  private escaped = false;
  private isValue = false;
  private token: string | undefined;

  /** @returns the string that ends here, where it is the value of a member */
  step(code: number): string | undefined {
    if (this.inString) return this.stepInString(code);
    if (code === 0x22) {
      this.inString = true;
      this.token = this.depth <= LEVELS ? '' : undefined;
    } else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      if (this.depth < LEVELS) this.names[this.depth] = '';
      this.depth++;
      this.isValue = false;
    } else if (code === 0x5d || code === 0x7d) {
      this.depth = Math.max(0, this.depth - 1);
    } else if (code === 0x3a) {
      this.isValue = true;
    } else if (code === 0x2c) {
      this.isValue = false;
    }
    return undefined;
  }

  private stepInString(code: number): string | undefined {
    const { escaped, token } = this;
    this.escaped = !escaped && code === 0x5c;
    if (code === 0x22 && !escaped) {
      this.inString = false;
      if (this.isValue) return token;
      if (token !== undefined && this.depth > 0) this.names[this.depth - 1] = token;
    } else if (token !== undefined) {
      this.token = token.length < LONGEST ? token + String.fromCharCode(code) : undefined;
    }
    return undefined;
  }
}

/** Collects the text of a record as it comes; of one over the limit only the type and id of its resource are kept. */
class RecordText {
  private kept = '';
  private walk: JsonWalk | undefined;
  private found: { resourceType?: string; id?: string } = {};

  /** @param path the members that lead to the resource */
  constructor(
    private readonly limit: number,
    private readonly path: readonly string[],
  ) {}

  get isEmpty(): boolean {
    return this.kept === '' && !this.walk;
  }

  add(part: string): void {
    if (!this.walk && this.kept.length + part.length <= this.limit) {
      this.kept += part;
      return;
    }
    this.walk ??= new JsonWalk();
    for (const text of [this.kept, part]) this.look(this.walk, text);
    this.kept = '';
  }

  take(line: number): JsonRecord {
    const record = this.walk ? { line, text: undefined, ...this.found } : { line, text: this.kept };
    [this.kept, this.walk, this.found] = ['', undefined, {}];
    return record;
  }

  private look(walk: JsonWalk, text: string): void {
    const { path } = this;
    for (let at = 0; at < text.length; at++) {
      const value = walk.step(text.charCodeAt(at));
      if (value === undefined || walk.depth !== path.length + 1) continue;
      const name = walk.names[path.length];
      if (name !== 'resourceType' && name !== 'id') continue;
      if (path.every((member, level) => walk.names[level] === member)) this.found[name] = value;
    }
  }
}

/** Cuts text into its lines as it comes, one record on each; also blank ones. */
export class JsonLines {
  private readonly record: RecordText;
  private line = 1;

  /** @param limit characters of one line */
  constructor(limit: number) {
    this.record = new RecordText(limit, []);
  }

  /** @param last no more text will come: what remains is a line, too */
  *push(text: string, last: boolean): Generator<JsonRecord> {
    let at = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', at)) {
      this.record.add(text.slice(at, end));
      yield this.record.take(this.line++);
      at = end + 1;
    }
    this.record.add(text.slice(at));
    if (last && !this.record.isEmpty) yield this.record.take(this.line);
  }
}

const PARTIAL =
  'This Bundle is one page of a search (it has a link "next"), so that whoever stands on another page would count as missing: send the whole export, or import it without mode=snapshot.';

/**
 * Cuts a FHIR Bundle in JSON into the elements of its `entry` list as its text comes, in memory bounded by the limit of
 * one entry. It follows strings and brackets only: whether an entry is JSON is for its reader to find out.
 */
export class BundleEntries {
  private readonly walk = new JsonWalk();
  private readonly record: RecordText;
  private line = 1;
  private entryLine = 1;
  private isOver = false;
  private inEntries = false;
  private isBundle = false;
  private hasNext = false;

  /**
   * @param limit characters of one entry
   * @param whole refuse one page of a search
   */
  constructor(
    limit: number,
    private readonly whole: boolean,
  ) {
    this.record = new RecordText(limit, ['resource']);
  }

  /**
   * The entries that are complete with this text.
   * @throws UnreadableFile where the text cannot be a Bundle in JSON
   */
  *push(text: string, last: boolean): Generator<JsonRecord> {
    const { walk } = this;
    let start = 0;
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code === NEWLINE) this.line++;
      const { depth } = walk;
      if (code > 0x20 && (depth === 0 || (depth === 2 && this.inEntries))) this.check(code, depth);
      const value = walk.step(code);
      if (value !== undefined) this.member(value);
      if (walk.depth === depth) continue;
      if (walk.depth === 0) this.isOver = true;
      else if (depth === 1) this.inEntries = code === OPEN_LIST && walk.names[0] === 'entry';
      // An entry begins or ends where the depth goes from 2 to 3, or back.
      if (!this.inEntries || depth + walk.depth !== 5) continue;
      if (depth === 2) {
        [start, this.entryLine] = [at, this.line];
      } else {
        this.record.add(text.slice(start, at + 1));
        yield this.record.take(this.entryLine);
      }
    }
    if (this.inEntries && walk.depth > 2) this.record.add(text.slice(start));
    if (last) this.end();
  }

  /** What stands around the Bundle, and between its entries. */
  private check(code: number, depth: number): void {
    if (depth === 2 && code !== OPEN_OBJECT && code !== 0x2c && code !== 0x5d) {
      this.refuse('An entry of the Bundle is no object: correct it.');
    }
    if (depth > 0) return;
    if (this.isOver) this.refuse('Something follows the Bundle: send one Bundle in each file.');
    if (code !== OPEN_OBJECT) {
      this.refuse(
        'A FHIR Bundle begins with {: send one, or records of your own as JSON lines, one object on each line.',
      );
    }
  }

  private member(value: string): void {
    const [first, , third] = this.walk.names;
    if (this.walk.depth === 1 && first === 'resourceType') this.isBundle = value === 'Bundle';
    if (this.walk.depth === 3 && first === 'link' && third === 'relation' && value === 'next') this.hasNext = true;
  }

  private end(): void {
    if (!this.isOver) this.refuse('The JSON ends too early: send the whole file.');
    if (!this.isBundle) {
      const hint = 'This is no FHIR Bundle: send one, or one resource on each line as application/fhir+ndjson.';
      throw new UnreadableFile('not-a-bundle', 1, hint);
    }
    if (this.whole && this.hasNext) throw new UnreadableFile('partial-bundle', 1, PARTIAL);
  }

  private refuse(hint: string): never {
    throw new UnreadableFile('bad-json', this.line, hint);
  }
}
