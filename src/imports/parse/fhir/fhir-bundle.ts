import { ResourceScan } from '../text/resource-scan.js';
import { UnreadableFile } from '../text/unreadable-file.js';

/** One element of `entry`: where it begins and its JSON text, undefined where that is longer than the limit. */
export interface BundleEntry {
  line: number;
  text: string | undefined;
  /** What is known of an entry that is too long. */
  scan?: ResourceScan;
}

/** Longest text of the Bundle's own links that is looked at; a longer one is taken for more pages. */
const LINK_MAX = 64 * 1024;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const NEWLINE = 0x0a;
const OPEN = [0x7b, 0x5b];
const CLOSE = [0x7d, 0x5d];

/** Longest name or value of the Bundle's own members that is looked at. */
const LONGEST_TOKEN = 64;

/**
 * - `before`: nothing but blanks so far
 * - `member`: among the Bundle's own members
 * - `value`: inside the value of a member that does not matter here
 * - `entries`: inside `entry`, between two elements; `entry`: inside one element
 * - `after`: the Bundle is closed
 */
type Place = 'before' | 'member' | 'value' | 'entries' | 'entry' | 'after';

/**
 * Cuts a FHIR Bundle in JSON into the elements of its `entry` list as its text comes, in memory bounded by the limit
 * of one entry. It follows strings and brackets only: whether an entry is JSON is for its reader to find out.
 */
export class FhirBundle {
  private place: Place = 'before';
  private line = 1;
  private depth = 0;
  private inString = false;
  private escaped = false;
  /** The member's name that was read last, and whether a colon came since. */
  private member = '';
  private awaitsValue = false;
  private token = '';
  private resourceType = '';
  /** The text of the entry so far; undefined once it is too long. */
  private kept: string | undefined;
  private entryLine = 1;
  private scan: ResourceScan | undefined;
  /** The text of `link` so far. */
  private link = '';

  /** @param limit characters of one entry */
  constructor(private readonly limit: number) {}

  /**
   * The entries that are complete with this text.
   * @throws UnreadableFile where the text cannot be a Bundle in JSON
   */
  *push(text: string): Generator<BundleEntry> {
    let start = 0;
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code === NEWLINE) this.line++;
      if (this.place === 'value' && this.member === 'link' && this.link.length <= LINK_MAX) this.link += text[at];
      if (this.inString) {
        this.readString(text, at, code);
        continue;
      }
      if (code === QUOTE && this.place !== 'before' && this.place !== 'entries' && this.place !== 'after') {
        this.inString = true;
        this.token = '';
        continue;
      }
      const was = this.place;
      this.step(code);
      if (was === 'entries' && this.place === 'entry') {
        start = at;
        this.kept = '';
        this.scan = undefined;
        this.entryLine = this.line;
      } else if (was === 'entry' && this.place === 'entries') {
        this.keep(text, start, at + 1);
        yield { line: this.entryLine, text: this.kept, ...(this.scan && { scan: this.scan }) };
        this.kept = '';
      }
    }
    if (this.place === 'entry') this.keep(text, start, text.length);
  }

  /** @throws UnreadableFile when the text ended too early or was no Bundle */
  end(): void {
    if (this.place !== 'after') this.refuse('The JSON ends too early: send the whole file.');
    if (this.resourceType !== 'Bundle') {
      const hint = 'This is no FHIR Bundle: send one, or one resource on each line as application/fhir+ndjson.';
      throw new UnreadableFile('not-a-bundle', 1, hint);
    }
  }

  /** Whether the Bundle says that more pages follow it. */
  get hasNext(): boolean {
    return this.link.length > LINK_MAX || /"relation"\s{0,99}:\s{0,99}"next"/.test(this.link);
  }

  private keep(text: string, from: number, to: number): void {
    if (this.kept === undefined) {
      this.scan?.push(text.slice(from, to));
      return;
    }
    const whole = this.kept + text.slice(from, to);
    this.kept = whole.length <= this.limit ? whole : undefined;
    if (this.kept !== undefined) return;
    this.scan = new ResourceScan('entry');
    this.scan.push(whole);
  }

  private readString(text: string, at: number, code: number): void {
    if (this.escaped) this.escaped = false;
    else if (code === BACKSLASH) this.escaped = true;
    else if (code === QUOTE) {
      this.inString = false;
      if (this.place === 'member') this.endToken();
      return;
    }
    if (this.place === 'member' && this.token.length < LONGEST_TOKEN) this.token += text[at];
  }

  private endToken(): void {
    if (!this.awaitsValue) this.member = this.token;
    else if (this.member === 'resourceType') this.resourceType = this.token;
  }

  private step(code: number): void {
    if (code === 0x20 || code === NEWLINE || code === 0x0d || code === 0x09) return;
    if (this.place === 'value' || this.place === 'entry') {
      if (OPEN.includes(code)) this.depth++;
      else if (CLOSE.includes(code) && --this.depth === 0) this.place = this.place === 'entry' ? 'entries' : 'member';
    } else if (this.place === 'member') {
      this.stepMember(code);
    } else if (this.place === 'entries') {
      if (code === 0x7b) this.open('entry');
      else if (code === 0x5d) this.place = 'member';
      else if (code !== 0x2c) this.refuse('An entry of the Bundle is no object: correct it.');
    } else if (this.place === 'before' && code === 0x7b) {
      this.place = 'member';
    } else {
      this.refuse(
        this.place === 'after'
          ? 'Something follows the Bundle: send one Bundle in each file.'
          : 'A FHIR Bundle begins with {: send one, or records of your own as JSON lines, one object on each line.',
      );
    }
  }

  private stepMember(code: number): void {
    if (code === 0x3a) this.awaitsValue = true;
    else if (code === 0x2c) this.awaitsValue = false;
    else if (code === 0x7d) this.place = 'after';
    else if (code === 0x5b && this.awaitsValue && this.member === 'entry') this.place = 'entries';
    else if (OPEN.includes(code)) this.open('value');
    else if (code === 0x5d) this.refuse('A bracket is closed that was never opened: correct the JSON.');
  }

  private open(place: Place): void {
    this.place = place;
    this.depth = 1;
  }

  private refuse(hint: string): never {
    throw new UnreadableFile('bad-json', this.line, hint);
  }
}
