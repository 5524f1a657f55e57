const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const OPEN_OBJECT = 0x7b;
const OPEN = [OPEN_OBJECT, 0x5b];
const CLOSE = [0x7d, 0x5d];

/** Longest name or value that is kept. */
const LONGEST = 256;

/** One object or list around the place that is being read. */
interface Level {
  isObject: boolean;
  /** The member's name that was read last, and whether a colon came since. */
  name: string;
  awaitsValue: boolean;
}

/**
 * Finds the type and the id of a FHIR resource that is too large to be kept, in its JSON as it comes: constant memory,
 * each character once. Whether it is sound JSON is not looked at.
 */
export class ResourceScan {
  resourceType: string | undefined;
  id: string | undefined;
  private depth = 0;
  private readonly levels: Level[] = [];
  private readonly target: number;
  private inString = false;
  private escaped = false;
  private token: string | undefined;

  /** @param where the text is the resource itself, or an entry of a Bundle around it */
  constructor(where: 'resource' | 'entry') {
    this.target = where === 'resource' ? 1 : 2;
  }

  push(text: string): void {
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (this.inString) this.readString(text, at, code);
      else this.step(code);
    }
  }

  private readString(text: string, at: number, code: number): void {
    if (this.escaped) this.escaped = false;
    else if (code === BACKSLASH) this.escaped = true;
    else if (code === QUOTE) {
      this.inString = false;
      if (this.token !== undefined) this.endToken(this.token);
      return;
    }
    if (this.token !== undefined) this.token = this.token.length < LONGEST ? this.token + text[at] : undefined;
  }

  private step(code: number): void {
    const level = this.depth <= this.target ? this.levels[this.depth - 1] : undefined;
    if (code === QUOTE) {
      this.inString = true;
      this.token = level ? '' : undefined;
    } else if (OPEN.includes(code)) {
      if (this.depth < this.target) {
        this.levels[this.depth] = { isObject: code === OPEN_OBJECT, name: '', awaitsValue: false };
      }
      this.depth++;
    } else if (CLOSE.includes(code)) {
      this.depth = Math.max(0, this.depth - 1);
    } else if (level && code === COLON) {
      level.awaitsValue = true;
    } else if (level && code === COMMA) {
      level.awaitsValue = false;
    }
  }

  private endToken(token: string): void {
    const level = this.levels[this.depth - 1];
    if (!level) return;
    if (!level.awaitsValue) level.name = token;
    else if (this.isResource(level)) {
      if (level.name === 'resourceType') this.resourceType = token;
      else if (level.name === 'id') this.id = token;
    }
  }

  private isResource(level: Level): boolean {
    if (this.depth !== this.target || !level.isObject) return false;
    return this.target === 1 || this.levels[0]?.name === 'resource';
  }
}
