import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { errorForAnswer } from './platform-answer.js';

const now = new Date('2026-03-04T05:06:07.500Z');
const retryAfterMs = (retryAfter: string | undefined, at: Date) =>
  errorForAnswer('checkUser', { status: 429, retryAfter }, at).retryAfterMs;

describe('Retry-After', () => {
  it('reads seconds', () => {
    expect(['1', ' 120 ', '0'].map((header) => retryAfterMs(header, now))).toEqual([1_000, 120_000, undefined]);
  });

  it('reads an HTTP date', () => {
    expect(retryAfterMs('Wed, 04 Mar 2026 05:07:07 GMT', now)).toBe(59_500);
  });

  it('is limited to an hour', () => {
    const mistaken = ['3601', '999999999', 'Fri, 31 Dec 9999 23:59:59 GMT'];
    expect(mistaken.map((header) => retryAfterMs(header, now))).toEqual([3_600_000, 3_600_000, 3_600_000]);
    expect(retryAfterMs('3600', now)).toBe(3_600_000);
  });

  it('is ignored if it is in the past', () => {
    expect(retryAfterMs('Wed, 04 Mar 2026 05:06:07 GMT', now)).toBeUndefined();
  });

  it('is ignored if it is neither seconds nor a date', () => {
    const strange = [
      undefined,
      '',
      'soon',
      '-1',
      '1.5',
      '1e3',
      '2026-03-04T05:07:07Z',
      '99999999999',
      'Wed, 99 Mar 2026 05:07:07 GMT',
    ];
    expect(strange.map((header) => retryAfterMs(header, now))).toEqual(strange.map(() => undefined));
  });

  it('returns the wait of any date within an hour, and never one that is not positive', () => {
    fc.assert(
      fc.property(fc.oneof(fc.integer({ min: -1e9, max: 1e9 }), fc.integer({ min: -1, max: 3_601 })), (seconds) => {
        const then = new Date(Math.floor(now.getTime() / 1_000) * 1_000 + seconds * 1_000);
        const wait = then.getTime() - now.getTime();
        expect(retryAfterMs(then.toUTCString(), now)).toBe(wait > 0 ? Math.min(wait, 3_600_000) : undefined);
      }),
      propertyRuns(),
    );
    fc.assert(
      fc.property(fc.string(), (header) => (retryAfterMs(header, now) ?? 1) > 0),
      propertyRuns(),
    );
  });
});
