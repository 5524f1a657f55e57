import { readHeader } from './csv-header.js';

test('columns from which nothing is read are named, so that a misspelt one is seen', () => {
  const cells = ['externalId', 'emial', ' First Name ', 'lastName', 'providers', ' Room no. ', '', ' '];
  expect(readHeader(cells, 'clients', 1).ignored).toEqual(['emial', 'Room no.']);
  expect(readHeader(['kind', ...cells], 'fhir', 1).ignored).toEqual(['emial', 'Room no.']);
});

test('a file of providers has no use for the column of whom clients see', () => {
  const cells = ['externalId', 'email', 'firstName', 'lastName', 'providers'];
  expect(readHeader(cells, 'providers', 1).ignored).toEqual(['providers']);
  expect(readHeader([...cells.slice(0, 4), 'line', 'code', 'hint', 'check'], 'providers', 1).ignored).toEqual([]);
});

test('what does not look like a name is not repeated', () => {
  expect(readHeader(['id', 'first', 'last', '12 Elm St', 'x@mail.example'], 'clients', 1).ignored).toEqual([]);
});
