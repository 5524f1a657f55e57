import { sentenceOf } from './cli-fault.js';

const problem = (more: object) => JSON.stringify({ type: 'urn:notebridge:problem:x', detail: 'It is wrong.', ...more });

test('a problem is said by its detail', () => {
  expect(sentenceOf(409, problem({}))).toBe('It is wrong.');
});

test('further faults of one request are named with their places', () => {
  const errors = [
    { pointer: '/a', detail: 'first' },
    { pointer: '/b', detail: 'must be a name' },
  ];
  expect(sentenceOf(400, problem({ errors }))).toBe('It is wrong. Also: /b must be a name.');
});

test('names a file by its name instead of its number', () => {
  const detail = 'File 2, line 7: The text is not UTF-8.';
  expect(sentenceOf(422, problem({ detail, file: 'clients.csv' }))).toBe('clients.csv, line 7: The text is not UTF-8.');
  expect(sentenceOf(422, problem({ detail }))).toBe(detail);
});

test('a refused key says where it came from', () => {
  expect(sentenceOf(401, problem({}))).toContain('NOTEBRIDGE_KEY');
});

test('a problem about another person names it', () => {
  expect(sentenceOf(409, problem({ kind: 'client', externalId: 'C-2' }))).toBe('It is wrong. (client C-2)');
});

test.each(['<html>', '', '[]', '{"detail":5}'])('an answer that is no problem (%s) is said by its status', (body) => {
  expect(sentenceOf(502, body)).toBe('The service answered 502 without a reason. See its log.');
});
