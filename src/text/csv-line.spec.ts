import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { propertyRuns } from '../config/property-runs.spec-support.js';
import { csvLine, unguarded } from './csv-line.js';

test.each([
  [['a', '', "O'Hara"], "a,,O'Hara"],
  [['a,b', 'a;b', 'a"b', ' a'], '"a,b","a;b","a""b"," a"'],
  [['=1', '+1', '-1', '@a', '＝1', "'=1"], "'=1,'+1,'-1,'@a,'＝1,''=1"],
  [[' =1', '\t1', '\r1', '\n1'], `' =1,"'\t1","'\r1","'\n1"`],
  [['a;=1', 'a\t =1', 'a\n+1', 'a;b=1'], `"a;'=1","a\t' =1","a\n'+1","a;b=1"`],
])('%j becomes %s', (cells, line) => expect(csvLine(cells)).toBe(`${line}\r\n`));

test('no cell starts like a formula, with any separator, and unguarded gives each cell back', () => {
  const unit = fc.constantFrom('=', '+', '-', '@', "'", '"', ',', ';', '\t', '\r', '\n', ' ', 'a', 'é', '＝');
  const property = fc.property(fc.array(fc.string({ unit, maxLength: 6 }), { minLength: 2, maxLength: 3 }), (cells) => {
    const [written = []] = parse(csvLine(cells), { record_delimiter: '\r\n' }) as string[][];
    for (const cell of written) expect(cell).not.toMatch(/^\s*[=+\-@＝]/);
    // A program with another separator does not see the quotes of cells in the middle of a line.
    for (const cell of csvLine(['x', ...cells]).split(/[;\t\r\n]/)) expect(cell).not.toMatch(/^"*\s*[=+\-@＝]/);
    expect(written.map(unguarded)).toEqual(cells);
  });
  fc.assert(property, propertyRuns());
});
