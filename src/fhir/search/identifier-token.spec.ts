import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { readIdentifierToken } from './identifier-token.js';

const escaped = (text: string) => text.replace(/[\\|,$]/g, '\\$&');

it.each([
  ['C-1', undefined, 'C-1'],
  ['urn:notebridge:client|C-1', 'urn:notebridge:client', 'C-1'],
  ['|C-1', '', 'C-1'],
  ['C\\|1', undefined, 'C|1'],
  ['a\\,b|c\\$d\\\\', 'a,b', 'c$d\\'],
  ['C:\\x', undefined, 'C:\\x'],
])('%s is an identifier', (text, system, value) => {
  expect(readIdentifierToken(text)).toEqual({ system, value });
});

it.each(['', '|', 'urn:notebridge:client|', 'a|b|c', 'C-1,C-2'])('%j is rejected', (text) => {
  expect(readIdentifierToken(text)).toBeUndefined();
});

it('reads any escaped system and value', () => {
  fc.assert(
    fc.property(fc.string(), fc.string({ minLength: 1 }), (system, value) => {
      expect(readIdentifierToken(`${escaped(system)}|${escaped(value)}`)).toEqual({ system, value });
      expect(readIdentifierToken(escaped(value))).toEqual({ system: undefined, value });
    }),
    propertyRuns(),
  );
});
