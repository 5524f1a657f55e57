import fc from 'fast-check';
import { jsonFault } from './json-syntax.js';

const seed = Number(process.env.SEED);

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe('the place of a JSON fault', () => {
  it.each([
    ['{\n  "a": 1,\n  "b": ]\n}', 3, 8, 'a value'],
    ['{"a": 1,}', 1, 9, 'a name in double quotes'],
    ['{"a" 1}', 1, 6, 'a colon'],
    ['[1 2]', 1, 4, 'a comma or ]'],
    ['{"a": "x\n"}', 1, 7, 'a complete string on one line'],
    ['{} x', 1, 4, 'the end of the file'],
    ['', 1, 1, 'a value'],
  ])('%j: line %i, column %i, %s', (text, line, column, expected) => {
    expect(jsonFault(text)).toEqual({ line, column, expected });
  });

  it('judges every text as JSON.parse does', () => {
    const mutated = fc
      .tuple(
        fc.json(),
        fc.nat(),
        fc.constantFrom('', ',', '"', '}', ']', '0', '-', '.', '\\', '\n', '\u0001', 'e'),
        fc.nat(1),
      )
      .map(([text, at, piece, drop]) => {
        const place = at % (text.length + 1);
        return text.slice(0, place) + piece + text.slice(place + drop);
      });
    fc.assert(
      fc.property(mutated, (text) => {
        expect(jsonFault(text) === undefined).toBe(isJson(text));
      }),
      { seed, numRuns: 5_000 },
    );
  });
});
