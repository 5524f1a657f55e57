import { byteSize, counted, duration } from './duration.js';

test.each([
  [0, '0 s'],
  [59.4, '59 s'],
  [59.6, '1 min'],
  [61, '1 min 1 s'],
  [3_599, '59 min 59 s'],
  [3_600, '1 h'],
  [7_300, '2 h 1 min'],
  [-3, '0 s'],
])('%d seconds are said as %s', (seconds, words) => expect(duration(seconds)).toBe(words));

test.each([
  [0, '0 B'],
  [1023, '1023 B'],
  [1024, '1.0 KiB'],
  [1.5 * 1024 ** 3, '1.5 GiB'],
])('%d bytes are said as %s', (bytes, words) => expect(byteSize(bytes)).toBe(words));

test('a count agrees with its noun', () => {
  expect([counted(1, 'row'), counted(0, 'row'), counted(12_345, 'row')]).toEqual(['1 row', '0 rows', '12,345 rows']);
});
