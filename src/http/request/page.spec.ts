import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { Problem } from '../problem/problem.js';
import { decodeCursor, PageQuery, pageOf } from './page.js';

const encodeCursor = (key: readonly (string | number)[]) => String(pageOf([1, 2], 1, () => key).nextCursor);

test('a cursor gives back the key that it was made of', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.string({ minLength: 1, maxLength: 1 }).filter((unit) => unit !== '\0') }),
      fc.integer(),
      (text, number) => {
        const cursor = encodeCursor([text, number]);
        expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/);
        expect(decodeCursor(cursor, 'string', 'number')).toEqual([text, number]);
      },
    ),
    propertyRuns(),
  );
});

test('a text that is not a cursor of this list is a 400 problem', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.base64String(), fc.json().map(base64url)), (cursor) => {
      try {
        expect(decodeCursor(cursor, 'string', 'number')).toHaveLength(2);
      } catch (error) {
        expect(error).toBeInstanceOf(Problem);
        expect((error as Problem).status).toBe(400);
        expect((error as Problem).type).toBe('bad-cursor');
      }
    }),
    propertyRuns(),
  );
});

test.each([
  [['2026-11-21T04:00:00.000Z', 'b3b0c1f0-5a8b-4a53-8f57-7bb1f9d2a111', '12'], true],
  [['2026-11-41T04:00:00.000Z', 'b3b0c1f0-5a8b-4a53-8f57-7bb1f9d2a111', '12'], false],
  [['2026-02-31T04:00:00.000Z', 'b3b0c1f0-5a8b-4a53-8f57-7bb1f9d2a111', '12'], false],
  [['2026-02-28', 'b3b0c1f0-5a8b-4a53-8f57-7bb1f9d2a111', '12'], false],
  [['2026-11-21T04:00:00.000Z', 'x', '12'], false],
  [['2026-11-21T04:00:00.000Z', 'b3b0c1f0-5a8b-4a53-8f57-7bb1f9d2a111', '1'.repeat(19)], false],
])('a cursor holds only what SQL can read: %j %s', (key, fits) => {
  const decode = () => decodeCursor(encodeCursor(key), 'time', 'uuid', 'bigint');
  if (fits) expect(decode()).toEqual(key);
  else expect(decode).toThrow(Problem);
});

test.each([[['a\0b', 1]], [['a', 1.5]], [['a', 2 ** 31]]])(
  'a cursor holds no NUL and only whole numbers of 32 bits: %j',
  (key) => {
    expect(() => decodeCursor(encodeCursor(key), 'string', 'number')).toThrow(Problem);
  },
);

test('a page has 50 items by default', () => {
  expect(new PageQuery().limit).toBe(50);
});

test('no cursor is the first page', () => {
  expect(decodeCursor(undefined, 'string')).toBeUndefined();
});

test('a page has a next one only when a further row was read', () => {
  const rows = ['a', 'b', 'c'];
  const page = (limit: number) =>
    pageOf(
      rows,
      limit,
      (row) => [row],
      (row) => row.toUpperCase(),
    );
  expect(page(2)).toEqual({ items: ['A', 'B'], nextCursor: encodeCursor(['b']) });
  expect(page(3)).toEqual({ items: ['A', 'B', 'C'], nextCursor: null });
  expect(
    pageOf(
      [],
      3,
      () => [],
      (row) => row,
    ),
  ).toEqual({ items: [], nextCursor: null });
});

function base64url(text: string): string {
  return Buffer.from(text).toString('base64url');
}
