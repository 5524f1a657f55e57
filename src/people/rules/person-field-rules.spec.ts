import { EXTERNAL_ID_MAX, isEmailAddress, isExternalId, isPersonName } from './person-field-rules.js';

test.each([
  'a@b.example',
  "o'brien+notes@clinic.example",
  'zoë@bücher.example',
  'a@localhost',
  'a.b_c-d@sub.clinic.example',
])('%s is an email address', (text) => {
  expect(isEmailAddress(text)).toBe(true);
});

test.each([
  '',
  'a',
  'a@',
  '@b.example',
  'a@b@c.example',
  'a b@c.example',
  ' a@b.example',
  'a@b..example',
  'a@.example',
  'a@b.example.',
  '.a@b.example',
  'a.@b.example',
  'a..b@c.example',
  'a\ud800@b.example',
  'a@b.example\n',
  'Ann <a@b.example>',
  'a@b.example, c@d.example',
  `${'a'.repeat(245)}@b.example`,
  null,
  7,
])('%j is not an email address', (text) => {
  expect(isEmailAddress(text)).toBe(false);
});

test('an external id is printable text without spaces at its ends', () => {
  for (const id of ['1', 'Patient/4711', 'ä b', '0'.repeat(EXTERNAL_ID_MAX)]) expect(isExternalId(id)).toBe(true);
  for (const id of ['', ' 1', '1 ', 'a\u0000b', 'a\tb', 'a\ud800', '0'.repeat(EXTERNAL_ID_MAX + 1), 1, undefined]) {
    expect(isExternalId(id)).toBe(false);
  }
});

test('a name has more than spaces, no control characters and no lone surrogates', () => {
  for (const name of ['Åsa', 'van der Berg', 'O’Neil', '陳', '𠮷']) expect(isPersonName(name)).toBe(true);
  for (const name of ['', '  ', 'a\nb', 'a\ud800', 'a'.repeat(201), null]) expect(isPersonName(name)).toBe(false);
});
