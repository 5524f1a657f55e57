import { FetchPause } from './fetch-pause.js';

describe('a pause of all fetches', () => {
  let pause: FetchPause;

  beforeEach(() => {
    pause = new FetchPause();
  });

  test('nothing is fetched until it is over, and then one probe at a time', () => {
    pause.begin('platform-unauthorized', 0, 0.5);
    expect(pause.mayFetch(1_999)).toBe(false);
    expect(pause.mayFetch(2_000)).toBe(true);
    expect(pause.mayFetch(2_000)).toBe(false);
    pause.succeeded(2_100);
    expect([pause.mayFetch(2_100), pause.mayFetch(2_100)]).toEqual([true, true]);
  });

  test('a probe that had nothing to fetch leaves the place to the next', () => {
    pause.begin('platform-unreachable', 0, 0.5);
    expect(pause.mayFetch(5_000)).toBe(true);
    pause.releaseProbe();
    expect(pause.mayFetch(5_000)).toBe(true);
  });

  test('it grows with every probe that fails, not with fetches that were under way when it began', () => {
    expect(pause.begin('platform-unreachable', 0, 0.5)).toBe(2_000);
    expect(pause.begin('platform-unreachable', 10, 0.5)).toBe(2_010);
    expect(pause.begin('platform-unreachable', 3_000, 0.5)).toBe(7_000);
  });

  test('it is as long as the platform asks, and a shorter one never overwrites a longer one', () => {
    expect(pause.begin('rate-limited', 0, 0.5, 30_000)).toBe(30_000);
    expect(pause.begin('rate-limited', 100, 0.5, 500)).toBe(30_000);
  });

  test('a refusal is a session’s own when another was fetched after its last one', () => {
    expect(pause.succeededSince(1_000)).toBe(false);
    pause.succeeded(2_000);
    expect(pause.succeededSince(1_000)).toBe(true);
    expect(pause.succeededSince(3_000)).toBe(false);
  });
});
