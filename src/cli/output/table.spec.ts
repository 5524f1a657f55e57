import { printTable, table } from './table.js';

test('columns are as wide as their widest cell, and what is missing is a dash', () => {
  const lines = table(
    ['id', 'why'],
    [
      ['P-101', null],
      [7, 'two\nlines'],
    ],
  );
  expect(lines).toBe('id     why\nP-101  –\n7      two lines');
});

async function* rowsOf(count: number): AsyncGenerator<unknown[]> {
  for (let row = 1; row <= count; row++) yield [`id-${row}`, row];
}

test('rows are printed as they come, however many: 300,000 are no list', async () => {
  let lines = 0;
  let most = 0;
  await printTable(['id', 'n'], rowsOf(300_000), (text) => {
    const count = text.split('\n').length;
    lines += count;
    most = Math.max(most, count);
  });
  expect([lines, most <= 202]).toEqual([300_001, true]);
});

test('a short list is the same table as ever, and an empty one is told', async () => {
  const out: string[] = [];
  expect(await printTable(['id', 'n'], rowsOf(2), (text) => out.push(text))).toBe(2);
  expect(out).toEqual(['id    n\nid-1  1\nid-2  2']);
  expect(await printTable(['id', 'n'], rowsOf(0), (text) => out.push(text))).toBe(0);
});
