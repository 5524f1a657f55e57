/** A position in a text; both count from 1. */
export interface Place {
  line: number;
  column: number;
}

/** The settings of a JSON text, by their paths such as `operations.checkUser.path`. */
interface JsonPlaces {
  places: ReadonlyMap<string, Place>;
  /** Names that stand twice in one object, with the place of the second, which counts. */
  repeated: { path: string; place: Place; first: Place }[];
}

/** Thrown if a text is not JSON. Its message names the missing part, and quotes nothing. */
export class JsonFault extends Error {
  constructor(
    message: string,
    readonly place: Place,
  ) {
    super(message);
  }
}

/** Its characters are all from the blank on, except " and \. */
const STRING = /"(?:[ !#-[\]-\u{10ffff}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy;
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const BLANKS = /[ \t\r\n]*/y;
const MAX_DEPTH = 100;

/** Finds where each setting of a JSON text stands. @throws {JsonFault} at the first place that is not JSON */
export function placesIn(text: string): JsonPlaces {
  const places = new Map<string, Place>();
  const repeated: JsonPlaces['repeated'] = [];
  let at = 0;

  const placeOf = (offset: number): Place => {
    const lines = text.slice(0, offset).split('\n');
    return { line: lines.length, column: (lines.at(-1) ?? '').length + 1 };
  };
  const fail = (expected: string): never => {
    if (at >= text.length) throw new JsonFault(text.trim() === '' ? 'it is empty' : 'it ends too early', placeOf(at));
    const isComment = text.startsWith('//', at) || text.startsWith('/*', at);
    throw new JsonFault(isComment ? 'JSON has no comments' : `${expected} is expected`, placeOf(at));
  };
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    at += found?.length ?? 0;
    return found;
  };
  const takeSign = (sign: string): boolean => {
    take(BLANKS);
    if (text[at] !== sign) return false;
    at += 1;
    take(BLANKS);
    return true;
  };

  const readItems = (end: string, readItem: (index: number) => void): void => {
    if (takeSign(end)) return;
    for (let index = 0; ; index += 1) {
      readItem(index);
      if (takeSign(end)) return;
      if (!takeSign(',')) fail(`a comma or ${end}`);
    }
  };
  const readMember = (path: string[], names: Map<string, Place>): void => {
    const begin = at;
    const name = take(STRING);
    const own = JSON.parse(name ?? fail('a name in double quotes')) as string;
    const place = placeOf(begin);
    const key = [...path, own].join('.');
    const first = names.get(own);
    if (first) repeated.push({ path: key, place, first });
    names.set(own, place);
    places.set(key, place);
    if (!takeSign(':')) fail('a colon');
    readValue([...path, own]);
  };
  const readValue = (path: string[]): void => {
    if (path.length > MAX_DEPTH) fail('less nesting');
    const names = new Map<string, Place>();
    if (takeSign('{')) readItems('}', () => readMember(path, names));
    else if (takeSign('[')) readItems(']', (index) => readValue([...path, String(index)]));
    else if (take(STRING) === undefined && take(SCALAR) === undefined) fail('a value');
  };

  readValue([]);
  take(BLANKS);
  if (at < text.length) fail('the end');
  return { places, repeated };
}
