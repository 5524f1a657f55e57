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
      ...{ client: undefined, appointment: undefined, matchesNone: false, cursor: undefined },
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
  ])('with _count=%s has pages of %i', (count, expected) => {
    expect(read(`_count=${count}`).count).toBe(expected);
  });

  it('ignores unknown and empty parameters, and names only the others in its links', () => {
    const { parameters, cursor } = read('date=2026&_sort=date&foo=1&patient.identifier=&_cursor=abc&_format=json');
    expect([parameters, cursor]).toEqual([[['date', '2026']], 'abc']);
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
    ['_count=0', '400 bad-search'],
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
    ['_id=1', '400 search-not-supported'],
    ['_format=xml', '406 not-acceptable'],
  ])('%s: %s', (query, problem) => {
    expect(problemOf(query)).toBe(problem);
  });

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
