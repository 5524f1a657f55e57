import { type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser';
import { jsonShapeFault } from '../../text/json-text.js';

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

/** Thrown if a text is not JSON. Its message names the fault, and quotes nothing. */
export class JsonFault extends Error {
  constructor(
    message: string,
    readonly place: Place,
  ) {
    super(message);
  }
}

/** Finds where each setting of a JSON text stands. @throws {JsonFault} at the first place that is not JSON */
export function placesIn(text: string): JsonPlaces {
  // The parser recurses.
  const shape = jsonShapeFault(text);
  if (shape !== undefined) throw new JsonFault(`it is ${shape}`, placeOf(text, 0));
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { disallowComments: true });
  const [fault] = errors.sort((one, other) => one.offset - other.offset);
  if (fault) throw new JsonFault(meaningOf(fault, text), placeOf(text, fault.offset));
  const places = new Map<string, Place>();
  const repeated: JsonPlaces['repeated'] = [];
  const walk = (node: Node, path: string[]): void => {
    const names = new Map<string, Place>();
    for (const [index, child] of (node.children ?? []).entries()) {
      const [name, value] = child.children ?? [];
      if (child.type !== 'property' || !name || !value) {
        walk(child, [...path, String(index)]);
        continue;
      }
      const own = [...path, name.value];
      const [key, place, first] = [own.join('.'), placeOf(text, name.offset), names.get(name.value)];
      if (first) repeated.push({ path: key, place, first });
      names.set(name.value, place);
      places.set(key, place);
      walk(value, own);
    }
  };
  if (root) walk(root, []);
  return { places, repeated };
}

function placeOf(text: string, offset: number): Place {
  const lines = text.slice(0, offset).split('\n');
  return { line: lines.length, column: (lines.at(-1) ?? '').length + 1 };
}

function meaningOf({ error, offset, length }: ParseError, text: string): string {
  if (text.trim() === '') return 'it is empty';
  if (text.slice(offset, offset + length).trim() === '' && offset + length >= text.trimEnd().length)
    return 'it ends too early';
  const name = printParseErrorCode(error);
  if (name === 'InvalidCommentToken') return 'JSON has no comments';
  const words = name.replace(/\B[A-Z]/g, (letter) => ` ${letter}`).toLowerCase();
  return words.replace(/ expected$/, ' is expected');
}
