import fc from 'fast-check';
import { propertyRuns } from '../config/property-runs.spec-support.js';
import { charsetOf, decodeText, jsonShapeFault, MAX_JSON_CONTAINERS, MAX_JSON_DEPTH } from './json-text.js';

const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);

/** Levels of a parsed value. */
const depthOf = (value: unknown): number =>
  typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;

describe('the shape of JSON', () => {
  it('is faulty exactly if the parsed value is too deep', () => {
    const around = fc.integer({ min: 0, max: MAX_JSON_DEPTH + 10 });
    // Brackets, quotes and backslashes in names and texts count for nothing.
    const text = fc.string({ unit: fc.constantFrom('[', ']', '{', '}', '"', '\\', 'a') });
    const leaf = fc.oneof(
      text,
      fc.json({ stringUnit: fc.constantFrom('[', '"', '\\') }).map((json) => JSON.parse(json)),
    );
    fc.assert(
      fc.property(
        fc.array(fc.option(text, { nil: undefined }), { maxLength: 110 }),
        around,
        leaf,
        (names, rest, end) => {
          const value = [...names, ...Array<undefined>(rest)]
            .slice(0, 110)
            .reduce<unknown>((inner, name) => (name === undefined ? [inner] : { [name]: inner }), end);
          expect(jsonShapeFault(JSON.stringify(value)) !== undefined).toBe(depthOf(value) > MAX_JSON_DEPTH);
        },
      ),
      propertyRuns(),
    );
  });

  it('may have as many levels and containers as are allowed, and no more', () => {
    expect(jsonShapeFault(nested(MAX_JSON_DEPTH))).toBeUndefined();
    expect(jsonShapeFault(nested(MAX_JSON_DEPTH + 1))).toBe('nested more than 100 levels');
    const empties = (count: number) => `[${Array(count).fill('{}').join(',')}]`;
    expect(jsonShapeFault(empties(MAX_JSON_CONTAINERS - 1))).toBeUndefined();
    expect(jsonShapeFault(empties(MAX_JSON_CONTAINERS))).toBe('of more than 1000000 objects and lists');
  });

  it('is read without recursion, also of a text that is not JSON', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('[', ']', '{', '"', '\\') }), (text) => {
        expect(() => jsonShapeFault(text)).not.toThrow();
      }),
      propertyRuns(),
    );
    expect(jsonShapeFault(nested(200_000))).toBe('nested more than 100 levels');
    expect(jsonShapeFault(`"${'\\'.repeat(200_000)}`)).toBeUndefined();
  });
});

describe('text', () => {
  it.each([
    [undefined, 'utf-8'],
    ['application/json', 'utf-8'],
    ['application/json; charset=UTF-8', 'utf-8'],
    ['application/json;v=1;charset="ISO-8859-1"', 'iso-8859-1'],
    ['application/json; charset=', 'utf-8'],
    ['application/json; charset="x', 'x'],
  ])('in %s has the charset %s', (contentType, charset) => {
    expect(charsetOf(contentType)).toBe(charset);
  });

  it.each([
    [[0xef, 0xbb, 0xbf, 0xc3, 0xa9], 'é'],
    [[0xe9], undefined],
  ])('is decoded strictly: %j', (bytes, text) => {
    expect(decodeText(Uint8Array.from(bytes))).toBe(text);
  });
});
