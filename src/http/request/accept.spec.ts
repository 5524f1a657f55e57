import { preferredType } from './accept.js';

const TYPES = ['application/json', 'text/markdown', 'application/fhir+json'];

describe('the preferred type', () => {
  test.each([
    [undefined, 'application/json'],
    ['', 'application/json'],
    ['*/*', 'application/json'],
    ['text/html, */*;q=0.1', 'application/json'],
    ['text/markdown', 'text/markdown'],
    ['text/*', 'text/markdown'],
    ['application/fhir+json', 'application/fhir+json'],
    ['application/fhir+json; fhirVersion=4.0', 'application/fhir+json'],
    ['application/json;q=0.5, text/markdown;q=0.6', 'text/markdown'],
    ['application/*, application/json;q=0', 'application/fhir+json'],
    ['Text/Markdown', 'text/markdown'],
    ['text/html', undefined],
    ['application/json;q=0', undefined],
    ['application/json;q=high', undefined],
  ])('Accept: %s is answered with %s', (accept, format) => {
    expect(preferredType(accept, TYPES)).toBe(format);
  });
});
