import schedule from 'node-releases/data/release-schedule/release-schedule.json';
import { nodeFinding, RECOMMENDED, SUPPORT_ENDS } from './node-release.js';

describe('nodeFinding', () => {
  it('accepts a release until the last day of its support', () => {
    expect(nodeFinding('24.11.1', '2028-04-30T23:59:59Z')).toMatchObject({ state: 'ok' });
    expect(nodeFinding('20.19.0', '2026-04-30T00:00:00Z')).toMatchObject({ state: 'ok' });
  });

  it('warns about a release after it, and names a supported one', () => {
    expect(nodeFinding('20.19.0', '2026-05-01T00:00:00Z')).toEqual({
      state: 'unknown',
      what: 'Node 20.19.0 has had no security fixes since 2026-04-30',
      advice: ['Install Node 24, which is supported until 2028-04-30.'],
    });
  });

  it('accepts a release that is newer than the table', () => {
    expect(nodeFinding('99.0.0', '2040-01-01T00:00:00Z')).toMatchObject({ state: 'ok', what: 'Node 99.0.0' });
  });

  it('knows the published schedule of the releases that notebridge runs on', () => {
    const published = Object.entries(schedule)
      .map(([name, { start, end }]) => ({ major: name.slice(1), start, end }))
      .filter(({ major, start }) => Number(major) >= 20 && start <= '2026-11-27');
    expect(SUPPORT_ENDS).toEqual(Object.fromEntries(published.map(({ major, end }) => [major, end])));
    expect(SUPPORT_ENDS).toHaveProperty(RECOMMENDED);
  });
});
