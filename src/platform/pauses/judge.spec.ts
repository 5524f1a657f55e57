import { type Ending, type JudgeFacts, judge } from './pause-rule.js';

const FACTS: JudgeFacts = { namesSubject: false, addressWorks: true, isBuiltIn: true, isRepeated: false };
const judged = (ending: Partial<Ending>, facts: Partial<JudgeFacts> = {}) =>
  judge({ kind: 'ok', status: null, ...ending }, { ...FACTS, ...facts });

test.each([
  ['ok', 'ok'],
  ['rate-limited', 'limited'],
  ['held', 'unsent'],
  ['not-configured', 'unsent'],
  ['unreachable', 'unreachable'],
  ['rejected', 'refused'],
  ['unknown-outcome', 'lost'],
] as const)('%s means %s, even if it repeats', (kind, verdict) => {
  expect(judged({ kind })).toBe(verdict);
  expect(judged({ kind }, { isRepeated: true })).toBe(verdict);
});

test('a 401 is about the API key, and a 403 about the operation', () => {
  expect(judged({ kind: 'unauthorized', status: 401 })).toBe('unauthorized');
  expect(judged({ kind: 'unauthorized', status: 403 })).toBe('elsewhere');
});

test.each(['rejected', 'unknown-outcome', 'not-found'] as const)('%s of another address is about everyone', (kind) => {
  for (const namesSubject of [true, false])
    expect(judged({ kind, status: 405, isWrongAddress: true }, { namesSubject })).toBe('elsewhere');
});

test.each<Partial<Ending>>([
  { kind: 'unauthorized', status: 401 },
  { kind: 'unauthorized', status: 403 },
  { kind: 'rejected', status: 405, isWrongAddress: true },
  { kind: 'unknown-outcome', status: 200, isWrongAddress: true },
])('%j is about one subject if it repeats while the operation works for others', (ending) => {
  expect(judged(ending, { isRepeated: true })).toBe('personal');
});

describe('a 404', () => {
  const ending = { kind: 'not-found', status: 404 } as const;

  test('of an operation that names no subject is a refusal at an address that works, and about everyone elsewhere', () => {
    expect(judged(ending)).toBe('refused');
    expect(judged(ending, { addressWorks: false })).toBe('elsewhere');
    expect(judged(ending, { addressWorks: false, isRepeated: true })).toBe('personal');
  });

  test('means that the subject is gone only at an address that works', () => {
    const namesSubject = true;
    expect(judged(ending, { namesSubject })).toBe('gone');
    expect(judged(ending, { namesSubject, addressWorks: false })).toBe('doubtful');
    expect(judged(ending, { namesSubject, addressWorks: false, isBuiltIn: false })).toBe('unconfirmed');
  });
});
