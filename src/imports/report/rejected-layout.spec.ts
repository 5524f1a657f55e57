import { rejectedLayout } from './rejected-layout.js';

test('the rows of one file keep its columns', () => {
  const { columns, arrange } = rejectedLayout([{ file: 1, columns: ['MRN', 'Ward'], kinds: ['client'] }]);
  expect([columns, arrange(1, 'client', ['1', '2', '3'])]).toEqual([
    ['MRN', 'Ward'],
    ['1', '2', '3'],
  ]);
});

test('rows of files with different columns come under the documented ones, with their kind', () => {
  const { columns, arrange } = rejectedLayout([
    { file: 1, columns: ['Id', 'E-Mail', 'First Name', 'Last Name', 'Room'], kinds: ['provider'] },
    { file: 2, columns: ['Last Name', 'MRN', 'First Name', 'Therapist', 'Ward'], kinds: ['client'] },
  ]);
  expect(columns).toEqual(['kind', 'externalId', 'email', 'firstName', 'lastName', 'providers', 'Room', 'Ward']);
  expect(arrange(1, 'provider', ['1', 'mail', 'Ann', 'Lee', '7'])).toEqual([
    ...['provider', '1', 'mail', 'Ann', 'Lee', '', '7', ''],
  ]);
  expect(arrange(2, 'client', ['Roe', '2', 'Cleo', 'p-1', 'B'])).toEqual([
    ...['client', '2', '', 'Cleo', 'Roe', 'p-1', '', 'B'],
  ]);
});

test('cells beyond the columns of their file stay behind the others', () => {
  const { columns, arrange } = rejectedLayout([
    { file: 1, columns: ['Id', 'E-Mail', 'First Name', 'Last Name'], kinds: ['provider'] },
    { file: 2, columns: ['MRN', 'First Name', 'Last Name'], kinds: ['client'] },
  ]);
  expect(arrange(2, 'client', ['2', 'Cleo', 'Roe', 'surplus']).slice(columns.length)).toEqual(['surplus']);
});

test('nothing rejected is a file with the documented header', () => {
  expect(rejectedLayout([]).columns).toContain('externalId');
});
