/** Where a text stops being JSON; lines and columns begin at 1. */
export interface JsonFault {
  line: number;
  column: number;
  expected: string;
}

const BLANKS = /[ \t\n\r]*/y;
const STRING = /"(?:[^"\\\p{Cc}]|[\u007f-\u009f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;

class Stop extends Error {
  constructor(
    readonly at: number,
    readonly expected: string,
  ) {
    super(expected);
  }
}

/**
 * Finds the first fault of a text that should be JSON (RFC 8259), since what `JSON.parse` says of it differs between
 * versions of Node and often names no place.
 *
 * @returns undefined when the text is JSON
 */
export function jsonFault(text: string): JsonFault | undefined {
  try {
    const end = blanks(text, value(text, blanks(text, 0)));
    if (end === text.length) return undefined;
    return place(text, end, 'the end of the file');
  } catch (error) {
    if (error instanceof Stop) return place(text, error.at, error.expected);
    throw error;
  }
}

function place(text: string, at: number, expected: string): JsonFault {
  const before = text.slice(0, at).split('\n');
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1, expected };
}

/** Where the text goes on after what the pattern matches at this place, if it does. */
function after(pattern: RegExp, text: string, at: number): number | undefined {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}

function blanks(text: string, at: number): number {
  return after(BLANKS, text, at) ?? at;
}

function value(text: string, at: number): number {
  if (text[at] === '{') return list(text, at, '}', pair);
  if (text[at] === '[') return list(text, at, ']', value);
  const end = after(STRING, text, at) ?? after(NUMBER, text, at) ?? after(WORD, text, at);
  if (end === undefined) throw new Stop(at, text[at] === '"' ? 'a complete string on one line' : 'a value');
  return end;
}

function pair(text: string, at: number): number {
  const end = after(STRING, text, at);
  if (end === undefined) throw new Stop(at, 'a name in double quotes');
  const colon = blanks(text, end);
  if (text[colon] !== ':') throw new Stop(colon, 'a colon');
  return value(text, blanks(text, colon + 1));
}

function list(text: string, at: number, close: string, item: (text: string, at: number) => number): number {
  let next = blanks(text, at + 1);
  if (text[next] === close) return next + 1;
  for (;;) {
    next = blanks(text, item(text, next));
    if (text[next] === close) return next + 1;
    if (text[next] !== ',') throw new Stop(next, `a comma or ${close}`);
    next = blanks(text, next + 1);
  }
}
