import {
  afterCall,
  afterProbe,
  type Breaker,
  type BreakerCall,
  breakerOf,
  isSilent,
  openBlocks,
  type Signal,
} from './circuit-breaker.js';

const NOW = Date.UTC(2026, 0, 1);
const AT = { url: 'url', base: 'base' };
const fresh = breakerOf({}, 'createClient');
const SUCCESS: Signal = { kind: 'success' };
const silent: Signal = { kind: 'unanswered', sent: true };
const rejected = (status: number): Signal => ({ kind: 'rejected', status });
const blocked: Breaker = {
  ...{ ...fresh, failedAt: NOW - 9 },
  block: {
    ...{ code: 'platform-rejects', status: 402, failures: 2, openedAt: NOW - 9_000, until: NOW },
    ...{ probe: 'probe', person: 'p-9' },
  },
};

/** @param more the call; its id `probe` makes it the answer of the probe of `blocked` */
function heard(breaker: Breaker, signal: Signal, more: Partial<BreakerCall> = {}, now = NOW) {
  const call = { id: '1', person: 'p-1', grantedAt: now, ...AT, ...more };
  return afterCall(breaker, 'createClient', call, signal, now, 0.5);
}
const breakerAfter = (...given: Parameters<typeof heard>) => heard(...given).breaker;

test('the blocked operations are listed with their blocks', () => {
  expect(openBlocks({ checkUser: fresh, deleteUser: blocked })).toEqual([
    { operation: 'deleteUser', ...blocked.block },
  ]);
});

test('a probe is marked only in a breaker that has a block', () => {
  expect(afterProbe(fresh, { id: '2', person: 'p-2' }, NOW, 11)).toBe(fresh);
  expect(afterProbe(blocked, { id: '2', person: 'p-2' }, NOW, 11)).toEqual({
    ...blocked,
    block: { ...blocked.block, until: NOW + 11, probe: '2', person: 'p-2' },
  });
});

describe('a success', () => {
  const worked = breakerAfter(fresh, SUCCESS);

  test('is stored with its place', () => {
    expect(worked).toEqual({ ...fresh, succeededAt: NOW, ...AT });
  });

  test('is stored at most once a second, and no older one', () => {
    expect(breakerAfter(worked, SUCCESS, { grantedAt: NOW + 999 })).toBe(worked);
    expect(breakerAfter(worked, SUCCESS, { grantedAt: NOW - 1_000 })).toBe(worked);
    expect(breakerAfter(worked, SUCCESS, { grantedAt: NOW + 1_000 }).succeededAt).toBe(NOW + 1_000);
  });

  test('is stored immediately at another URL, after a failure and after a streak', () => {
    expect(breakerAfter(worked, SUCCESS, { url: 'other', grantedAt: NOW + 1 })).toMatchObject({ url: 'other' });
    const failed = { ...worked, failedAt: NOW };
    expect(breakerAfter(failed, SUCCESS, { grantedAt: NOW + 1 }).succeededAt).toBe(NOW + 1);
    const streak = { code: 'platform-fault', status: null, people: ['p-1'] } as const;
    expect(breakerAfter({ ...worked, streak: { ...streak, people: ['p-1'] } }, SUCCESS).streak).toBeNull();
  });

  test('of the probe closes the breaker, even if another success was just stored', () => {
    const probing = { ...blocked, succeededAt: NOW, ...AT };
    expect(breakerAfter(probing, SUCCESS, { id: 'probe' }).block).toBeNull();
    expect(breakerAfter(probing, SUCCESS)).toBe(probing);
  });
});

describe('an answer that proves no URL', () => {
  const answered: Signal = { kind: 'answered' };

  test('ends a streak, and the block if it is the answer of the probe', () => {
    const streak = breakerAfter(fresh, silent);
    expect(breakerAfter(streak, answered)).toEqual({ ...fresh, failedAt: NOW });
    expect(breakerAfter(blocked, answered, { id: 'probe' })).toEqual({ ...blocked, block: null });
  });

  test('changes nothing otherwise', () => {
    expect(breakerAfter(fresh, answered)).toBe(fresh);
    expect(breakerAfter(blocked, answered)).toBe(blocked);
    const both = { ...blocked, streak: { code: 'platform-fault' as const, status: null, people: ['p-1'] } };
    expect(breakerAfter(both, answered)).toEqual(blocked);
  });
});

test('a call that was not sent ends only the wait for its own probe', () => {
  const unsent: Signal = { kind: 'not-sent' };
  expect(breakerAfter(fresh, unsent)).toBe(fresh);
  expect(breakerAfter(blocked, unsent)).toBe(blocked);
  expect(breakerAfter(blocked, unsent, { id: 'probe' }, NOW - 3).block).toEqual({ ...blocked.block, until: NOW - 3 });
});

describe('the first failures', () => {
  test('are a streak of different people with the same cause', () => {
    const one = breakerAfter(fresh, rejected(402));
    expect(one).toEqual({
      ...fresh,
      failedAt: NOW,
      streak: { code: 'platform-rejects', status: 402, people: ['p-1'] },
    });
    expect(breakerAfter(one, rejected(402), { person: 'p-2' }).streak?.people).toEqual(['p-1', 'p-2']);
    expect(breakerAfter(one, rejected(402)).streak?.people).toEqual(['p-1']);
    expect(breakerAfter(one, rejected(403), { person: 'p-2' }).streak).toEqual({
      ...{ code: 'platform-rejects', status: 403, people: ['p-2'] },
    });
    expect(breakerAfter(one, silent, { person: 'p-2' }).streak).toMatchObject({ status: null, people: ['p-2'] });
  });

  test('that open a breaker block for 5 s, and name their person as that of the latest probe', () => {
    const streak = { code: 'platform-rejects', status: 402, people: ['p-1', 'p-2'] } as const;
    const breaker = breakerAfter({ ...fresh, streak: { ...streak, people: [...streak.people] } }, rejected(402), {
      person: 'p-3',
    });
    expect(breaker).toEqual({
      ...{ ...fresh, failedAt: NOW },
      block: {
        ...{ code: 'platform-rejects', status: 402, failures: 1, openedAt: NOW, until: NOW + 5_000 },
        ...{ probe: null, person: 'p-3' },
      },
    });
  });

  test('delay other operations only after a 429, which may name no wait', () => {
    expect(heard(fresh, { kind: 'rate-limited', retryAfterMs: undefined }).retryAfterMs).toBeNull();
    expect(heard(fresh, { kind: 'unauthorized' })).not.toHaveProperty('retryAfterMs');
  });
});

describe('a failed probe', () => {
  const probe = (signal: Signal) => breakerAfter(blocked, signal, { id: 'probe' });

  test('with the same cause lengthens the block', () => {
    expect(probe(rejected(402))).toEqual({
      ...{ ...blocked, failedAt: NOW },
      block: { ...blocked.block, failures: 3, until: NOW + 15_000 },
    });
  });

  test.each<[Signal, string]>([
    [silent, 'platform-fault'],
    [{ kind: 'wrong-url' }, 'platform-address'],
  ])('with another cause for everyone starts a new block: %j', (signal, code) => {
    expect(probe(signal).block).toEqual({
      ...{ ...blocked.block, code, status: null, failures: 1 },
      ...{ until: NOW + 5_000 },
    });
  });

  test.each([
    ['another status', blocked, 451],
    ['another cause', { ...blocked, block: { ...blocked.block, code: 'platform-fault' } } as Breaker, 402],
  ])('that is rejected with %s ends the block, and starts a streak', (_what, breaker, status) => {
    const ended = breakerAfter(breaker, rejected(status), { id: 'probe' });
    expect(ended.block).toBeNull();
    expect(ended.streak).toEqual({ code: 'platform-rejects', status, people: ['p-1'] });
  });
});

describe('another call that fails while a breaker is open', () => {
  const limited = (retryAfterMs?: number): Signal => ({ kind: 'rate-limited', retryAfterMs });

  test('makes the block follow the Retry-After of a 429 if that is longer', () => {
    expect(breakerAfter(blocked, limited(2_000))).toEqual({
      ...{ ...blocked, failedAt: NOW },
      block: { ...blocked.block, code: 'rate-limited', status: null, until: NOW + 2_000 },
    });
  });

  test('changes nothing otherwise', () => {
    expect(breakerAfter(blocked, limited())).toBe(blocked);
    expect(breakerAfter(blocked, limited(0))).toBe(blocked);
    expect(breakerAfter(blocked, silent)).toBe(blocked);
  });
});

test('the platform is silent only after a block without readable answers, and no success since', () => {
  const lost = { ...blocked, failedAt: NOW, block: { ...blocked.block, code: 'platform-fault' } } as Breaker;
  expect(isSilent({})).toBe(false);
  expect(isSilent({ createClient: { ...blocked, failedAt: NOW } })).toBe(false);
  expect(isSilent({ createClient: { ...lost, block: null } })).toBe(false);
  expect(isSilent({ createClient: lost, checkUser: { ...fresh, succeededAt: NOW } })).toBe(true);
  expect(isSilent({ createClient: lost, checkUser: { ...fresh, succeededAt: NOW + 1 } })).toBe(false);
});
