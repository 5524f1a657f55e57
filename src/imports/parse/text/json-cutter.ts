import { isJsonObject, type JsonObject, parseObject } from './json-object.js';

/** One line of a file, one entry of a Bundle, or what is left of a Bundle without its entries. */
export interface JsonRecord {
  /** The line on which it begins, from 1. */
  line: number;
  /** Where it begins in the file, in characters. */
  offset: number;
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
  /** How many Bundles are around it. */
  level: number;
  /** Depth of the members of its resource, which is the line itself, or the member `resource` of the entry. */
  depth: number;
  /** The member of the entry, and the member of its resource, that was named last. */
  member: string;
  name: string;
  /** The Bundle that it is, once its entries begin. */
  head?: JsonObject;
  areEntriesOpen: boolean;
}

/** Maximum depth of Bundles inside each other. */
export const BUNDLE_LEVELS_MAX = 8;

/** Characters kept of a string. No longer one is ever used, and inline photos have millions. */
const STRING_MAX = 4_096;

/** Characters of the longest escape, `\u0041`. */
const ESCAPE_LENGTH = 6;

/** Maximum characters of a member's name, resourceType or id that is recognized. */
const TOKEN_MAX = 256;

const [NEWLINE, SPACE, QUOTE, COMMA, COLON] = [0x0a, 0x20, 0x22, 0x2c, 0x3a];
const [OPEN_LIST, BACKSLASH, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5c, 0x5d, 0x7b, 0x7d];

/**
 * Reads one JSON object piece by piece, in memory bounded by the limit of a record. Shortens long strings. The entries of
 * a Bundle become records, also of a Bundle inside an entry. It follows only strings and brackets: malformed JSON is
 * found when a record is parsed.
 */
export class JsonCutter {
  /** True once the object has ended. */
  isOver = false;
  /** The first line with anything before or after the object. */
  strayLine: number | undefined;

  private record: OpenRecord;
  private depth = 0;
  /** Start of the text that is not added to its record yet. */
  private start = 0;

  private isInString = false;
  private isEscaped = false;
  private isShortened = false;
  private stringLength = 0;
  private isValue = false;
  private token: string | undefined;
  private tokenStart = 0;

  /** @param isBundle True if the object must be a Bundle. Otherwise `resourceType` must precede its entries. */
  constructor(
    private readonly limit: number,
    public line = 1,
    private offset = 0,
    private readonly isBundle = false,
  ) {
    this.record = { line, offset, text: '', level: 0, depth: 1, member: 'resource', name: '', areEntriesOpen: false };
  }

  /** Returns the entries that are complete with this text. */
  *push(text: string): Generator<JsonRecord> {
    [this.start, this.tokenStart] = [0, 0];
    for (let at = 0; at < text.length; at++) {
      if (this.isInString) at = this.readString(text, at);
      const code = text.charCodeAt(at);
      if (code === NEWLINE) this.line++;
      if (code === QUOTE) this.toggleString(text, at);
      else if (code === OPEN_LIST || code === OPEN_OBJECT) this.open(text, at, code);
      else if (code === CLOSE_LIST || code === CLOSE_OBJECT) {
        const entry = this.close(text, at);
        if (entry) yield entry;
      } else if (code === COLON) this.isValue = true;
      else if (code === COMMA || code <= SPACE) this.separate(text, at, code);
      else this.checkStray(false);
    }
    if (!this.isShortened) this.keep(text, text.length);
    if (this.token !== undefined) this.token = recognized(this.token + text.slice(this.tokenStart));
    this.offset += text.length;
  }

  /** The object without the entries that were cut out of it, once all of its text is read. */
  take(): JsonRecord {
    let { record } = this;
    while (record.outer) record = record.outer;
    return asRecord(record);
  }

  private checkStray(isBeginning: boolean): void {
    if (this.depth === 0 && (!isBeginning || this.isOver)) this.strayLine ??= this.line;
  }

  /** Adds the text before `end` to the record. */
  private keep(text: string, end: number): void {
    const { record, start } = this;
    this.start = end;
    if (record.text === undefined || start === end) return;
    const isTooLarge = record.text.length + end - start > this.limit;
    record.text = isTooLarge ? undefined : record.text + text.slice(start, end);
  }

  /** @returns where the string ends, or the end of the text */
  private readString(text: string, from: number): number {
    let at = from;
    for (; at < text.length; at++, this.stringLength++) {
      const code = text.charCodeAt(at);
      if (code === NEWLINE) this.line++;
      if (this.isEscaped) this.isEscaped = false;
      else if (code === QUOTE) break;
      else if (code === BACKSLASH) this.isEscaped = true;
      // An escape is kept completely, or not at all.
      const most = this.isEscaped ? STRING_MAX - ESCAPE_LENGTH : STRING_MAX - 1;
      if (this.stringLength <= most || this.isShortened) continue;
      this.keep(text, at);
      this.isShortened = true;
    }
    return at;
  }

  private toggleString(text: string, at: number): void {
    const { record, depth, isInString } = this;
    this.isInString = !isInString;
    if (!isInString) {
      this.checkStray(false);
      this.stringLength = 0;
      this.token = depth > 0 && (depth === record.depth || depth === record.depth - 1) ? '' : undefined;
      this.tokenStart = at + 1;
      return;
    }
    if (this.isShortened) [this.isShortened, this.start] = [false, at];
    const token = this.token === undefined ? '' : (recognized(this.token + text.slice(this.tokenStart, at)) ?? '');
    this.token = undefined;
    if (!this.isValue) {
      if (depth === record.depth) record.name = token;
      else if (depth === record.depth - 1) record.member = token;
    } else if (depth === record.depth && record.member === 'resource') {
      if (record.name === 'resourceType' || record.name === 'id') record[record.name] = token;
    }
  }

  private open(text: string, at: number, code: number): void {
    const { record, depth } = this;
    this.checkStray(code === OPEN_OBJECT);
    if (code === OPEN_OBJECT && this.isAmongEntries()) {
      this.keep(text, at);
      const [line, offset, level] = [this.line, this.offset + at, record.level + 1];
      const known = { line, offset, level, outer: record, bundle: record.head ?? {}, depth: depth + 2 };
      this.record = { ...known, text: '', member: '', name: '', areEntriesOpen: false };
    } else if (code === OPEN_LIST && this.isBeforeEntries()) {
      this.keep(text, at + 1);
      record.head = headOf(record);
      record.areEntriesOpen = true;
    }
    this.depth++;
    this.isValue = false;
    if (this.depth === this.record.depth) this.record.name = '';
  }

  private isAmongEntries(): boolean {
    return this.record.areEntriesOpen && this.depth === this.record.depth + 1;
  }

  private isBeforeEntries(): boolean {
    const { record, depth } = this;
    if (depth !== record.depth || record.member !== 'resource' || record.name !== 'entry' || record.head) return false;
    if (record.level >= BUNDLE_LEVELS_MAX) return false;
    return record.resourceType === 'Bundle' || (this.isBundle && !record.outer);
  }

  /** @returns the entry that ends here, if one does */
  private close(text: string, at: number): JsonRecord | undefined {
    const { record } = this;
    this.checkStray(false);
    this.depth = Math.max(0, this.depth - 1);
    if (this.depth === 0) this.isOver = true;
    if (this.depth === record.depth) record.areEntriesOpen = false;
    if (!record.outer || this.depth !== record.depth - 2) return undefined;
    this.keep(text, at + 1);
    this.record = record.outer;
    return asRecord(record);
  }

  private separate(text: string, at: number, code: number): void {
    if (code === COMMA) {
      this.isValue = false;
      this.checkStray(false);
    }
    if (!this.isAmongEntries()) return;
    this.keep(text, at);
    this.start = at + 1;
  }
}

function recognized(token: string): string | undefined {
  return token.length > TOKEN_MAX ? undefined : token;
}

/** Parses the Bundle whose entries begin, as if it had none. */
function headOf({ text = '', outer }: OpenRecord): JsonObject {
  const parsed = parseObject(`${text}]${outer ? '}}' : '}'}`);
  const bundle = outer ? parsed?.resource : parsed;
  return isJsonObject(bundle) ? bundle : {};
}

function asRecord({ line, offset, text, resourceType, id, bundle }: OpenRecord): JsonRecord {
  return { line, offset, text, ...(resourceType && { resourceType }), ...(id && { id }), ...(bundle && { bundle }) };
}
