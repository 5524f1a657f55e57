import { fileFault } from './file-fault.js';

const failing = (code: string) => Object.assign(new Error(`${code}: open '/x'`), { code });

test.each([
  ['ENOENT', '/x/clients.csv: there is no such file or folder; check the path.'],
  ['EISDIR', '/x/clients.csv is a folder: name the files in it, one by one or as /x/clients.csv/*.csv.'],
  ['EACCES', '/x/clients.csv: this user may not open it (EACCES); change its rights, or choose another place.'],
  ['ENOSPC', '/x/clients.csv: the disk is full (ENOSPC); free some space, or choose another place.'],
  ['EMFILE', '/x/clients.csv can not be opened (EMFILE).'],
])('%s becomes one sentence that says what to do', (code, sentence) => {
  expect(fileFault('/x/clients.csv', failing(code)).message).toBe(sentence);
});

test('what carries no code is still one sentence about the file', () => {
  expect(fileFault('a.csv', 'broken').message).toBe('a.csv can not be opened (no reason given).');
});
