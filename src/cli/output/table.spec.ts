import { table } from './table.js';

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
