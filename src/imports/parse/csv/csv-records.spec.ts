import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { propertyRuns } from '../../../config/property-runs.spec-support.js';
import type { BrokenLine, CsvRecord } from '../row/import-row.js';
import { type CsvDialect, CsvRecords } from './csv-records.js';

const comma: CsvDialect = { delimiter: ',', newline: '\n' };

function split(text: string, limit = 1000, chunk = text.length || 1, dialect = comma): (CsvRecord | BrokenLine)[] {
  const records = new CsvRecords(dialect, limit);
  const found: (CsvRecord | BrokenLine)[] = [];
  for (let at = 0; at < text.length; at += chunk) found.push(...records.push(text.slice(at, at + chunk)));
  found.push(...records.push('', true));
  return found;
}

const cellsOf = (text: string) => split(text).map((record) => ('cells' in record ? record.cells : record.broken));

describe('records of a CSV file', () => {
  it('agree with csv-parse on every well-formed file', () => {
    const cell = fc.oneof(
      fc.string({ unit: fc.constantFrom('a', 'é', '"', ',', ';', ' ', '\n', '\r\n', "'", '😀'), maxLength: 8 }),
      fc.constantFrom('', 'plain', '""'),
    );
    const written = fc.array(fc.array(cell, { minLength: 2, maxLength: 4 }), { maxLength: 6 }).map((rows) =>
      rows
        .map((row) => row.map((text) => (/[",\r\n ]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)).join(','))
        .map((line) => `${line}\n`)
        .join(''),
    );
    const options = { relax_column_count: true, record_delimiter: ['\n', '\r\n'] };
    fc.assert(
      fc.property(written, (text) => {
        expect(cellsOf(text)).toEqual(parse(text, options));
      }),
      propertyRuns(),
    );
  });

  it('do not depend on how the text was cut into pieces, and cover every line once', () => {
    const unit = fc.constantFrom('a', 'b', '"', '"', ',', '\n', '\n', '\r', ' ');
    const text = fc.string({ unit, maxLength: 120 });
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 9 }), fc.integer({ min: 3, max: 40 }), (file, chunk, limit) => {
        const whole = split(file, limit);
        expect(split(file, limit, chunk)).toEqual(whole);
        const lines = file.split('\n').length - (file === '' || file.endsWith('\n') ? 1 : 0);
        let next = 1;
        for (const { line, span } of whole) {
          expect(line).toBe(next);
          next += span;
        }
        expect(next - 1).toBe(lines);
      }),
      propertyRuns(),
    );
  });

  it('a stray quote costs its own line, not the rest of the file', () => {
    const file = 'id,name\n1,"Ann\n2,Bea\n3,"Cy, the third"\n4,Dee\n';
    expect(cellsOf(file)).toEqual([['id', 'name'], 'bad-quote', ['2', 'Bea'], ['3', 'Cy, the third'], ['4', 'Dee']]);
    expect(cellsOf('1,"said "hi" loud"\n2,x')).toEqual(['bad-quote', ['2', 'x']]);
    expect(cellsOf('1,"never closed\n2,x')).toEqual(['bad-quote', ['2', 'x']]);
  });

  it('quotes inside a cell that does not begin with one are part of it', () => {
    expect(cellsOf('1,Robert "Bob" Roe\n')).toEqual([['1', 'Robert "Bob" Roe']]);
  });

  it('blanks around quotes are not part of the cell', () => {
    expect(cellsOf('1, "Roe, Ann" ,x\n')).toEqual([['1', 'Roe, Ann', 'x']]);
  });

  it('a quoted cell may hold line ends, and the following line numbers know of it', () => {
    const [first, second] = split('1,"a\r\nb\nc"\r\n2,x\r\n');
    expect(first).toEqual({ line: 1, span: 3, cells: ['1', 'a\r\nb\nc'] });
    expect(second).toEqual({ line: 4, span: 1, cells: ['2', 'x'] });
  });

  it('a line over the limit is skipped without being kept', () => {
    const records = new CsvRecords(comma, 100);
    const found = [...records.push('1,a\n2,')];
    for (let piece = 0; piece < 1000; piece++) found.push(...records.push('x'.repeat(1000)));
    expect(Object.values(records).every((kept) => typeof kept !== 'string' || kept.length < 100)).toBe(true);
    found.push(...records.push('\n3,c', true));
    expect(found).toEqual([
      { line: 1, span: 1, cells: ['1', 'a'] },
      { line: 2, span: 1, broken: 'row-too-large', text: '' },
      { line: 3, span: 1, cells: ['3', 'c'] },
    ]);
  });

  it('an open quote keeps no more than the limit, and the lines behind it are read', () => {
    const records = new CsvRecords(comma, 100);
    const found = [...records.push('1,"a\n')];
    for (let line = 2; line <= 1000; line++) {
      found.push(...records.push(`${line},b\n`));
      expect(Object.values(records).every((kept) => typeof kept !== 'string' || kept.length < 200)).toBe(true);
    }
    expect(found).toHaveLength(1000);
    expect(found.slice(0, 2)).toEqual([
      { line: 1, span: 1, broken: 'bad-quote', text: '1,"a' },
      { line: 2, span: 1, cells: ['2', 'b'] },
    ]);
  });

  it('the line on which a quote proves stray may begin a record of several lines', () => {
    expect(cellsOf('1,"a\n2,b\n3,"c\nd"\n4,e\n')).toEqual(['bad-quote', ['2', 'b'], ['3', 'c\nd'], ['4', 'e']]);
  });

  it('lines of an old Mac end with a carriage return', () => {
    const records = split('1,a\r2,"b\rc"\r3,d', 1000, 3, { delimiter: ',', newline: '\r' });
    expect(records.map(({ line }) => line)).toEqual([1, 2, 4]);
  });
});
