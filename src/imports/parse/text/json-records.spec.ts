import fc from 'fast-check';
import { propertyRuns } from '../../../config/property-runs.spec-support.js';
import { UnreadableFile } from '../row/rejection.js';
import type { JsonRecord } from './json-cutter.js';
import { BundleEntries, JsonLines } from './json-records.js';

function pushed(records: JsonLines | BundleEntries, text: string, chunk = text.length || 1): JsonRecord[] {
  const found: JsonRecord[] = [];
  for (let at = 0; at < text.length; at += chunk) found.push(...records.push(text.slice(at, at + chunk), false));
  return [...found, ...records.push('', true)];
}

const linesOf = (text: string, limit: number, chunk?: number) => pushed(new JsonLines(limit), text, chunk);
const entriesOf = (text: string, limit = 10_000, chunk?: number) => pushed(new BundleEntries(limit), text, chunk);
const parsed = (records: JsonRecord[]) => records.map(({ text }) => JSON.parse(text ?? '"too large"'));
const bundleOf = (entry: unknown[], more: object = {}) => ({ resourceType: 'Bundle', ...more, entry });

describe('JsonLines', () => {
  it('cuts the same lines from chunks of any size', () => {
    const text = `one\n\n${'x'.repeat(9)}\nfour\n${'y'.repeat(8)}`;
    for (const chunk of [1, 2, 3, 5, 100]) {
      const lines = linesOf(text, 8, chunk);
      expect(lines.map((line) => line.text)).toEqual(['one', '', undefined, 'four', 'y'.repeat(8)]);
      expect(lines.map(({ line }) => line)).toEqual([1, 2, 3, 4, 5]);
    }
    expect(linesOf('', 8, 1)).toEqual([]);
  });

  it('cuts a Bundle on a line over the limit into its entries', () => {
    const entry = Array.from({ length: 50 }, (_, id) => ({ resource: { resourceType: 'Patient', id: `${id}` } }));
    const text = `{}\n${JSON.stringify(bundleOf(entry, { type: 'history' }))}\n{}`;
    for (const chunk of [3, 64, 10_000]) {
      const records = linesOf(text, 100, chunk);
      expect(parsed(records)).toEqual([{}, ...entry, bundleOf([], { type: 'history' }), {}]);
      expect(records[1]).toMatchObject({ line: 2, bundle: bundleOf([], { type: 'history' }) });
    }
  });

  it('returns a truncated Bundle as one unreadable record, after the complete entries', () => {
    const text = `${JSON.stringify(bundleOf([{ a: 1 }, { b: 'x'.repeat(50) }])).slice(0, -8)}\n{}`;
    const records = linesOf(text, 40);
    expect(records.map((record) => record.text)).toEqual(['{"a":1}', '{"resourceType":"Bundle","entry":[', '{}']);
  });
});

describe('BundleEntries', () => {
  it('finds the entries that JSON.parse finds, in chunks of any size and with any whitespace', () => {
    const bundle = fc.record({
      meta: fc.jsonValue(),
      entry: fc.array(fc.dictionary(fc.string(), fc.jsonValue())),
      link: fc.constant([{ relation: 'self', entry: ['no entry'] }]),
    });
    fc.assert(
      fc.property(
        bundle,
        fc.integer({ min: 1, max: 9 }),
        fc.nat(2),
        fc.boolean(),
        (value, chunk, indent, isTypeLast) => {
          const whole = isTypeLast ? { ...value, resourceType: 'Bundle' } : { resourceType: 'Bundle', ...value };
          const text = `\n${JSON.stringify(whole, null, indent)}\n`;
          const { entry, ...rest } = JSON.parse(text);
          expect(parsed(entriesOf(text, 100_000, chunk))).toEqual([...entry, { ...rest, entry: [] }]);
        },
      ),
      propertyRuns(),
    );
  });

  it('finds the entries of nested Bundles, each with its own Bundle', () => {
    const nested = fc.letrec<{ bundle: object; entry: object }>((tie) => ({
      bundle: fc
        .tuple(fc.array(tie('entry'), { maxLength: 3 }), fc.jsonValue())
        .map(([entry, meta]) => ({ resourceType: 'Bundle', meta, entry, total: 1 })),
      entry: fc.oneof(
        { maxDepth: 4 },
        fc.record({ fullUrl: fc.string(), resource: fc.dictionary(fc.string(), fc.jsonValue()) }),
        fc.record({ fullUrl: fc.string(), resource: tie('bundle'), search: fc.constant({ mode: 'match' }) }),
      ),
    }));
    const cut = (bundle: Record<string, unknown>, record: (bundle: object) => object): unknown[] => {
      const { entry, ...before } = bundle as { entry: Record<string, unknown>[]; total?: number };
      const { total: _, ...head } = before;
      const inner = entry.flatMap((one) => {
        const { resource, ...rest } = one as { resource: Record<string, unknown> };
        if (resource.resourceType === 'Bundle') return cut(resource, (left) => ({ ...rest, resource: left, in: head }));
        return [{ ...one, in: head }];
      });
      return [...inner, record({ ...before, entry: [] })];
    };
    fc.assert(
      fc.property(nested.bundle, fc.integer({ min: 1, max: 50 }), fc.nat(1), (value, chunk, indent) => {
        const text = JSON.stringify(value, null, indent);
        const found = entriesOf(text, 100_000, chunk).map((record) => {
          const { entry: _, ...head } = record.bundle ?? {};
          return { ...JSON.parse(record.text ?? ''), ...(record.bundle && { in: head }) };
        });
        expect(found).toEqual(cut(JSON.parse(text), (left) => left));
      }),
      propertyRuns(0.5),
    );
  });

  it('counts only the rest of a nested Bundle against the limit', () => {
    const entry = Array.from({ length: 2_000 }, (_, id) => ({ resource: { id } }));
    const records = entriesOf(JSON.stringify(bundleOf([{ resource: bundleOf(entry) }]), null, 2), 200);
    expect(records).toHaveLength(2_002);
    expect(records.every(({ text }) => text !== undefined)).toBe(true);
  });

  it('reports the line of each entry', () => {
    const text = '{\n"resourceType": "Bundle",\n"entry": [\n{"a": 1},\n\n{\n"b": "]}"},{"c":1}\n]}';
    expect(entriesOf(text).map(({ line }) => line)).toEqual([4, 6, 7, 1]);
  });

  it('leaves entries that are not objects in the Bundle', () => {
    expect(entriesOf('{"resourceType":"Bundle","entry":["a", {"b":1}]}').map(({ text }) => text)).toEqual([
      '{"b":1}',
      '{"resourceType":"Bundle","entry":["a"]}',
    ]);
  });

  it.each([
    ['{"resourceType":"Patient"}', 'not-a-bundle', 1],
    ['{"resourceType":"Bundle",\n"entry":[{"a":1},', 'bad-json', 2],
    ['{"resourceType":"Bundle","entry":[{"a":', 'bad-json', 1],
    ['{"resourceType":"Bundle","entry":[{"a":"\n', 'bad-json', 2],
    ['{"resourceType":"Bundle"}\n{}', 'bad-json', 2],
    ['{"resourceType":"Bundle"}}', 'bad-json', 1],
    ['[{}]', 'bad-json', 1],
    ['"Bundle"', 'bad-json', 1],
    ['', 'bad-json', 1],
  ])('refuses %j as %s', (text, code, line) => {
    expect(() => entriesOf(text)).toThrow(UnreadableFile);
    expect(() => entriesOf(text)).toThrow(expect.objectContaining({ code, line }));
  });
});

describe('a record over the limit', () => {
  it('is returned with its strings shortened to 4,096 characters', () => {
    const text = fc.array(fc.constantFrom('x', '"', '\\', '\u0001', '\ud83d\ude00', '\n'), { maxLength: 12 });
    const strings = fc.array(fc.tuple(text, fc.integer({ min: 0, max: 900 })), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(strings, fc.boolean(), fc.integer({ min: 500, max: 9_000 }), (parts, isLine, chunk) => {
        const photos = [...parts.map(([part, times]) => part.join('').repeat(times)), 'x'.repeat(30_000)];
        const whole = { photos, last: 1 };
        const found = isLine
          ? linesOf(JSON.stringify(whole), 22_000, chunk)
          : entriesOf(JSON.stringify(bundleOf([whole])), 22_000, chunk);
        const kept = JSON.parse(found[0]?.text ?? '');
        expect(kept.last).toBe(1);
        for (const [index, photo] of photos.entries()) {
          const short = kept.photos[index];
          expect(photo.startsWith(short)).toBe(true);
          // Half of a surrogate pair is written as an escape.
          const written = JSON.stringify(short).length - 2;
          expect(short === photo || (written > 4_090 && written <= 4_101)).toBe(true);
        }
      }),
      propertyRuns(0.2),
    );
  });

  it('has the type and id that JSON.parse finds', () => {
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
          const bundle = JSON.stringify(bundleOf([entry]), null, chunk % 2);
          const [found] = isLine ? linesOf(JSON.stringify(whole), 20, chunk) : entriesOf(bundle, 20, chunk);
          expect(found).toMatchObject({ text: undefined, resourceType, id: lastId });
        },
      ),
      propertyRuns(),
    );
  });

  it.each([
    ['a line', new JsonLines(5_000), '', '\n{}\n'],
    ['an entry', new BundleEntries(5_000), '{"resourceType":"Bundle","entry":[{"resource":', '},{}]}'],
  ])('takes bounded memory as %s', (_, records, before, after) => {
    const found = [...records.push(`${before}{"id":"`, false)];
    for (let piece = 0; piece < 2_000; piece++) {
      found.push(...records.push(`${'x'.repeat(1_000)}${piece % 10 ? '' : '","more":"'}`, false));
    }
    expect(JSON.stringify(records).length).toBeLessThan(12_000);
    found.push(...records.push(`","resourceType":"Group"}${after}`, true));
    expect(found[0]).toMatchObject({ text: undefined, resourceType: 'Group' });
    expect(found[1]).toMatchObject({ text: '{}' });
  });
});
