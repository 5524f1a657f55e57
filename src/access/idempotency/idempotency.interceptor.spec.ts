import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { Problem } from '../../http/problem/problem.js';
import { BodyDigest, canonicalJson, idempotencyKeyOf } from './idempotency.interceptor.js';

test.each(['a', '"8e03978e-40d5-43dd-bc93-6894a57f9324"', 'x'.repeat(255), 'with a space'])('%.20j is a key', (key) => {
  expect(idempotencyKeyOf(key)).toBe(key);
});

test.each(['', 'x'.repeat(256), 'tab\t', 'new\nline', 'ü'])('%.20j is refused', (key) => {
  expect(() => idempotencyKeyOf(key)).toThrow(Problem);
});

test('no header is no key', () => {
  expect(idempotencyKeyOf(undefined)).toBeUndefined();
});

test('two bodies are the same exactly when they hold the same values, whatever the order of their members', () => {
  const shuffled = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(shuffled);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .reverse()
        .map(([name, member]) => [name, shuffled(member)]),
    );
  };
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(canonicalJson(shuffled(value))).toBe(canonicalJson(value));
      expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
    }),
    propertyRuns(),
  );
});

function digest(body: Buffer, cuts: readonly number[], contentType?: string): string {
  const made = new BodyDigest(contentType);
  const ends = [...new Set(cuts.map((cut) => cut % (body.length + 1)))].sort((a, b) => a - b);
  let from = 0;
  for (const to of [...ends, body.length]) {
    made.update(body.subarray(from, to));
    from = to;
  }
  return made.end();
}

const cuts = fc.array(fc.nat(), { maxLength: 12 });

test('the digest is SHA-256, however the body is cut', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), cuts, (bytes, at) => {
      const body = Buffer.from(bytes);
      expect(digest(body, at)).toBe(createHash('sha256').update(body).digest('hex'));
    }),
    propertyRuns(),
  );
});

test('a form sent again under another boundary is the same form, however it is cut', () => {
  const form = (boundary: string, text: string) =>
    Buffer.from(
      `--${boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\n${text}\r\n--${boundary}\r\n` +
        `Content-Disposition: form-data; name="b"; filename="b.csv"\r\n\r\n--x\r\n--${boundary}--\r\n`,
    );
  const type = (boundary: string) => `multipart/form-data; boundary=${boundary}`;
  fc.assert(
    fc.property(fc.string({ maxLength: 30 }), cuts, cuts, (text, one, other) => {
      const first = digest(form('----boundaryOne1', text), one, type('----boundaryOne1'));
      expect(digest(form('----x', text), other, 'multipart/form-data; charset=utf-8; boundary="----x"')).toBe(first);
      expect(digest(form('----x', `${text}.`), other, type('----x'))).not.toBe(first);
    }),
    propertyRuns(),
  );
});
