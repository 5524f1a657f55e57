import { isJsonObject, type JsonObject, parseObject } from '../../../text/json-object.js';

/** One line of a file, one entry of a Bundle, or what is left of a Bundle without its entries. */
export interface JsonRecord {
  /** The line on which it begins, from 1. */
  line: number;
  /** Undefined if it is longer than the limit. */
  text: string | undefined;
  /** Of its resource, if the record had to be cut and they were found. */
  resourceType?: string;
  id?: string;
  /** Set for an entry: the Bundle around it, as far as it precedes its entries. */
  bundle?: JsonObject;
}

/** A record whose end is not read yet. */
interface OpenRecord extends JsonRecord {
  outer?: OpenRecord;
  /** Depth of the members of its resource, which is the line itself, or the member `resource` of the entry. */
  depth: number;
  /** The Bundle that it is, once its entries begin. */
  head?: JsonObject;
}

/** Maximum depth of Bundles inside each other. */
const BUNDLE_LEVELS_MAX = 8;

/** How much deeper the members of an entry's resource are than those of the Bundle. */
const LEVEL_DEPTH = 3;

/** Characters kept of a string. No longer one is ever used, and inline photos have millions. */
const STRING_MAX = 4_096;

const [NEWLINE, SPACE, QUOTE, COMMA, COLON] = [0x0a, 0x20, 0x22, 0x2c, 0x3a];
const [OPEN_LIST, BACKSLASH, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5c, 0x5d, 0x7b, 0x7d];

/**
 * Reads one JSON object piece by piece, in memory bounded by the limit of a record. Shortens long strings. The objects in
 * its list `entry` become records, also those of a Bundle inside an entry. It follows only strings and brackets: malformed
 * JSON is found when a record is parsed.
 */
export class JsonCutter {
  /** True once the object has ended. */
  isOver = false;
  /** The first line with anything before or after the object. */
  strayLine: number | undefined;

  private record: OpenRecord;
  private depth = 0;
  /** By depth, the member that was named last, down to the members of the record's resource. */
  private readonly names: string[] = [];
  /** Start of the text that is not added to its record yet. */
  private start = 0;
  /** The content of the last string, or its beginning, until it becomes a name or the next member begins. */
  private string = '';
  private isInString = false;
  private isEscaped = false;

  constructor(
    private readonly limit: number,
    public line = 1,
  ) {
    this.record = { line, text: '', depth: 1 };
  }

  /** Returns the entries that are complete with this text. */
  *push(text: string): Generator<JsonRecord> {
    this.start = 0;
    for (let at = 0; at < text.length; at++) {
      if (this.isInString) at = this.readString(text, at);
      const code = text.charCodeAt(at);
      if (code === NEWLINE) this.line++;
      if (this.depth === 0 && code > SPACE && (this.isOver || code !== OPEN_OBJECT)) this.strayLine ??= this.line;
      if (code === QUOTE) this.toggleString(text, at);
      else if (code === OPEN_LIST || code === OPEN_OBJECT) this.open(text, at, code);
      else if (code === CLOSE_LIST || code === CLOSE_OBJECT) {
        const entry = this.close(text, at);
        if (entry) yield entry;
      } else if (code === COLON) this.nameMember();
      else if (code === COMMA) this.endMember();
      // Nothing between the entries is kept.
      if ((code === COMMA || code <= SPACE) && this.isAmongEntries()) {
        this.keep(text, at);
        this.start = at + 1;
      }
    }
    if (!this.isInString) this.keep(text, text.length);
  }

  /** The object without the entries that were cut out of it, once all of its text is read. */
  take(): JsonRecord {
    let { record } = this;
    while (record.outer) record = record.outer;
    return record;
  }

  /** Adds the text before `end` to the record. */
  private keep(text: string, end: number): void {
    this.add(text.slice(this.start, end));
    this.start = end;
  }

  private add(part: string): void {
    const { record, limit } = this;
    if (record.text !== undefined) {
      record.text = record.text.length + part.length > limit ? undefined : record.text + part;
    }
  }

  /** @returns where the string ends, or the end of the text */
  private readString(text: string, from: number): number {
    let at = from;
    for (; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code === NEWLINE) this.line++;
      if (this.isEscaped) this.isEscaped = false;
      else if (code === QUOTE) break;
      else this.isEscaped = code === BACKSLASH;
    }
    this.string += text.slice(from, Math.min(at, from + STRING_MAX - this.string.length));
    return at;
  }

  private toggleString(text: string, at: number): void {
    this.isInString = !this.isInString;
    if (this.isInString) {
      this.keep(text, at + 1);
      this.string = '';
    } else {
      this.add(this.string.length < STRING_MAX ? this.string : withoutPartialEscape(this.string));
      this.start = at;
    }
  }

  private nameMember(): void {
    if (this.depth <= this.record.depth) this.names[this.depth] = this.string;
    this.string = '';
  }

  /** Stores the type or id of the record's resource after its value. */
  private endMember(): void {
    const { record, string } = this;
    const name = this.depth === record.depth && this.isInResource() ? this.names[record.depth] : undefined;
    if (string !== '' && (name === 'resourceType' || name === 'id')) record[name] = string;
    this.string = '';
  }

  private isInResource(): boolean {
    return !this.record.outer || this.names[this.record.depth - 1] === 'resource';
  }

  private open(text: string, at: number, code: number): void {
    const { record } = this;
    if (code === OPEN_OBJECT && this.isAmongEntries()) {
      this.keep(text, at);
      const [depth, bundle] = [record.depth + LEVEL_DEPTH, record.head ?? {}];
      this.record = { line: this.line, text: '', outer: record, depth, bundle };
    } else if (code === OPEN_LIST && this.isBeforeEntries()) {
      this.keep(text, at + 1);
      record.head = headOf(record);
    }
    this.depth++;
    if (this.depth <= this.record.depth) this.names[this.depth] = '';
  }

  private isBeforeEntries(): boolean {
    const { record, depth, names } = this;
    if (depth !== record.depth || names[depth] !== 'entry' || record.head) return false;
    return depth < BUNDLE_LEVELS_MAX * LEVEL_DEPTH && this.isInResource();
  }

  private isAmongEntries(): boolean {
    const { record, depth, names } = this;
    return depth === record.depth + 1 && names[record.depth] === 'entry' && record.head !== undefined;
  }

  /** @returns the entry that ends here, if one does */
  private close(text: string, at: number): JsonRecord | undefined {
    const { record } = this;
    this.endMember();
    this.depth = Math.max(0, this.depth - 1);
    if (this.depth === 0) this.isOver = true;
    if (!record.outer || this.depth !== record.depth - 2) return undefined;
    this.keep(text, at + 1);
    this.record = record.outer;
    return record;
  }
}

function withoutPartialEscape(string: string): string {
  return /^(?:[^\\]|\\u.{4}|\\[^u])*/s.exec(string)?.[0] ?? '';
}

/** Parses the Bundle whose entries begin, as if it had none. */
function headOf({ text = '', outer }: OpenRecord): JsonObject {
  const parsed = parseObject(`${text}]${outer ? '}}' : '}'}`);
  const bundle = outer ? parsed?.resource : parsed;
  return isJsonObject(bundle) ? bundle : {};
}
