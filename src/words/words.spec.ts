import { PERSON_CODES, RESOLVE_ACTIONS } from './person-words.js';
import type { Word } from './word.js';
import { codesOf, inSentence, labelOf, labelOfReason } from './words.js';

test('a recommended action is one that the hint names, or a retry', () => {
  const recommended = Object.entries<Word>(PERSON_CODES).filter(([, { action }]) => action !== undefined);
  expect(recommended).not.toEqual([]);
  for (const [, { hint = '', action = '' }] of recommended) {
    expect(codesOf<string>(RESOLVE_ACTIONS)).toContain(action);
    expect(action === 'retry' || hint.includes(`"${action}"`) || hint.includes('one of the choices')).toBe(true);
  }
});

test('a code of another version is its own label', () => {
  expect([labelOf('personState', 'synced'), labelOf('personState', 'resting')]).toEqual(['Synced', 'resting']);
});

test('a reason is one of a row or of its person', () => {
  expect(['bad-email', 'email-taken'].map(labelOfReason)).toEqual(['Invalid email', 'Email used twice']);
});

test('a label within a sentence begins in lower case, unless it begins with a name', () => {
  const labels = ['To create or link', 'API key rejected', 'PLATFORM_CONTRACT is empty', 'OK'];
  expect(labels.map(inSentence)).toEqual(['to create or link', ...labels.slice(1)]);
});
