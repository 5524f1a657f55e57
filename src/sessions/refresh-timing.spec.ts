import { type LookUpSubject, nextLookUp } from './refresh-timing.js';

const POLICY = { afterMs: 900_000, everyMs: 600_000 };
const NOW = new Date('2026-03-01T12:00:00Z');
const ago = (ms: number) => new Date(NOW.getTime() - ms);
const HOUR = 3_600_000;

function waitMs(subject: Partial<LookUpSubject>): number | null {
  const session = {
    state: 'Processing',
    eventState: 'Processing',
    knownSince: ago(60_000),
    heardAt: ago(60_000),
    ...subject,
  } as const;
  const at = nextLookUp(session, NOW, POLICY);
  return at && at.getTime() - NOW.getTime();
}

describe('looking up sessions of which nothing is heard', () => {
  test.each(['Done', 'Error'] as const)('one that is %s is not looked up', (state) => {
    expect(waitMs({ state })).toBeNull();
  });

  test('a young one is left alone until it has the age of the setting', () => {
    expect(waitMs({})).toBe(840_000);
  });

  test('an older one is looked up at the interval of the setting', () => {
    expect(waitMs({ knownSince: ago(HOUR / 2) })).toBe(600_000);
  });

  test('the older, the rarer, but once a day', () => {
    expect(waitMs({ knownSince: ago(8 * HOUR) })).toBe(2 * HOUR);
    expect(waitMs({ knownSince: ago(9_000 * HOUR) })).toBe(24 * HOUR);
  });

  test('one whose events have ended and that is Processing again is looked up soon: no event tells its end', () => {
    expect(waitMs({ eventState: 'Done', heardAt: ago(500) })).toBe(3_000);
    expect(waitMs({ eventState: 'Done', heardAt: ago(20_000) })).toBe(10_000);
  });
});
