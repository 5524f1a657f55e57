import { type Breaker, type Breakers, breakerOf } from './circuit-breaker.js';
import { interpretAnswer, type RawAnswer } from './interpret-answer.js';
import { type Operation, type Refusal } from './person.js';

const NOW = Date.UTC(2026, 0, 1);
const AT = { url: 'url', base: 'base' };
const worked = { ...breakerOf({}, 'createClient'), succeededAt: NOW, ...AT };
const refused = (kind: Refusal['kind'], operation: Operation = 'createClient', count = 1): Refusal => ({
  ...{ operation, kind, count },
  at: new Date(NOW - 1),
});

/** @param refusal the person's earlier refusal; others succeed since then where a breaker `worked` */
function interpret(raw: RawAnswer, refusal: Refusal | null = null, operation: Operation = 'createClient') {
  const breakers: Breakers = { [operation]: worked };
  return interpretAnswer(raw, callOf(operation), { refusal }, breakers, AT, NOW);
}
const callOf = (operation: Operation) => ({ do: 'call', operation, state: 'pending', notBefore: null }) as const;

test.each<RawAnswer>([
  { kind: 'exists', userId: 'u1' },
  { kind: 'created', userId: 'u1' },
  { kind: 'absent' },
  { kind: 'applied' },
  { kind: 'deleted' },
])('%j is a success for everyone', (raw) => {
  expect(interpret(raw)).toEqual({ answer: raw, signal: { kind: 'success' } });
});

test.each<[RawAnswer, ReturnType<typeof interpret>]>([
  [{ kind: 'unknown' }, { answer: { kind: 'unknown' }, signal: { kind: 'unanswered', sent: true } }],
  [{ kind: 'unreachable' }, { answer: { kind: 'unreachable' }, signal: { kind: 'unanswered', sent: false } }],
  [{ kind: 'not-sent' }, { answer: { kind: 'not-sent' }, signal: { kind: 'not-sent' } }],
  [{ kind: 'unreadable' }, { answer: { kind: 'unreachable' }, signal: { kind: 'not-sent' } }],
  [
    { kind: 'rate-limited', retryAfterMs: 7 },
    { answer: { kind: 'rate-limited' }, signal: { kind: 'rate-limited', retryAfterMs: 7 } },
  ],
])('%j keeps the same meaning if it repeats', (raw, meaning) => {
  expect(interpret(raw)).toEqual(meaning);
  expect(interpret(raw, refused('stopped'))).toEqual(meaning);
});

describe.each([
  ['unauthorized', 'forbidden'],
  ['wrong-url', 'unreachable'],
] as const)('the answer %s', (kind, own) => {
  const stopped = { answer: { kind: 'stopped' }, signal: { kind } };

  test('stops the operation for everyone', () => {
    expect(interpret({ kind })).toEqual(stopped);
    expect(interpret({ kind }, null, 'deleteUser')).toEqual(stopped);
  });

  test(`is ${own} for this person if the operation succeeded for others since the last one`, () => {
    expect(interpret({ kind }, refused('stopped'))).toEqual({ answer: { kind: own }, signal: null });
  });

  test('stops the operation if the last refusal was a rejection, or of another operation', () => {
    expect(interpret({ kind }, refused('rejected'))).toEqual(stopped);
    expect(interpret({ kind }, refused('stopped', 'deleteUser'))).toEqual(stopped);
  });
});

describe('a 404', () => {
  const raw = { kind: 'not-found' } as const;
  const wrong = { answer: { kind: 'stopped' }, signal: { kind: 'wrong-url' } };

  test.each(['deleteUser', 'setClientProviders'] as const)('to %s is about the user at a proven URL', (operation) => {
    const breakers = { [operation]: worked, checkUser: worked };
    const answered = { kind: 'answered' };
    expect(interpretAnswer(raw, callOf(operation), { refusal: null }, breakers, AT, NOW)).toEqual({
      answer: { kind: 'not-found' },
      signal: answered,
    });
    expect(interpret(raw, null, operation)).toEqual({ answer: { kind: 'doubtful' }, signal: answered });
    const elsewhere = { ...AT, url: 'other' };
    expect(interpretAnswer(raw, callOf(operation), { refusal: null }, breakers, elsewhere, NOW)).toEqual(wrong);
  });

  test.each(['checkUser', 'createProvider', 'createClient'] as const)('to %s is of a wrong URL', (operation) => {
    const breakers = { [operation]: worked, setClientProviders: worked };
    expect(interpretAnswer(raw, callOf(operation), { refusal: null }, breakers, AT, NOW)).toEqual(wrong);
  });

  test('of a wrong URL is only this person’s if the operation succeeded for others since the last one', () => {
    expect(interpret(raw, refused('stopped'))).toEqual({ answer: { kind: 'unreachable' }, signal: null });
  });
});

describe('a rejection', () => {
  const raw = { kind: 'rejected', status: 422 } as const;
  const rejected = (isFinal: boolean) => ({ kind: 'rejected', isFinal });

  test('may be everyone’s', () => {
    expect(interpret(raw)).toEqual({ answer: rejected(false), signal: raw });
    expect(interpret(raw, refused('stopped'))).toEqual({ answer: rejected(false), signal: raw });
  });

  test('is final if the operation succeeded for others since the last one', () => {
    expect(interpret(raw, refused('rejected'))).toEqual({ answer: rejected(true), signal: null });
  });

  test('is final after a day, unless the operation is blocked', () => {
    const breaker = { ...worked, succeededAt: 0 };
    const repeated = (block: Breakers['createClient']) =>
      interpretAnswer(
        raw,
        callOf('createClient'),
        { refusal: refused('rejected', 'createClient', 27) },
        { createClient: block },
        AT,
        NOW,
      ).answer;
    expect(repeated(breaker)).toEqual(rejected(true));
    const block: Breaker['block'] = {
      code: 'platform-rejects',
      status: 422,
      failures: 1,
      openedAt: NOW,
      until: NOW + 1,
      probe: null,
      person: null,
    };
    expect(repeated({ ...breaker, block })).toEqual(rejected(false));
  });
});
