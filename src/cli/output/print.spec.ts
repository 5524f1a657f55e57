import { byteSize, counted, duration, printList, table } from './print.js';

async function* items(count: number): AsyncGenerator<number> {
  for (let item = 1; item <= count; item++) yield item;
}

const FORMAT = { row: (n: number) => ({ id: `id-${n}`, n }), none: 'None found.' };

test('columns are as wide as their widest cell; a missing value is a dash', () => {
  const rows = [
    { id: 'P-101', why: null },
    { id: 7, why: 'two\nlines' },
  ];
  expect(table(rows)).toBe('id     why\nP-101  –\n7      two lines');
});

test('prints 300,000 rows without storing them in a list', async () => {
  let lines = 0;
  let most = 0;
  await printList(items(300_000), FORMAT, (text) => {
    const count = text.split('\n').length;
    lines += count;
    most = Math.max(most, count);
  });
  expect([lines, most <= 202]).toEqual([300_001, true]);
});

test.each([
  [2, false, ['id    n\nid-1  1\nid-2  2']],
  [0, false, ['None found.']],
  [2, true, ['1', '2']],
  [0, true, []],
])('a list of %d, as JSON %s', async (count, json, printed) => {
  const out: string[] = [];
  await printList(items(count), { ...FORMAT, json }, (text) => out.push(text));
  expect(out).toEqual(printed);
});

test.each([
  [0, '0 s'],
  [59.4, '59 s'],
  [59.6, '1 min'],
  [61, '1 min 1 s'],
  [3_599, '59 min 59 s'],
  [3_600, '1 h'],
  [7_300, '2 h 1 min'],
  [-3, '0 s'],
])('duration: %d seconds are %s', (seconds, words) => expect(duration(seconds)).toBe(words));

test.each([
  [0, '0 B'],
  [1023, '1023 B'],
  [1024, '1.0 KiB'],
  [1.5 * 1024 ** 3, '1.5 GiB'],
])('byteSize: %d bytes are %s', (bytes, words) => expect(byteSize(bytes)).toBe(words));

test('a count agrees with its noun', () => {
  expect([counted(1, 'row'), counted(0, 'row'), counted(12_345, 'row')]).toEqual(['1 row', '0 rows', '12,345 rows']);
});
