import fc from 'fast-check';
import { propertyRuns } from '../../../config/property-runs.spec-support.js';
import { UnreadableFile } from '../row/rejection.js';
import { BundleEntries, JsonLines, type JsonRecord } from './json-records.js';

function pushed(records: JsonLines | BundleEntries, text: string, chunk = text.length || 1): JsonRecord[] {
  const found: JsonRecord[] = [];
  for (let at = 0; at < text.length; at += chunk) found.push(...records.push(text.slice(at, at + chunk), false));
  return [...found, ...records.push('', true)];
}

const lines = (text: string, limit: number, chunk?: number) => pushed(new JsonLines(limit), text, chunk);
const entries = (text: string, limit = 10_000, chunk?: number) => pushed(new BundleEntries(limit, false), text, chunk);

describe('lines of a text', () => {
  it('are the same however the text was cut, those over the limit without their text', () => {
    const text = `one\n\n${'x'.repeat(9)}\nfour\n${'y'.repeat(8)}`;
    for (const chunk of [1, 2, 3, 5, 100]) {
      expect(lines(text, 8, chunk).map((line) => line.text)).toEqual(['one', '', undefined, 'four', 'y'.repeat(8)]);
    }
    expect(lines('', 8, 1)).toEqual([]);
    expect(lines('123456789', 8, 2)).toMatchObject([{ line: 1, text: undefined }]);
  });
});

describe('the entries of a Bundle', () => {
  it('are those that JSON.parse finds, however the text was cut and set', () => {
    const bundle = fc.record({
      meta: fc.jsonValue(),
      entry: fc.array(fc.dictionary(fc.string(), fc.jsonValue())),
      link: fc.constant([{ relation: 'self', entry: ['no entry'] }]),
    });
    fc.assert(
      fc.property(bundle, fc.integer({ min: 1, max: 9 }), fc.nat(2), fc.boolean(), (value, chunk, indent, typeLast) => {
        const whole = typeLast ? { ...value, resourceType: 'Bundle' } : { resourceType: 'Bundle', ...value };
        const text = `\n${JSON.stringify(whole, null, indent)}\n`;
        const found = entries(text, 100_000, chunk);
        expect(found.map((entry) => JSON.parse(entry.text ?? ''))).toEqual(JSON.parse(text).entry);
      }),
      propertyRuns(),
    );
  });

  it('know their line', () => {
    const text = '{\n"resourceType": "Bundle",\n"entry": [\n{"a": 1},\n\n{\n"b": "]}"},{"c":1}\n]}';
    expect(entries(text).map(({ line }) => line)).toEqual([4, 6, 7]);
  });

  it('may be none', () => {
    expect(entries('{"resourceType":"Bundle"}')).toEqual([]);
    expect(entries('{"resourceType":"Bundle","entry":[]}')).toEqual([]);
  });

  it.each([
    ['{"resourceType":"Patient"}', 'not-a-bundle', 1],
    ['{"resourceType":"Bundle",\n"entry":[{"a":1},', 'bad-json', 2],
    ['{"resourceType":"Bundle","entry":[{"a":', 'bad-json', 1],
    ['{"resourceType":"Bundle","entry":["a"]}', 'bad-json', 1],
    ['{"resourceType":"Bundle"}\n{}', 'bad-json', 2],
    ['[{}]', 'bad-json', 1],
    ['', 'bad-json', 1],
  ])('of %s are refused', (text, code, line) => {
    expect(() => entries(text)).toThrow(UnreadableFile);
    expect(() => entries(text)).toThrow(expect.objectContaining({ code, line }));
  });
});

describe('a record that is too large to keep', () => {
  it('has the type and id that JSON.parse finds, however the text was cut, on a line or in an entry of a Bundle', () => {
    const more = fc.dictionary(fc.constantFrom('id2', 'contained', 'text', '"'), fc.jsonValue());
    const resource = fc.tuple(more, fc.constantFrom('Group', 'Patient'), fc.stringMatching(/^[a-z0-9-]{1,20}$/), more);
    fc.assert(
      fc.property(
        resource,
        fc.integer({ min: 1, max: 9 }),
        fc.boolean(),
        ([before, type, id, after], chunk, isLine) => {
          const whole = { ...before, contained: [{ resourceType: 'X', id: 'x' }], resourceType: type, id, ...after };
          const { resourceType, id: lastId } = whole as { resourceType: string; id: string };
          const entry = { link: [{ resource: { resourceType: 'X', id: 'x' } }], resource: whole, search: { id: 'x' } };
          const bundle = JSON.stringify({ resourceType: 'Bundle', entry: [entry] }, null, chunk % 2);
          const found = isLine ? lines(JSON.stringify(whole), 20, chunk) : entries(bundle, 20, chunk);
          expect(found).toEqual([{ line: expect.any(Number), text: undefined, resourceType, id: lastId }]);
        },
      ),
      propertyRuns(),
    );
  });

  it.each([
    ['a line', new JsonLines(100), '', '\n', '{}\n'],
    ['an entry', new BundleEntries(100, false), '{"resourceType":"Bundle","entry":[{"resource":', '},', '{}]}'],
  ])('and stands as %s is looked through, but not kept', (_, records, before, after, next) => {
    const found = [...records.push(`${before}{"id":"`, false)];
    for (let piece = 0; piece < 1000; piece++) found.push(...records.push('x'.repeat(1000), false));
    expect(JSON.stringify(records).length).toBeLessThan(900);
    found.push(...records.push(`","resourceType":"Group"}${after}${next}`, true));
    const [first, second] = found;
    expect(first).toEqual({ line: 1, text: undefined, resourceType: 'Group' });
    expect(second).toMatchObject({ text: '{}' });
  });
});
