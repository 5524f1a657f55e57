import { Problem } from '../../http/problem/problem.js';
import { readNoteSearch } from './note-search.js';
import { ANY_TIME } from './time-range.js';

const read = (query: string, isStrict = false) => {
  const values = new URLSearchParams(query);
  const all = [...new Set(values.keys())].map((name) => {
    const [first, ...more] = values.getAll(name);
    return [name, more.length > 0 ? [first, ...more] : first];
  });
  return readNoteSearch(Object.fromEntries(all), isStrict);
};

function problemOf(query: string, isStrict = false): string {
  try {
    read(query, isStrict);
  } catch (error) {
    if (error instanceof Problem) return `${error.status} ${error.type}`;
  }
  return 'none';
}

describe('a search for notes', () => {
  it('without parameters is for all notes', () => {
    expect(read('')).toEqual({
      ...{ client: undefined, appointment: undefined, document: undefined, matchesNone: false, cursor: undefined },
      ...{ date: ANY_TIME, lastUpdated: ANY_TIME, count: 20, parameters: [] },
    });
  });

  it.each(['patient.identifier=C-1', 'patient:identifier=C-1', 'patient.identifier=urn:notebridge:client|C-1'])(
    '%s names a client',
    (query) => {
      expect(read(query)).toMatchObject({ client: 'C-1', appointment: undefined, matchesNone: false });
    },
  );

  it.each(['encounter.identifier=a-1', 'encounter:identifier=urn:notebridge:appointment|a-1'])(
    '%s names an appointment',
    (query) => {
      expect(read(query)).toMatchObject({ client: undefined, appointment: 'a-1', matchesNone: false });
    },
  );

  it.each(['patient.identifier=|C-1', 'patient.identifier=urn:other|C-1', 'encounter.identifier=urn:other|a-1'])(
    '%s matches no note',
    (query) => {
      expect(read(query)).toMatchObject({ matchesNone: true, client: undefined, appointment: undefined });
    },
  );

  it('with _id names a document, and none if the id is not a UUID', () => {
    const id = '0f4bb8a2-6a0e-4d3b-9b53-0d5b6a6c1a01';
    expect(read(`_id=${id}`)).toMatchObject({ document: id, matchesNone: false });
    expect(read('_id=x')).toMatchObject({ document: undefined, matchesNone: true });
  });

  it('takes all dates together', () => {
    expect(read('date=ge2026-03-01&date=lt2026-03-02&_lastUpdated=gt2026')).toMatchObject({
      date: { from: Date.UTC(2026, 2, 1), to: Date.UTC(2026, 2, 2) },
      lastUpdated: { from: Date.UTC(2027, 0, 1) },
    });
  });

  it.each([
    ['7', 7],
    ['007', 7],
    ['50', 50],
    ['51', 50],
    ['99999999999999999999', 50],
  ])('with _count=%s has pages of %i, and this number in its links', (count, expected) => {
    const search = read(`_count=${count}`);
    expect([search.count, search.parameters]).toEqual([expected, [['_count', String(expected)]]]);
  });

  it('ignores unknown and empty parameters, and names only the others in its links', () => {
    const { parameters, cursor } = read('date=2026&_total=none&foo=1&_lastUpdated=&_cursor=abc');
    expect([parameters, cursor]).toEqual([[['date', '2026']], 'abc']);
  });

  it('keeps _format in its links, because a client that uses it follows them', () => {
    expect(read('_format=application/fhir%2Bjson').parameters).toEqual([['_format', 'application/fhir+json']]);
  });
});

describe('a search is rejected', () => {
  it.each([
    ['patient.identifier=a,b', '400 bad-search'],
    ['patient.identifier=a|b|c', '400 bad-search'],
    ['encounter.identifier=urn:x|', '400 bad-search'],
    ['date=yesterday', '400 bad-search'],
    ['date=2026,2027', '400 bad-search'],
    ['_lastUpdated=2026-02-30', '400 bad-search'],
    ['_count=-1', '400 bad-search'],
    ['_count=many', '400 bad-search'],
    ['date=ne2026', '400 search-not-supported'],
    ['_lastUpdated=ap2026', '400 search-not-supported'],
    ['patient.identifier=a&patient.identifier=b', '400 search-not-supported'],
    ['patient.identifier=a&patient:identifier=b', '400 search-not-supported'],
    ['_count=1&_count=2', '400 search-not-supported'],
    ['date:missing=true', '400 search-not-supported'],
    ['patient.identifier:exact=a', '400 search-not-supported'],
    ['patient=Patient/1', '400 search-not-supported'],
    ['patient.name=Roe', '400 search-not-supported'],
    ['subject:identifier=a', '400 search-not-supported'],
    ['_count=0', '400 search-not-supported'],
    ['_id=a,b', '400 bad-search'],
    ['_id=a&_id=b', '400 search-not-supported'],
    ['_format=xml', '406 not-acceptable'],
  ])('%s: %s', (query, problem) => {
    expect(problemOf(query)).toBe(problem);
  });

  it.each([
    ...['Patient.identifier=a', 'PATIENT=a', '_ID=a', 'Date=2026', '_lastupdated=2026', 'patient[identifier]=a'],
    ...['author.identifier=a', 'author.identifier=', '_has:x:y:z=1', 'status:not=current', 'type:in=x', 'patient='],
    ...['_sort=date', '_Sort=date', '_summary=count', '_elements=id', '_filter=x', '_list=x'],
  ])('for the form or name of %s, because ignoring it would give other notes', (query) => {
    expect(problemOf(query)).toBe('400 search-not-supported');
  });

  it.each(['patient.identifier=', 'encounter:identifier=', 'patient.identifier=&patient.identifier=a', '_id='])(
    'for the empty value of %s, because ignoring it would give all notes',
    (query) => {
      expect(problemOf(query)).toBe('400 bad-search');
      expect(() => read(query)).toThrow(expect.objectContaining({ detail: expect.stringContaining('empty') }));
    },
  );

  it('for an unknown parameter only if it is strict', () => {
    expect([problemOf('foo=1'), problemOf('foo=1', true), problemOf('date=2026', true)]).toEqual([
      ...['none', '400 search-not-supported', 'none'],
    ]);
  });

  it('without a value of the request in the problem', () => {
    for (const query of ['date=jane@roe.example', 'patient.identifier=Jane,Roe', 'patient.Jane=1']) {
      expect(() => read(query)).toThrow(expect.not.objectContaining({ detail: expect.stringMatching(/jane|roe/i) }));
    }
  });
});
