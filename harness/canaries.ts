/** With what every canary begins: nothing else that the suite handles holds it. */
const MARK = 'Zeisigq7';

/** Characters of a canary behind its mark that are told of a find. */
const TOLD = 60;

/** A word that stands for something private, named after what it stands for. */
export const canary = (name: string): string => `${MARK}${name}x`;

/** One find: the spelling, and what stands there. */
type Find = string;

/** A text as base64 has it, whatever stands before it: of each of the three places, what the text alone decides. */
function inBase64(text: string): string[] {
  const bytes = Buffer.from(text);
  return [0, 1, 2].map((offset) => {
    const padded = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64');
    return padded.slice(offset === 0 ? 0 : offset + 1, Math.floor(((offset + bytes.length) * 8) / 6));
  });
}

/** A text in every spelling in which it may have been kept; what JSON and URLs escape it has nothing of. */
function spellings(text: string): Buffer[] {
  return [text, Buffer.from(text).toString('hex'), ...inBase64(text)].map((spelling) => Buffer.from(spelling));
}

/** Cases in which a word may have been kept, as email addresses are in lower case. */
const cases = (text: string): string[] => [text, text.toLowerCase(), text.toUpperCase()];

/** Looks for what begins with the mark, and for secrets that the service or the platform drew themselves. */
export class Searcher {
  private readonly wanted: { readonly secret: string; readonly bytes: Buffer }[];

  /** @param secrets by what they are */
  constructor(secrets: Readonly<Record<string, string>> = {}) {
    this.wanted = [...cases(MARK).map((mark) => ['mark', mark]), ...Object.entries(secrets)].flatMap(
      ([secret = '', text = '']) => spellings(text).map((bytes) => ({ secret, bytes })),
    );
  }

  /** The longest spelling, in bytes: so much of a chunk's end is looked at again with the next. */
  get overlap(): number {
    return Math.max(...this.wanted.map(({ bytes }) => bytes.length)) + TOLD;
  }

  /** What is found, each place once. */
  finds(haystack: Buffer | string): Find[] {
    const bytes = Buffer.isBuffer(haystack) ? haystack : Buffer.from(haystack);
    const found = new Set<string>();
    for (const { secret, bytes: spelling } of this.wanted) {
      for (let at = bytes.indexOf(spelling); at >= 0; at = bytes.indexOf(spelling, at + 1)) {
        const there = bytes.subarray(Math.max(0, at - TOLD), at + spelling.length + TOLD / 2);
        found.add(`${secret}: ${there.toString('latin1').replace(/[^\x20-\x7e]+/g, '·')}`);
      }
    }
    return [...found].slice(0, 200);
  }
}
