import { FetchPause } from './fetch-pause.js';

describe('a pause of all fetches', () => {
  let pause: FetchPause;

  beforeEach(() => {
    pause = new FetchPause();
  });

  test('allows no fetch until its end, then one probe at a time', () => {
    pause.begin('platform-unauthorized', 0, 0.5);
    expect(pause.mayFetch(1_999)).toBe(false);
    expect(pause.mayFetch(2_000)).toBe(true);
    expect(pause.mayFetch(2_000)).toBe(false);
    pause.succeeded(2_100);
    expect([pause.mayFetch(2_100), pause.mayFetch(2_100)]).toEqual([true, true]);
  });

  test('allows another probe after one that had nothing to fetch', () => {
    pause.begin('platform-unreachable', 0, 0.5);
    expect(pause.mayFetch(5_000)).toBe(true);
    pause.releaseProbe();
    expect(pause.mayFetch(5_000)).toBe(true);
  });

  test('grows with every failed probe, but not with fetches in flight when it started', () => {
    expect(pause.begin('platform-unreachable', 0, 0.5)).toBe(2_000);
    expect(pause.begin('platform-unreachable', 10, 0.5)).toBe(2_010);
    expect(pause.begin('platform-unreachable', 3_000, 0.5)).toBe(7_000);
  });

  test('is as long as the platform asks, and never becomes shorter', () => {
    expect(pause.begin('rate-limited', 0, 0.5, 30_000)).toBe(30_000);
    expect(pause.begin('rate-limited', 100, 0.5, 500)).toBe(30_000);
  });

  test('ends when a server answers, which is no success of a fetch', () => {
    pause.begin('platform-unreachable', 0, 0.5);
    pause.end();
    expect([pause.mayFetch(1), pause.succeededSince(-1_000_000)]).toEqual([true, false]);
  });

  test('a refusal is about one session if another was fetched after its last one', () => {
    expect(pause.succeededSince(1_000)).toBe(false);
    pause.succeeded(2_000);
    expect(pause.succeededSince(1_000)).toBe(true);
    expect(pause.succeededSince(3_000)).toBe(false);
  });
});
