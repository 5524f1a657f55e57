import fc from 'fast-check';
import { propertyRuns } from '../config/property-runs.spec-support.js';
import { Problem } from '../http/problem/problem.js';
import { canonicalJson, describedBody, idempotencyKeyOf } from './idempotency.interceptor.js';

test.each(['a', '"8e03978e-40d5-43dd-bc93-6894a57f9324"', 'x'.repeat(255), 'with a space'])('%.20j is a key', (key) => {
  expect(idempotencyKeyOf(key)).toBe(key);
});

test.each(['', 'x'.repeat(256), 'tab\t', 'new\nline', 'ü'])('%.20j is refused', (key) => {
  expect(() => idempotencyKeyOf(key)).toThrow(Problem);
});

test('no header is no key', () => {
  expect(idempotencyKeyOf(undefined)).toBeUndefined();
});

test('bodies are equal exactly if they hold the same values, in any member order', () => {
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

test('a multipart body is described without its boundary, which differs in each attempt', () => {
  const described = (contentType: string) => describedBody({ 'content-type': contentType, 'content-length': '7' });
  const form = described('multipart/form-data; boundary=a');
  expect(described('multipart/form-data; BOUNDARY="b"')).toBe(form);
  expect(described('multipart/form-data; boundary=a; charset=utf-8')).not.toBe(form);
  expect(described('multipart/mixed; boundary=a')).not.toBe(form);
  expect(describedBody({ 'content-type': 'multipart/form-data', 'content-length': '8' })).not.toBe(form);
});
