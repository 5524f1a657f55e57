import { PERSON_CODES, RESOLVE_ACTIONS } from './person-words.js';
import type { Word } from './word.js';
import { codesOf, inSentence, labelOf, labelOfReason, WORDS } from './words.js';

const ALL = Object.entries(WORDS).flatMap(([name, words]) =>
  Object.entries<Word>(words).map(([code, word]) => [`${name} ${code}`, word] as const),
);

test.each(ALL)('%s has a short label in sentence case, and sentences as its hint', (_code, { label, hint, why }) => {
  expect(label).toMatch(/^[A-Z].{1,67}[^.]$|^OK$/);
  for (const text of [hint, why]) if (text !== undefined) expect(text).toMatch(/^[A-Z].*\.$/);
});

test('a recommended action is one that the hint names, or a retry', () => {
  const recommended = Object.entries<Word>(PERSON_CODES).filter(([, { action }]) => action !== undefined);
  expect(recommended).toHaveLength(11);
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
