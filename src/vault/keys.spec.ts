import { parseKeys } from './keys.js';

test('a pair is a name and the bytes of its key; base64 may hold slashes and plusses', () => {
  const key = Buffer.alloc(32, 0xfb);
  expect(parseKeys([`2026-a:${key.toString('base64')}`])).toEqual([{ id: '2026-a', key }]);
});
