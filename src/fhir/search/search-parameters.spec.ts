import { SEARCH_PARAMETERS } from './search-parameters.js';

it('are the search parameters of DocumentReference in FHIR R4 (search-parameters.json)', () => {
  expect(SEARCH_PARAMETERS.map(({ name, type, definition }) => [name, type, definition])).toEqual([
    ['patient', 'reference', 'http://hl7.org/fhir/SearchParameter/clinical-patient'],
    ['encounter', 'reference', 'http://hl7.org/fhir/SearchParameter/clinical-encounter'],
    ['date', 'date', 'http://hl7.org/fhir/SearchParameter/DocumentReference-date'],
    ['_lastUpdated', 'date', 'http://hl7.org/fhir/SearchParameter/Resource-lastUpdated'],
    ['_id', 'token', 'http://hl7.org/fhir/SearchParameter/Resource-id'],
  ]);
});
