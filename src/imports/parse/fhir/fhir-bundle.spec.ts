import fc from 'fast-check';
import { UnreadableFile } from '../text/unreadable-file.js';
import { type BundleEntry, FhirBundle } from './fhir-bundle.js';

const SEED = Number(process.env.SEED);

function entries(text: string, limit = 10_000, chunk = text.length || 1): BundleEntry[] {
  const bundle = new FhirBundle(limit);
  const found: BundleEntry[] = [];
  for (let at = 0; at < text.length; at += chunk) found.push(...bundle.push(text.slice(at, at + chunk)));
  bundle.end();
  return found;
}

function refusal(text: string): UnreadableFile {
  try {
    entries(text);
  } catch (error) {
    expect(error).toBeInstanceOf(UnreadableFile);
    return error as UnreadableFile;
  }
  throw new Error('was not refused');
}

describe(`the entries of a Bundle (SEED=${SEED})`, () => {
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
      { seed: SEED, numRuns: 300 },
    );
  });

  it('know their line', () => {
    const text = '{\n"resourceType": "Bundle",\n"entry": [\n{"a": 1},\n\n{\n"b": "]}"},{"c":1}\n]}';
    expect(entries(text).map(({ line }) => line)).toEqual([4, 6, 7]);
  });

  it('over the limit are skipped without being kept', () => {
    const bundle = new FhirBundle(100);
    const found = [...bundle.push('{"entry":[{"a":"')];
    for (let piece = 0; piece < 1000; piece++) {
      found.push(...bundle.push('x'.repeat(1000)));
      expect(JSON.stringify(bundle).length).toBeLessThan(500);
    }
    found.push(...bundle.push('"},{"b":1}],"resourceType":"Bundle"}'));
    bundle.end();
    expect(found).toMatchObject([
      { line: 1, text: undefined },
      { line: 1, text: '{"b":1}' },
    ]);
  });

  it('a Bundle may have none', () => {
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
  ])('%s is refused', (text, code, line) => {
    expect(refusal(text)).toMatchObject({ code, line });
  });
});
