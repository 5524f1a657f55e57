import fc from 'fast-check';
import { Problem } from '../../http/problem/problem.js';
import { canonicalJson, idempotencyKeyOf } from './idempotency.interceptor.js';

const seed = Number(process.env.SEED);

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
    { seed },
  );
});
