import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { Problem } from '../../http/problem/problem.js';
import { readNoteSearch } from './note-search.js';
import { ANY_TIME } from './time-range.js';

const read = (query: string) => readNoteSearch([...new URLSearchParams(query)]);

function problemOf(query: string): [kind: string, parameter?: unknown] {
  try {
    read(query);
  } catch (error) {
    if (error instanceof Problem) return [`${error.status} ${error.type}`, error.more.extensions?.parameter];
  }
  return ['none'];
}

describe('a search for notes', () => {
  it('without parameters is for all notes', () => {
    expect(read('')).toEqual({
      ...{ client: undefined, document: undefined, matchesNone: false, cursor: undefined },
      ...{ date: ANY_TIME, lastUpdated: ANY_TIME, count: 20, parameters: [] },
    });
  });

  it.each([
    ['C-1', 'C-1'],
    ['urn:notebridge:client|C-1', 'C-1'],
    ['C\\|1', 'C|1'],
    ['urn:notebridge:client|c\\$d\\\\', 'c$d\\'],
    ['C:\\x', 'C:\\x'],
  ])('with the identifier %s names the client %s', (identifier, client) => {
    for (const name of ['patient.identifier', 'patient:identifier'])
      expect(readNoteSearch([[name, identifier]])).toMatchObject({ client, matchesNone: false });
  });

  it('reads the identifier of any client', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), (client) => {
        const escaped = client.replace(/[\\|,$]/g, '\\$&');
        for (const token of [escaped, `urn:notebridge:client|${escaped}`])
          expect(readNoteSearch([['patient.identifier', token]]).client).toBe(client);
      }),
      propertyRuns(),
    );
  });

  it.each(['patient.identifier=|C-1', 'patient.identifier=urn:other|C-1'])('%s matches no note', (query) => {
    expect(read(query)).toMatchObject({ matchesNone: true, client: undefined });
  });

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

  it('ignores _pretty and _total, and names only the others in its links', () => {
    const { parameters, cursor } = read('date=2026&_total=none&_pretty=true&_cursor=abc');
    expect([parameters, cursor]).toEqual([[['date', '2026']], 'abc']);
  });

  it('keeps _format in its links, because a client that uses it follows them', () => {
    expect(read('_format=application/fhir%2Bjson').parameters).toEqual([['_format', 'application/fhir+json']]);
  });
});

describe('a search is rejected', () => {
  it.each([
    ...['patient.identifier=a,b', 'patient.identifier=a|b|c', 'patient:identifier=urn:x|', 'patient.identifier=|'],
    ...['date=yesterday', 'date=2026,2027', '_lastUpdated=2026-02-30', 'date=ne2026', '_lastUpdated=ap2026'],
    ...['_count=-1', '_count=0', '_count=many', '_id=a,b'],
  ])('for the value of %s', (query) => {
    expect(problemOf(query)).toEqual(['400 bad-search', undefined]);
  });

  it.each([
    ...['patient.identifier', 'patient:identifier', '_id', 'date', '_lastUpdated', '_count', '_cursor', '_format'],
    ...['_total', '_pretty'],
  ])('for an empty %s, because it may be a variable that is not set', (name) => {
    for (const query of [`${name}=`, `${name}=&${name}=2026`]) {
      expect(problemOf(query)).toEqual(['400 bad-search', undefined]);
      expect(() => read(query)).toThrow(
        expect.objectContaining({ detail: expect.stringContaining(`${name} is empty`) }),
      );
    }
  });

  it.each([
    ...['author', 'status', 'period', 'type', 'category', 'encounter', 'encounter.identifier', 'subject', 'patient'],
    ...['identifier', 'related', 'location', 'event', '_has:x:y:z', '_list', '_filter', '_tag', '_text', '_query'],
    ...['patient.name', 'patient.identifier:exact', 'subject:identifier', 'author.identifier', 'patient[identifier]'],
    ...['date:missing', 'status:not', 'type:in', '_id:not', '_lastUpdated:missing'],
    ...['Patient.identifier', 'PATIENT', '_ID', 'Date', '_lastupdated', 'patien', 'foo', '__proto__'],
    ...['_sort', '_summary', '_elements', '_include', '_revinclude', '_contained', '_type'],
  ])('for the parameter %s, with or without a value, because ignoring it would give other notes', (name) => {
    for (const value of ['', 'a'])
      expect(problemOf(`${name}=${value}&date=2026`)).toEqual(['400 search-not-supported', name]);
  });

  it.each(['', 'She slept well', `${'x'.repeat(65)}`])('for the parameter %j, which is not repeated', (name) => {
    expect(problemOf(`${encodeURIComponent(name)}=a`)).toEqual(['400 search-not-supported', undefined]);
  });

  it.each([
    ['patient.identifier=a&patient.identifier=b', 'patient.identifier'],
    ['patient.identifier=a&patient:identifier=b', 'patient.identifier'],
    ['_count=1&_count=2', '_count'],
    ['_id=a&_id=b', '_id'],
    ['_cursor=a&_cursor=b', '_cursor'],
  ])('for a repetition: %s', (query, parameter) => {
    expect(problemOf(query)).toEqual(['400 search-not-supported', parameter]);
  });

  it('without a value of the request in the problem', () => {
    for (const query of ['date=jane@roe.example', 'patient.identifier=Jane,Roe', 'author=Jane', '_count=Jane'])
      expect(() => read(query)).toThrow(expect.not.objectContaining({ detail: expect.stringMatching(/jane|roe/i) }));
  });
});
