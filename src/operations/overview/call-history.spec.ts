import { CallHistory, INTERVAL_MS } from './call-history.js';

const NOW = new Date('2026-11-23T10:02:00Z');
const later = (intervals: number) => new Date(NOW.getTime() + intervals * INTERVAL_MS);
const interval = (at: string, calls: number) => ({ at: new Date(at), calls, refused: 1, failed: 2 });

describe('the history of calls', () => {
  it('shows six hours, with intervals without a call, up to the one that has begun', () => {
    const history = new CallHistory();
    expect(history.from(NOW)).toEqual(new Date('2026-11-23T04:05:00Z'));
    const shown = history.add(NOW, [interval('2026-11-23T04:05:00Z', 7), interval('2026-11-23T10:00:00Z', 3)]);
    expect(shown).toHaveLength(72);
    expect(shown[0]).toEqual(interval('2026-11-23T04:05:00Z', 7));
    expect(shown[1]).toEqual({ at: new Date('2026-11-23T04:10:00Z'), calls: 0, refused: 0, failed: 0 });
    expect(shown[71]).toEqual(interval('2026-11-23T10:00:00Z', 3));
  });

  it('counts anew what may still change alone, and forgets what is too old', () => {
    const history = new CallHistory();
    history.add(NOW, [interval('2026-11-23T04:05:00Z', 7), interval('2026-11-23T09:45:00Z', 5)]);
    expect(history.from(NOW)).toEqual(new Date('2026-11-23T09:50:00Z'));
    history.add(NOW, [interval('2026-11-23T10:00:00Z', 3)]);
    const shown = history.add(later(1), []);
    expect(shown.reduce((sum, { calls }) => sum + calls, 0)).toBe(5);
    expect(history.from(later(500))).toEqual(new Date(Date.parse('2026-11-23T04:05:00Z') + 500 * INTERVAL_MS));
  });
});
