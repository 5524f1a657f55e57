import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { POINTER, readPointer, typeAt } from './json-pointer.js';

/** Every place of a document with the pointer to it, written as RFC 6901 says. */
function places(value: unknown, pointer = ''): [string, unknown][] {
  const below = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  const escaped = (key: string) => key.replaceAll('~', '~0').replaceAll('/', '~1');
  return [[pointer, value], ...below.flatMap(([key, item]) => places(item, `${pointer}/${escaped(key)}`))];
}

describe('JSON Pointer', () => {
  it('finds every value of any document', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (document) => {
        for (const [pointer, value] of places(document)) expect(readPointer(document, pointer)).toBe(value);
      }),
      propertyRuns(),
    );
  });

  it('reads the examples of RFC 6901, section 5', () => {
    const document = { foo: ['bar', 'baz'], '': 0, 'a/b': 1, 'c%d': 2, 'm~n': 8, ' ': 7 };
    const read = (pointer: string) => readPointer(document, pointer);
    expect(['', '/foo', '/foo/0', '/', '/a~1b', '/c%d', '/m~0n', '/ '].map(read)).toEqual([
      ...[document, document.foo, 'bar', 0, 1, 2, 8, 7],
    ]);
  });

  it('ignores inherited members', () => {
    for (const pointer of [
      '/constructor',
      '/__proto__',
      '/list/length',
      '/list/-',
      '/list/01',
      '/list/2',
      '/text/0',
      '/none/x',
    ]) {
      expect(readPointer({ list: [1, 2], text: 'abc', none: null }, pointer)).toBeUndefined();
    }
  });

  it('rejects other texts', () => {
    expect(['a', '/~', '/~2', 'a/b', '#/a'].filter((text) => POINTER.test(text))).toEqual([]);
  });
});

test.each([
  ['/text', 'a text'],
  ['/blank', 'an empty text'],
  ['/number', 'a number'],
  ['/boolean', 'a boolean'],
  ['/null', 'null'],
  ['/list', 'a list'],
  ['/none', 'an empty list'],
  ['', 'an object'],
  ['/absent', 'nothing (the top is an object without it)'],
  ['/absent/deep', 'nothing (the top is an object without it)'],
  ['/list/9', 'nothing (/list is a list)'],
  ['/text/a', 'nothing (/text is a text)'],
  ['/null/a/b', 'nothing (/null is null)'],
])('typeAt names what is at %j without its value', (pointer, type) => {
  const answer = { text: 'x', blank: ' ', number: 1, boolean: false, null: null, list: [1], none: [] };
  expect(typeAt(answer, pointer)).toBe(type);
});
