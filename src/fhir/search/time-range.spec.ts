import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { ANY_TIME, both, readTimeRange } from './time-range.js';

const { from: BEFORE_ALL, to: AFTER_ALL } = ANY_TIME;
const at = (text: string) => Date.parse(text);
const DAY = [at('2026-03-01T00:00:00Z'), at('2026-03-02T00:00:00Z')] as const;

describe('a date of a search', () => {
  it.each([
    ['2026', '2026-01-01T00:00:00Z', '2027-01-01T00:00:00Z'],
    ['2026-12', '2026-12-01T00:00:00Z', '2027-01-01T00:00:00Z'],
    ['2024-02-29', '2024-02-29T00:00:00Z', '2024-03-01T00:00:00Z'],
    ['2026-03-01T08:30Z', '2026-03-01T08:30:00Z', '2026-03-01T08:31:00Z'],
    ['2026-03-01T08:30:15', '2026-03-01T08:30:15Z', '2026-03-01T08:30:16Z'],
    ['2026-03-01T08:30:15+05:30', '2026-03-01T03:00:15Z', '2026-03-01T03:00:16Z'],
    ['2026-03-01T08:30:15.1Z', '2026-03-01T08:30:15.100Z', '2026-03-01T08:30:15.200Z'],
    ['2026-03-01T08:30:15.123Z', '2026-03-01T08:30:15.123Z', '2026-03-01T08:30:15.124Z'],
    ['2026-03-01T08:30:15.123456Z', '2026-03-01T08:30:15.123Z', '2026-03-01T08:30:15.124Z'],
    ['9999', '9999-01-01T00:00:00Z', '+010000-01-01T00:00:00Z'],
  ])('%s is the whole span of its precision', (text, from, to) => {
    expect(readTimeRange(text)).toEqual({ from: at(from), to: at(to) });
  });

  it.each([
    ['eq', ...DAY],
    ['gt', DAY[1], AFTER_ALL],
    ['sa', DAY[1], AFTER_ALL],
    ['ge', DAY[0], AFTER_ALL],
    ['lt', BEFORE_ALL, DAY[0]],
    ['eb', BEFORE_ALL, DAY[0]],
    ['le', BEFORE_ALL, DAY[1]],
  ])('with the prefix %s is a range', (prefix, from, to) => {
    expect(readTimeRange(`${prefix}2026-03-01`)).toEqual({ from, to });
  });

  it.each([
    ...['', 'yesterday', '26', '0000', '2026-13', '2026-02-30', '2025-02-29', '2026-3-1', '2026-03-01T08Z'],
    ...['2026-03-01T24:00Z', '2026-03-01T08:60Z', '2026-03-01T08:30 01:00', '2026-03-01T08:30+99:00', '2026-03-01T'],
    ...['ne2026', 'ap2026', 'GE2026', 'ge', 'ge 2026', '2026-03-01T08:30:15.Z'],
  ])('%j is rejected', (text) => {
    expect(readTimeRange(text)).toBeUndefined();
  });
});

describe('prefixes of any date', () => {
  const time = fc.date({ min: new Date('0002-01-01'), max: new Date('9998-12-31'), noInvalidDate: true });
  const precision = fc.constantFrom(4, 7, 10, 16, 19, 23);
  const written = fc.tuple(time, precision).map(([date, length]) => {
    const text = date.toISOString().slice(0, length);
    return [date.getTime(), length > 10 ? `${text}Z` : text] as const;
  });
  const matches = (text: string, ms: number) => {
    const { from, to } = readTimeRange(text) ?? { from: Number.NaN, to: Number.NaN };
    return from <= ms && ms < to;
  };

  it('match exactly one of lt, eq and gt, and le and ge are those with eq', () => {
    fc.assert(
      fc.property(written, time, ([own, text], other) => {
        expect(matches(text, own)).toBe(true);
        const ms = other.getTime();
        const [lt, eq, gt] = ['lt', 'eq', 'gt'].map((prefix) => matches(prefix + text, ms));
        expect([lt, eq, gt].filter(Boolean)).toHaveLength(1);
        expect(matches(`le${text}`, ms)).toBe(lt || eq);
        expect(matches(`ge${text}`, ms)).toBe(gt || eq);
      }),
      propertyRuns(),
    );
  });
});

test('both ranges hold what each of them holds', () => {
  const [march, fromFifth] = [readTimeRange('2026-03'), readTimeRange('ge2026-03-05')];
  expect(both(march ?? ANY_TIME, fromFifth ?? ANY_TIME)).toEqual({
    from: at('2026-03-05T00:00:00Z'),
    to: at('2026-04-01T00:00:00Z'),
  });
});
