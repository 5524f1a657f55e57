import { csvLine } from './csv-line.js';

test.each([
  [['a', '', "O'Hara"], "a,,O'Hara"],
  [['a,b', 'a;b', 'a"b', ' a'], '"a,b","a;b","a""b"," a"'],
  [['=1', '+1', '-1', '@a', '＝1', "'=1"], "'=1,'+1,'-1,'@a,'＝1,''=1"],
  [[' =1', '\t1'], `' =1,"'\t1"`],
])('%j becomes %s', (cells, line) => expect(csvLine(cells)).toBe(`${line}\r\n`));
