import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { KEYS, USER_MANAGEMENT } from './apis.js';
import type { Pause } from './pause-row.js';
import { type Gate, gateOf, isClosed, isProbed, probing, type Verdict } from './pause-rule.js';
import { at, type Heard, hear, hearAll, lostSubjects, NOW, open } from './pauses.spec-support.js';

const api = open();
const operation = open('createClient');
const sessions = open('sessions');
const session = open('getSession');

/** Answers one probe after the other in the same way. @returns the lengths of the pauses in milliseconds */
function pausesOf(first: Pause, heard: Heard, count: number): number[] {
  let pause = first;
  return Array.from({ length: count }, () => {
    const atMs = (pause.pausedUntil ?? NOW).getTime() - NOW.getTime();
    pause = hear(probing(pause, at(atMs), 11_000), { ...heard, atMs, isProbe: pause.pausedUntil !== null });
    return (pause.pausedUntil?.getTime() ?? 0) - at(atMs).getTime();
  });
}

describe('a 429', () => {
  test.each([api, sessions])('limits $key for as long as Retry-After says', (pause) => {
    expect(hear(pause, { verdict: 'limited', retryAfterMs: 7_000 }).limitedUntil).toEqual(at(7_000));
  });

  test.each([operation, session])('does not limit $key by itself', (pause) => {
    expect(hear(pause, { verdict: 'limited', retryAfterMs: 7_000 })).toBe(pause);
  });

  test('without Retry-After limits it for five seconds, doubling to a minute', () => {
    let pause = api;
    const waits = Array.from({ length: 6 }, () => {
      const atMs = (pause.limitedUntil ?? NOW).getTime() - NOW.getTime();
      pause = hear(pause, { verdict: 'limited', atMs });
      return (pause.limitedUntil?.getTime() ?? 0) - at(atMs).getTime();
    });
    expect(waits).toEqual([5_000, 10_000, 20_000, 40_000, 60_000, 60_000]);
  });

  test('counts once for calls that were in flight together', () => {
    const pause = hearAll(
      api,
      [0, 10, 20].map((atMs) => ({ verdict: 'limited', beganMs: -50, atMs })),
    );
    expect(pause).toMatchObject({ limitedTimes: 1, limitedUntil: at(5_020) });
  });

  test.each<Verdict>(['ok', 'lost', 'refused', 'unauthorized', 'unreachable'])(
    'ends only by time, even if %s follows',
    (verdict) => {
      const limited = hear(api, { verdict: 'limited', retryAfterMs: 30_000 });
      const later = hear(limited, { verdict, atMs: 40, beganMs: -10 });
      expect(later).toMatchObject({ limitedUntil: at(30_000), limitedTimes: 1 });
      expect(isClosed(later, at(29_999))).toBe(true);
      expect(isClosed({ ...later, pausedUntil: null }, at(30_000))).toBe(false);
    },
  );

  test('is not shortened by another one', () => {
    const long = hear(api, { verdict: 'limited', retryAfterMs: 30_000 });
    expect(hear(long, { verdict: 'limited', retryAfterMs: 1_000, atMs: 5 }).limitedUntil).toEqual(at(30_000));
    expect(hear(long, { verdict: 'limited', retryAfterMs: 60_000, atMs: 5 }).limitedUntil).toEqual(at(60_005));
  });

  test('starts at five seconds again after a success since its end', () => {
    const limited = hearAll(api, [{ verdict: 'limited' }, { verdict: 'limited', atMs: 5_000 }]);
    const again = hearAll(limited, [
      { verdict: 'ok', atMs: 15_000 },
      { verdict: 'limited', atMs: 16_000 },
    ]);
    expect(again.limitedUntil).toEqual(at(21_000));
  });
});

describe('a 401', () => {
  test.each([api, sessions])('pauses $key for five seconds, doubling to thirty', (pause) => {
    expect(pausesOf(pause, { verdict: 'unauthorized' }, 5)).toEqual([5_000, 10_000, 20_000, 30_000, 30_000]);
    expect(hear(pause, { verdict: 'unauthorized', status: 401 })).toMatchObject({
      reason: 'unauthorized',
      status: 401,
    });
  });

  test.each([operation, session])('does not pause $key by itself', (pause) => {
    expect(hear(pause, { verdict: 'unauthorized' })).toBe(pause);
  });
});

describe('an answer of another address, or a refusal for everyone', () => {
  test.each([operation, session])('pauses $key for five seconds each time', (pause) => {
    expect(pausesOf(pause, { verdict: 'elsewhere' }, 4)).toEqual([5_000, 5_000, 5_000, 5_000]);
  });

  test.each([api, sessions])('does not pause $key', (pause) => {
    expect(hear(pause, { verdict: 'elsewhere' })).toBe(pause);
  });
});

describe.each(['lost', 'unreachable'] as const)('calls that are %s', (verdict) => {
  const of = (...subjects: string[]): Heard[] => subjects.map((subject, n) => ({ verdict, subject, atMs: n }));

  test.each([api, operation, sessions, session])('pause $key after five different subjects in a row', (pause) => {
    expect(hearAll(pause, of('a', 'b', 'c', 'd')).pausedUntil).toBeNull();
    expect(hearAll(pause, of('a', 'b', 'c', 'd', 'e'))).toMatchObject({ pausedUntil: at(5_004), reason: verdict });
  });

  test('of one subject never pause anything', () => {
    expect(hearAll(api, Array(50).fill({ verdict, subject: 'a' })).pausedUntil).toBeNull();
  });

  test('do not count after an answer about a subject in between', () => {
    for (const answered of ['ok', 'gone', 'refused'] as const) {
      const broken = hearAll(api, [...of('a', 'b', 'c', 'd'), { verdict: answered, atMs: 5 }]);
      expect(hear(broken, { verdict, subject: 'e', atMs: 6 }).pausedUntil).toBeNull();
    }
  });

  test('pause for five seconds, doubling to thirty', () => {
    const [last, ...first] = of('a', 'b', 'c', 'd', 'e').reverse();
    const failing = hearAll(operation, first.reverse());
    expect(pausesOf(failing, { ...last, verdict }, 5)).toEqual([5_000, 10_000, 20_000, 30_000, 30_000]);
  });
});

test('answers of another operation reset the row of the API, and not that of an operation', () => {
  const lost = lostSubjects(5);
  const own = hearAll(operation, lost);
  const shared = hearAll(
    api,
    lost.flatMap((one) => [one, { verdict: 'ok' as const, atMs: (one.atMs ?? 0) + 0.5 }]),
  );
  expect(own.pausedUntil).not.toBeNull();
  expect(shared.pausedUntil).toBeNull();
});

describe('a pause that has begun', () => {
  const paused = hearAll(api, lostSubjects(5));
  const ended = paused.pausedUntil as Date;
  const atEndMs = ended.getTime() - NOW.getTime();
  const probed = probing(paused, ended, 11_000);

  test('lets calls out one at a time from its end on', () => {
    expect(isClosed(paused, at(atEndMs - 1))).toBe(true);
    expect(isClosed(paused, ended)).toBe(false);
    expect(isProbed(paused)).toBe(true);
    expect(isClosed(probed, at(atEndMs + 10_999))).toBe(true);
    expect(isClosed(probed, at(atEndMs + 11_000))).toBe(false);
    expect(probing(api, NOW, 11_000)).toBe(api);
  });

  test.each<Verdict>(['lost', 'unreachable', 'unauthorized'])(
    'is lengthened by the answer to its probe only, which is %s',
    (verdict) => {
      const inFlight = hear(paused, { verdict, beganMs: -10, atMs: 100 });
      expect(inFlight).toMatchObject({ pausedUntil: ended, failures: 1, reason: 'lost' });
      const probe = hear(probed, { verdict, atMs: atEndMs + 50, isProbe: true });
      expect(probe).toMatchObject({ pausedUntil: at(atEndMs + 10_050), failures: 2, reason: verdict });
    },
  );

  test('is lengthened by the failure of a call that a caller waits for, if no probe has come for a minute', () => {
    const atMs = atEndMs + 3_600_000;
    expect(hear(paused, { verdict: 'lost', atMs })).toMatchObject({ pausedUntil: at(atMs + 10_000), failures: 2 });
    expect(hear(paused, { verdict: 'lost', beganMs: atEndMs + 59_999, atMs }).pausedUntil).toEqual(ended);
  });

  test('is not ended by a success of a call that began before the trouble', () => {
    expect(hear(paused, { verdict: 'ok', beganMs: -10, atMs: 100 }).pausedUntil).toEqual(ended);
    expect(hear(paused, { verdict: 'ok', beganMs: 0, atMs: 100 }).pausedUntil).toEqual(ended);
  });

  test.each<Verdict>(['ok', 'gone', 'refused'])(
    'is ended by a later answer about a subject, which is %s',
    (verdict) => {
      const over = hear(probed, { verdict, atMs: atEndMs + 50, beganMs: atEndMs, isProbe: true });
      expect(over).toEqual(api);
    },
  );

  test.each<Verdict>(['personal', 'doubtful', 'unconfirmed', 'unsent', 'elsewhere', 'limited'])(
    'lets the next probe go at once if an answer says nothing about it: %s',
    (verdict) => {
      const heard = { verdict, atMs: atEndMs + 50, retryAfterMs: 0 };
      expect(hear(probed, { ...heard, isProbe: true }).pausedUntil).toEqual(at(atEndMs + 50));
      expect(hear(probed, heard).pausedUntil).toEqual(probed.pausedUntil);
      expect(hear(api, { ...heard, isProbe: true }).pausedUntil).toBeNull();
    },
  );
});

describe('the gate of an operation', () => {
  const later = at(1_000);
  const gatesWith = (key: string, changes: Partial<Pause>): Gate[] => {
    const pauses = new Map(KEYS.map((each) => [each, { ...open(each), ...(each === key && changes) }]));
    return (['checkUser', 'createClient', 'createSession', 'getSession'] as const).map((each) =>
      gateOf(pauses, each, NOW),
    );
  };

  test.each<[string, Gate[]]>([
    [USER_MANAGEMENT, ['closed', 'closed', 'open', 'open']],
    ['sessions', ['open', 'open', 'closed', 'closed']],
    ['createClient', ['open', 'closed', 'open', 'open']],
    ['getSession', ['open', 'open', 'open', 'closed']],
  ])('is closed by the pause of %s alone, and lets probes out after it', (key, gates) => {
    expect(gatesWith(key, { pausedUntil: later })).toEqual(gates);
    expect(gatesWith(key, { pausedUntil: NOW })).toEqual(gates.map((gate) => (gate === 'closed' ? 'probe' : gate)));
    expect(gatesWith(key, { limitedUntil: later })).toEqual(gates);
    expect(gatesWith(key, { limitedUntil: NOW })).toEqual(['open', 'open', 'open', 'open']);
  });
});

const VERDICTS: Verdict[] = [
  ...(['ok', 'gone', 'doubtful', 'unconfirmed', 'refused', 'personal'] as const),
  ...(['limited', 'unauthorized', 'elsewhere', 'lost', 'unreachable', 'unsent'] as const),
];

const anyAnswer = fc.record({
  verdict: fc.constantFrom(...VERDICTS),
  subject: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
  waitMs: fc.constantFrom(0, 1, 40, 1_000, 5_000, 40_000),
  tookMs: fc.constantFrom(0, 20, 900, 11_000),
  isProbe: fc.boolean(),
  retryAfterMs: fc.option(fc.constantFrom(0, 1_000, 3_600_000), { nil: undefined }),
});

test.each([api, operation, sessions])('after any answers, the pauses of $key keep the laws', (first) => {
  const property = fc.property(fc.array(anyAnswer, { maxLength: 40 }), (answers) => {
    let pause = first;
    let atMs = 0;
    for (const { waitMs, tookMs, retryAfterMs, ...answer } of answers) {
      atMs += waitMs;
      const before = pause;
      const times = { atMs, beganMs: atMs - tookMs };
      pause = hear(before, { ...answer, ...times, ...(retryAfterMs !== undefined && { retryAfterMs }) });
      // The end of a 429's pause is never moved forward.
      expect(pause.limitedUntil?.getTime() ?? 0).toBeGreaterThanOrEqual(before.limitedUntil?.getTime() ?? 0);
      // A pause ends, and soon.
      if (pause.pausedUntil !== null)
        expect(pause.pausedUntil.getTime()).toBeLessThanOrEqual(at(atMs + 30_000).getTime());
      expect(pause.failing.length).toBeLessThanOrEqual(5);
    }
    const over = hear(pause, { verdict: 'ok', atMs: atMs + 2, beganMs: atMs + 1 });
    expect(over).toMatchObject({ pausedUntil: null, reason: null, failures: 0, failing: [] });
  });
  fc.assert(property, propertyRuns());
});
