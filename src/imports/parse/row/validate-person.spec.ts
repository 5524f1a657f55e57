import { type PersonCandidate, validatePerson } from './validate-person.js';

const client: PersonCandidate = {
  kind: 'client',
  externalId: 'c-1',
  firstName: 'Ada',
  lastName: 'Osei',
  providers: ['p-1'],
};

function fault(change: Partial<PersonCandidate>) {
  const outcome = validatePerson({ ...client, ...change });
  return 'code' in outcome ? [outcome.code, outcome.field] : 'accepted';
}

describe('a person to import', () => {
  it('has trimmed names and email, and each provider once', () => {
    const messy = {
      ...client,
      firstName: ' Ada ',
      lastName: '\u00a0Osei',
      email: ' ada@example.org ',
      providers: ['p-2', 'p-1', 'p-2'],
    };
    expect(validatePerson(messy)).toEqual({
      kind: 'client',
      externalId: 'c-1',
      firstName: 'Ada',
      lastName: 'Osei',
      email: 'ada@example.org',
      providers: ['p-2', 'p-1'],
    });
  });

  it.each([
    ["d'amore+notes@example.org"],
    ['rodríguez@example.org'],
    ['müller@bücher.example'],
    ['a.b-c_d@mail.example.co.uk'],
  ])('may have the email %s', (email) => {
    expect(fault({ email })).toBe('accepted');
  });

  it.each([
    ['ann roe@example.org'],
    ['example.org'],
    ['ann@'],
    ['@example.org'],
    ['ann@@example.org'],
    ['a@example.org;b@example.org'],
    ['Ann <ann@example.org>'],
    ['ann@exa\u0000mple.org'],
    ['ann\ud800@example.org'],
  ])('may not have the email %j', (email) => {
    expect(fault({ email })).toEqual(['bad-email', 'email']);
  });

  it('needs an email as a provider, not as a client', () => {
    expect(fault({ email: '' })).toBe('accepted');
    expect(fault({ kind: 'provider', email: '  ' })).toEqual(['missing-field', 'email']);
  });

  it.each([
    [{ externalId: '' }, 'missing-field', 'externalId'],
    [{ externalId: undefined }, 'missing-field', 'externalId'],
    [{ externalId: ' c-1' }, 'bad-id', 'externalId'],
    [{ externalId: 'c\u0000' }, 'bad-character', 'externalId'],
    [{ externalId: 'c\udc00' }, 'bad-character', 'externalId'],
    [{ externalId: 'c\u200b-1' }, 'invisible-character', 'externalId'],
    [{ providers: ['\ufeffp-1'] }, 'invisible-character', 'providers'],
    [{ externalId: 'c'.repeat(201) }, 'too-long', 'externalId'],
    [{ firstName: ' ' }, 'missing-field', 'firstName'],
    [{ lastName: undefined }, 'missing-field', 'lastName'],
    [{ lastName: 'O\nsei' }, 'line-break', 'lastName'],
    [{ lastName: 'O\u0000sei' }, 'bad-character', 'lastName'],
    [{ externalId: '1.23E+15' }, 'scientific-id', 'externalId'],
    [{ platformUserId: '7' }, 'bad-platform-user-id', 'platformUserId'],
    [{ firstName: 'A'.repeat(201) }, 'too-long', 'firstName'],
    [{ email: `${'a'.repeat(250)}@example.org` }, 'too-long', 'email'],
    [{ providers: ['p-1', ''] }, 'missing-field', 'providers'],
    [{ providers: ['p'.repeat(201)] }, 'too-long', 'providers'],
    [{ providers: Array.from({ length: 101 }, (_, i) => `p-${i}`) }, 'too-many-providers', 'providers'],
  ] as const)('is rejected: %j', (change, code, field) => {
    expect(fault(change as Partial<PersonCandidate>)).toEqual([code, field]);
  });

  it('a client with a bad email is told that it needs none', () => {
    const hint = (kind: 'client' | 'provider') => validatePerson({ ...client, kind, email: 'x' });
    expect(hint('client')).toMatchObject({ hint: expect.stringContaining('A client needs no email') });
    expect(hint('provider')).toMatchObject({ hint: expect.not.stringContaining('needs no email') });
  });

  it('may have ids and names of 200 characters', () => {
    expect(fault({ externalId: 'c'.repeat(200), firstName: 'A'.repeat(200) })).toBe('accepted');
  });
});
