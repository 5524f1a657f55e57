import { startOf } from './feed-cursor.js';

type ReadUpTo = { lastEventId?: string; after?: string; cursor?: string };

test.each<[ReadUpTo, string]>([
  [{}, '0'],
  [{ cursor: '5' }, '5'],
  [{ after: '6', cursor: '5' }, '6'],
  [{ after: '5', cursor: '10' }, '10'],
  [{ lastEventId: '7', after: '6', cursor: '5' }, '7'],
  [{ lastEventId: '7', after: '9' }, '9'],
])('%j goes on behind %s', ({ lastEventId, after, cursor: page }, cursor) => {
  expect(startOf(lastEventId, after, page)).toBe(cursor);
});

test.each<[ReadUpTo, string | undefined]>([
  [{ after: '' }, '/after'],
  [{ after: '-1' }, '/after'],
  [{ after: '1.5' }, '/after'],
  [{ after: '9'.repeat(19) }, '/after'],
  [{ lastEventId: '7', cursor: 'WyIxIl0' }, '/cursor'],
  [{ lastEventId: 'x', after: '6' }, undefined],
])('%j is refused', ({ lastEventId, after, cursor }, pointer) => {
  expect(() => startOf(lastEventId, after, cursor)).toThrow(
    expect.objectContaining({ status: 400, type: 'bad-cursor', more: pointer === undefined ? {} : { pointer } }),
  );
});
