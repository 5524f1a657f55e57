import { readingOf } from './upload-parts.js';

const file = (mediaType: string, name = 'people') => ({ name, mediaType, content: (async function* () {})() });

describe('how a file is read', () => {
  it.each([
    ['text/csv', 'people', 'csv'],
    ['application/octet-stream', 'people.NDJSON', 'ndjson'],
    ['', 'people.csv', 'csv'],
  ])('%j, %s: as %s', (mediaType, name, format) => {
    expect(readingOf(file(mediaType, name), 'clients')).toEqual({ format, kind: 'clients' });
  });

  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'application/xml'])(
    'a sender that calls it %s is refused',
    (mediaType) => {
      expect(() => readingOf(file(mediaType), 'clients')).toThrow(expect.objectContaining({ type: 'unknown-format' }));
    },
  );
});
