import { isKeyName, warningsOf } from './key-rules.js';

test.each(['ehr', 'On-call (night)', 'Praxis Dr. Müller', 'administration'])('%j is a name', (name) => {
  expect(isKeyName(name)).toBe(true);
});

test.each([
  '',
  ' ehr',
  'ehr\u001b[2K\u001b[1Aok',
  'ehr\n',
  'a\u202enimda',
  'e\u200bhr',
  'a\u2028b',
  'x'.repeat(101),
  ...['admin', 'System', 'ＡＤＭＩＮ', 'unknown'],
])('%j is not a name', (name) => expect(isKeyName(name)).toBe(false));

describe('warningsOf', () => {
  const now = new Date('2026-12-01T00:00:00Z');
  const daysFromNow = (days: number) => new Date(now.getTime() + days * 86_400_000);
  const key = {
    ...{ createdAt: daysFromNow(-300), expiresAt: daysFromNow(65), lastUsedAt: daysFromNow(-1) },
    ...{ revokedAt: null, rotatedTo: null },
  };

  it.each([
    ['a key in use', {}, []],
    ['a key that ends in 30 days', { expiresAt: daysFromNow(30) }, ['expires-soon']],
    ['a key without an end', { expiresAt: null }, []],
    ['a short-lived key', { createdAt: daysFromNow(-1), expiresAt: daysFromNow(7) }, []],
    ['a key unused for 90 days', { lastUsedAt: daysFromNow(-90) }, ['unused']],
    ['an old key that was never used', { lastUsedAt: null }, ['unused']],
    ['a rotated key', { expiresAt: daysFromNow(1), rotatedTo: 'another' }, []],
    ['a revoked key', { lastUsedAt: null, revokedAt: daysFromNow(-1) }, []],
    ['an expired key', { lastUsedAt: null, expiresAt: now }, []],
  ])('%s', (_, more, warnings) => {
    expect(warningsOf({ ...key, ...more }, true, now)).toEqual(warnings);
    expect(warningsOf({ ...key, ...more }, false, now)).toEqual(['altered', ...warnings]);
  });
});
