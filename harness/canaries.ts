/** The prefix of every canary. Nothing else in the suite contains it. */
const MARK = 'Zeisigq7';

/** Characters after the prefix that a find shows. */
const SHOWN_LENGTH = 60;

/** A word that stands for a private value, named after that value. */
export const canary = (name: string): string => `${MARK}${name}x`;

/** One find: the spelling, and the text found. */
type Find = string;

/** The base64 of a text at each of three alignments, without the characters that also depend on its surroundings. */
function inBase64(text: string): string[] {
  const bytes = Buffer.from(text);
  return [0, 1, 2].map((offset) => {
    const padded = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64');
    return padded.slice(offset === 0 ? 0 : offset + 1, Math.floor(((offset + bytes.length) * 8) / 6));
  });
}

/** Every encoding in which a text may be stored; it contains no character that JSON or a URL escapes. */
function spellings(text: string): Buffer[] {
  return [text, Buffer.from(text).toString('hex'), ...inBase64(text)].map((spelling) => Buffer.from(spelling));
}

/** Cases in which a word may be stored, such as lower case in emails. */
const cases = (text: string): string[] => [text, text.toLowerCase(), text.toUpperCase()];

/** Searches for canaries, and for secrets that the service or the platform generated. */
export class Searcher {
  private readonly wanted: { readonly secret: string; readonly bytes: Buffer }[];

  /** @param secrets by name */
  constructor(secrets: Readonly<Record<string, string>> = {}) {
    this.wanted = [...cases(MARK).map((mark) => ['mark', mark]), ...Object.entries(secrets)].flatMap(
      ([secret = '', text = '']) => spellings(text).map((bytes) => ({ secret, bytes })),
    );
  }

  /** The longest spelling, in bytes: the overlap of two chunks. */
  get overlap(): number {
    return Math.max(...this.wanted.map(({ bytes }) => bytes.length)) + SHOWN_LENGTH;
  }

  /** All finds, each position once. */
  finds(haystack: Buffer | string): Find[] {
    const bytes = Buffer.isBuffer(haystack) ? haystack : Buffer.from(haystack);
    const found = new Set<string>();
    for (const { secret, bytes: spelling } of this.wanted) {
      for (let at = bytes.indexOf(spelling); at >= 0; at = bytes.indexOf(spelling, at + 1)) {
        const there = bytes.subarray(Math.max(0, at - SHOWN_LENGTH), at + spelling.length + SHOWN_LENGTH / 2);
        found.add(`${secret}: ${there.toString('latin1').replace(/[^\x20-\x7e]+/g, '·')}`);
      }
    }
    return [...found].slice(0, 200);
  }
}
