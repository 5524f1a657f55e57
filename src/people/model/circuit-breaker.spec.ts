import {
  afterCall,
  afterProbe,
  type Breaker,
  type BreakerCall,
  type Breakers,
  breakerOf,
  isOwnRefusal,
  isProven,
  isSilent,
  meaningOf404,
  phaseOf,
  type Signal,
} from './circuit-breaker.js';
import { BLIND_CREATE, gatesOf } from './next-step.js';
import type { Operation } from './person.js';

const NOW = Date.UTC(2026, 0, 1);
const AT = { url: 'url', base: 'base' };
const call = (id: string, person = `person-${id}`, grantedAt = NOW): BreakerCall => ({ id, person, grantedAt, ...AT });
const forbidden: Signal = { kind: 'unauthorized' };
const silent: Signal = { kind: 'unanswered', sent: true };
const rejected = (status = 402): Signal => ({ kind: 'rejected', status });
const limited = (retryAfterMs?: number): Signal => ({ kind: 'rate-limited', retryAfterMs });

/** Records the outcomes of calls for different people. */
function hear(breaker: Breaker, signals: Signal[], operation: Operation = 'createClient', now = NOW): Breaker {
  return signals.reduce(
    (before, signal, n) => afterCall(before, operation, call(`${n}`), signal, now, 0.5).breaker,
    breaker,
  );
}
const fresh = breakerOf({}, 'createClient');
const blockOf = (signals: Signal[], operation?: Operation) => hear(fresh, signals, operation).block;

/** Fails one probe after the other. @returns the lengths of the blocks in milliseconds */
function blocks(signal: Signal, operation: Operation, opening: Signal[], count: number): number[] {
  let breaker = hear(fresh, opening, operation);
  let now = NOW;
  return Array.from({ length: count }, (_, n) => {
    now = breaker.block?.until ?? now;
    breaker = afterProbe(breaker, { id: `probe-${n}`, person: 'p' }, now, 11_000);
    breaker = afterCall(breaker, operation, call(`probe-${n}`, 'p', now), signal, now, 0.5).breaker;
    return (breaker.block?.until ?? now) - now;
  });
}

describe('a breaker opens', () => {
  test.each<[string, Signal, string]>([
    ['a 403', forbidden, 'platform-unauthorized'],
    ['a wrong URL', { kind: 'wrong-url' }, 'platform-address'],
    ['a 429', limited(), 'rate-limited'],
  ])('on %s', (_what, signal, code) => {
    expect(blockOf([signal])).toMatchObject({ code });
  });

  test.each<[string, Signal, string]>([
    ['without a readable answer', silent, 'platform-fault'],
    ['with the same 4xx', rejected(), 'platform-rejects'],
  ])('only on three people in a row %s', (_what, signal, code) => {
    expect(blockOf([signal, signal])).toBeNull();
    expect(blockOf([signal, signal, signal])).toMatchObject({ code });
    expect(blockOf([signal, signal, { kind: 'success' }, signal, signal])).toBeNull();
    expect(blockOf([signal, signal, rejected(451), signal])).toBeNull();
  });

  test('not on three failures of one person', () => {
    const same = [1, 2, 3].reduce(
      (before) => afterCall(before, 'createClient', call('1', 'same'), silent, NOW, 0.5).breaker,
      fresh,
    );
    expect(same.block).toBeNull();
  });
});

test('blocks grow to ten minutes for a 403, a wrong URL and a 429 without Retry-After', () => {
  for (const signal of [forbidden, { kind: 'wrong-url' } as const, limited()]) {
    expect(blocks(signal, 'deleteUser', [signal], 9)).toEqual(
      [10, 20, 40, 80, 160, 320, 600, 600, 600].map((s) => s * 1_000),
    );
  }
});

test('blocks grow to ten minutes for unanswered creates, and to 15 s for other silence and rejections', () => {
  expect(blocks(silent, 'createClient', [silent, silent, silent], 8).at(-1)).toBe(600_000);
  const unsent: Signal = { kind: 'unanswered', sent: false };
  expect(blocks(unsent, 'createClient', [unsent, unsent, unsent], 8).at(-1)).toBe(15_000);
  expect(blocks(silent, 'checkUser', [silent, silent, silent], 8).at(-1)).toBe(15_000);
  expect(blocks(rejected(), 'createClient', [rejected(), rejected(), rejected()], 8).at(-1)).toBe(15_000);
});

describe('after a 429', () => {
  test('the block follows Retry-After, and no later value shortens it', () => {
    const opened = hear(fresh, [limited(300_000)]);
    expect(opened.block?.until).toBe(NOW + 300_000);
    expect(hear(opened, [limited(2_000)]).block?.until).toBe(NOW + 300_000);
    expect(hear(opened, [limited(400_000)]).block?.until).toBe(NOW + 400_000);
  });

  test('only the one that opens the breaker delays other operations', () => {
    const first = afterCall(fresh, 'createClient', call('1'), limited(7_000), NOW, 0.5);
    expect(first.retryAfterMs).toBe(7_000);
    expect(afterCall(first.breaker, 'createClient', call('2'), limited(9_000), NOW, 0.5).retryAfterMs).toBeUndefined();
    const probing = afterProbe(first.breaker, { id: 'probe', person: 'p' }, NOW, 11_000);
    expect(afterCall(probing, 'createClient', call('probe'), limited(9_000), NOW, 0.5).retryAfterMs).toBeUndefined();
  });
});

describe('while a breaker is open', () => {
  const opened = hear(fresh, [forbidden]);

  test('answers to calls that were in flight change nothing', () => {
    expect(hear(opened, [forbidden])).toBe(opened);
    expect(hear(opened, [silent])).toBe(opened);
    expect(hear(opened, [{ kind: 'success' }]).block).toEqual(opened.block);
  });

  test('one probe goes out when the block ends, and its success closes the breaker', () => {
    const end = opened.block?.until ?? 0;
    expect(phaseOf(opened, end - 1)).toBe('open');
    expect(phaseOf(opened, end)).toBe('half-open');
    const probing = afterProbe(opened, { id: 'probe', person: 'p' }, end, 11_000);
    expect(phaseOf(probing, end + 10_999)).toBe('open');
    expect(phaseOf(probing, end + 11_000)).toBe('half-open');
    expect(afterCall(probing, 'createClient', call('probe'), { kind: 'success' }, end, 0.5).breaker.block).toBeNull();
    const unsent = afterCall(probing, 'createClient', call('probe'), { kind: 'not-sent' }, end + 1, 0.5).breaker;
    expect(phaseOf(unsent, end + 1)).toBe('half-open');
  });
});

describe('a refusal is only one person’s', () => {
  const seen = hear(fresh, [{ kind: 'success' }], 'createClient');

  test('if the operation succeeded for another person since this person’s last refusal', () => {
    expect(isOwnRefusal(seen, NOW - 1)).toBe(true);
    expect(isOwnRefusal(seen, NOW)).toBe(false);
    expect(isOwnRefusal(seen, null)).toBe(false);
  });

  test('never while the operation is stopped for everyone', () => {
    expect(isOwnRefusal(hear(seen, [forbidden]), NOW - 1)).toBe(false);
  });
});

describe('a 404 of a delete', () => {
  const at = (breakers: Breakers, now = NOW, base = 'base') =>
    meaningOf404(breakers, 'deleteUser', { ...AT, base }, now);
  const worked = hear(fresh, [{ kind: 'success' }]);

  test('means a wrong URL if no delete ever succeeded there', () => {
    expect(at({ checkUser: worked })).toBe('wrong');
    expect(at({ checkUser: worked, deleteUser: { ...worked, url: 'other' } })).toBe('wrong');
  });

  test('is believed only if another operation succeeded at the base URL within a minute', () => {
    expect(at({ deleteUser: worked })).toBe('doubtful');
    expect(at({ deleteUser: worked, checkUser: worked })).toBe('missing');
    expect(at({ deleteUser: worked, checkUser: worked }, NOW + 60_000)).toBe('doubtful');
    expect(at({ deleteUser: worked, checkUser: { ...worked, base: 'other' } })).toBe('doubtful');
    expect(isProven({ checkUser: worked }, 'checkUser', 'base', NOW)).toBe(false);
  });

  test('proves no URL for the 404 of another operation', () => {
    const believed = afterCall(fresh, 'deleteUser', call('1'), { kind: 'answered' }, NOW, 0.5).breaker;
    expect(isProven({ deleteUser: believed }, 'setClientProviders', 'base', NOW)).toBe(false);
  });
});

describe('without readable answers', () => {
  const lost = hear(fresh, [silent, silent, silent]);
  const end = lost.block?.until ?? 0;
  const phase = (breakers: Breakers, queue: string, now: number) =>
    gatesOf(breakers, now).find((gate) => gate.queue === queue)?.phase;

  test('a success of any operation ends the silence', () => {
    expect(isSilent({ createClient: lost })).toBe(true);
    const answered = afterCall(fresh, 'checkUser', call('c', 'p', NOW + 1), { kind: 'success' }, NOW + 2, 0.5).breaker;
    expect(isSilent({ createClient: lost, checkUser: answered })).toBe(false);
  });

  test('creates without an email wait for the check, too', () => {
    const noCheck = hear(fresh, [silent, silent, silent], 'checkUser', end);
    expect(phase({ createClient: lost }, BLIND_CREATE, end)).toBe('half-open');
    expect(phase({ createClient: lost, checkUser: noCheck }, BLIND_CREATE, end)).toBe('open');
    expect(phase({ createClient: lost, checkUser: noCheck }, 'createClient', end)).toBe('half-open');
  });

  test('a check in place of the probe lets the probe follow immediately', () => {
    const checking = afterProbe(lost, { id: 'check', person: 'p' }, end, 11_000);
    const heard = (id: string) =>
      afterCall(checking, 'createClient', call(id), { kind: 'not-sent' }, end + 5, 0.5).breaker;
    expect(phaseOf(heard('check'), end + 5)).toBe('half-open');
    expect(phaseOf(heard('other'), end + 5)).toBe('open');
  });
});
