import { RefreshPace } from './refresh-pace.js';

describe('the pace of a refresh', () => {
  test('nothing is foretold before the first session is done', () => {
    expect(new RefreshPace(10, 0).progress(10, 2_000)).toMatchObject({ done: 0, total: 10, etaSeconds: null });
  });

  test('the rest takes as long as what is done did', () => {
    expect(new RefreshPace(10, 1_000).progress(5, 6_000)).toMatchObject({ done: 5, etaSeconds: 5 });
  });

  test('sessions that are heard of meanwhile never make it less than nothing', () => {
    expect(new RefreshPace(10, 0).progress(12, 5_000)).toMatchObject({ done: 0 });
  });
});
