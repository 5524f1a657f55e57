import { checkPosition, startOf } from './feed-cursor.js';

type ReadUpTo = { after?: string; cursor?: string };

test.each<[ReadUpTo, string]>([
  [{}, '0'],
  [{ after: 'latest' }, 'latest'],
  [{ cursor: '1-5' }, '1-5'],
  [{ after: '0', cursor: '1-5' }, '1-5'],
  [{ cursor: '1-5', after: 'latest' }, '1-5'],
  [{ after: '1-6', cursor: '1-5' }, '1-6'],
  [{ after: '1-5', cursor: '1-10' }, '1-10'],
  [{ after: '1-9', cursor: '2-1' }, '2-1'],
])('%j continues after %s', ({ after, cursor: page }, cursor) => {
  expect(startOf(after, page)).toBe(cursor);
});

test.each<[ReadUpTo, string]>([
  [{ after: '' }, '/after'],
  [{ after: '5' }, '/after'],
  [{ after: '-1' }, '/after'],
  [{ after: '1-1.5' }, '/after'],
  [{ after: `1-${'9'.repeat(19)}` }, '/after'],
  [{ after: '1-7', cursor: 'WyIxIl0' }, '/cursor'],
])('%j is not a cursor', ({ after, cursor }, pointer) => {
  expect(() => startOf(after, cursor)).toThrow(
    expect.objectContaining({ status: 400, type: 'bad-cursor', more: { pointer } }),
  );
});

describe('the position of a reader', () => {
  const bounds = { epoch: 2n, prunedTo: 10n, head: 20n };
  const at = (number: bigint, epoch = 2n) => checkPosition({ epoch, number }, bounds);

  test.each([10n, 15n, 20n])('may be %s of a feed from 10 to 20', (number) => {
    expect(() => at(number)).not.toThrow();
  });

  test.each([
    [9n, 2n, 'deleted by retention'],
    [21n, 2n, 'ahead of the feed'],
    [15n, 1n, 'before the database was restored'],
    [15n, 3n, 'before the database was restored'],
  ])('is gone at %s of epoch %s, and the problem says why and where to continue', (number, epoch, why) => {
    expect(() => at(number, epoch)).toThrow(
      expect.objectContaining({
        status: 410,
        type: 'cursor-gone',
        detail: expect.stringContaining(why),
        more: { extensions: { continueAfter: '2-10' } },
      }),
    );
  });
});
