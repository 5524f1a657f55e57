import { fileFault, sentenceOf } from './cli-fault.js';

const problem = (more: object) => JSON.stringify({ type: 'urn:notebridge:problem:x', detail: 'It is wrong.', ...more });

test('prints the detail of a problem', () => {
  expect(sentenceOf(409, problem({}))).toBe('It is wrong.');
});

test('lists further faults of the request with their pointers', () => {
  const errors = [
    { pointer: '/a', detail: 'first' },
    { pointer: '/b', detail: 'must be a name' },
  ];
  expect(sentenceOf(400, problem({ errors }))).toBe('It is wrong. Also: /b must be a name.');
});

test('names a file by its name, not by its number', () => {
  const detail = 'File 2, line 7: The text is not UTF-8.';
  expect(sentenceOf(422, problem({ detail, file: 'clients.csv' }))).toBe('clients.csv, line 7: The text is not UTF-8.');
  expect(sentenceOf(422, problem({ detail }))).toBe(detail);
});

test('a rejected key: says which setting it came from', () => {
  expect(sentenceOf(401, problem({}))).toContain('NOTEBRIDGE_KEY');
});

test('names the other person that a problem is about', () => {
  expect(sentenceOf(409, problem({ kind: 'client', externalId: 'C-2' }))).toBe('It is wrong. (client C-2)');
});

test.each(['<html>', '', '[]', '{"detail":5}'])('an answer that is not a problem (%s): prints its status', (body) => {
  expect(sentenceOf(502, body)).toBe('The service answered 502 without a reason. Check its log.');
});
const failing = (code: string) => Object.assign(new Error(`${code}: open '/x'`), { code });

test.each([
  ['ENOENT', '/x/clients.csv: no such file or folder. Check the path.'],
  ['EISDIR', '/x/clients.csv is a folder. Name the files in it, one by one or as /x/clients.csv/*.csv.'],
  ['EACCES', '/x/clients.csv: this user may not open it (EACCES). Change its permissions, or choose another path.'],
  ['ENOSPC', '/x/clients.csv: the disk is full (ENOSPC). Free some space, or choose another path.'],
  ['EMFILE', '/x/clients.csv cannot be opened (EMFILE).'],
])('%s: says what to do', (code, sentence) => {
  expect(fileFault('/x/clients.csv', failing(code)).message).toBe(sentence);
});

test('an error without a code: still names the file', () => {
  expect(fileFault('a.csv', 'broken').message).toBe('a.csv cannot be opened (no reason given).');
});
