import fc from 'fast-check';
import { propertyRuns } from '../../src/config/property-runs.spec-support.js';
import { IDEMPOTENT_POSTS } from '../schema.js';
import {
  DEFAULT_ATTEMPTS,
  isDeleted,
  isLost,
  isPassing,
  isRepeatable,
  MAX_BACKOFF_MS,
  MAX_NAMED_PAUSE_MS,
  pauseBefore,
} from './retry-rule.js';

const failure = fc.record({
  status: fc.constantFrom(0, 400, 401, 403, 404, 408, 409, 410, 422, 429, 500, 501, 502, 503, 504, 507),
  type: fc.constantFrom('no-answer', 'bad-end', 'unreadable-answer', 'idempotency-in-progress', 'validation'),
  retryAfter: fc.option(fc.nat(100_000), { nil: undefined }),
});
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

describe('pauseBefore', () => {
  it('ends any failures after a bounded number of attempts and a bounded time', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(failure, random), { minLength: 20 }), (failures) => {
        let total = 0;
        let sent = 1;
        for (const [error, chance] of failures) {
          const ms = pauseBefore(sent, DEFAULT_ATTEMPTS, error, chance);
          if (ms === undefined) break;
          total += ms;
          sent += 1;
        }
        expect(sent).toBeLessThanOrEqual(DEFAULT_ATTEMPTS);
        expect(total).toBeLessThanOrEqual(DEFAULT_ATTEMPTS * MAX_BACKOFF_MS);
      }),
      propertyRuns(),
    );
  });

  it('is never shorter than Retry-After, and gives up if that is longer than 30 seconds', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), failure, random, (sent, error, chance) => {
        const ms = pauseBefore(sent, DEFAULT_ATTEMPTS, error, chance);
        const { retryAfter = 0 } = error;
        if (retryAfter > 30) expect(ms).toBeUndefined();
        if (ms !== undefined) expect(ms).toBeGreaterThanOrEqual(retryAfter * 1_000);
      }),
      propertyRuns(),
    );
  });

  it('is at most an hour for a reader that never gives up, even if Retry-After asks for more', () => {
    const seconds = fc.oneof(fc.nat(100_000), fc.nat(999_999_999), fc.double({ min: 0, noNaN: true }));
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5_000 }), seconds, random, (sent, retryAfter, chance) => {
        const ms = pauseBefore(sent, Number.POSITIVE_INFINITY, { status: 503, type: 'database', retryAfter }, chance);
        expect(ms).toBeGreaterThanOrEqual(Math.min(retryAfter * 1_000, MAX_NAMED_PAUSE_MS));
        expect(ms).toBeLessThanOrEqual(MAX_NAMED_PAUSE_MS);
      }),
      propertyRuns(),
    );
  });

  it('grows up to 30 seconds for a reader that never gives up', () => {
    const pauses = Array.from({ length: 10 }, (_, sent) =>
      pauseBefore(sent + 1, Number.POSITIVE_INFINITY, { status: 0, type: 'no-answer', retryAfter: undefined }, 0),
    );
    expect(pauses).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000, 30_000]);
  });

  it('repeats nothing that would fail again', () => {
    fc.assert(
      fc.property(failure, random, (error, chance) => {
        expect(pauseBefore(1, 2, { ...error, retryAfter: 0 }, chance) !== undefined).toBe(isPassing(error));
      }),
      propertyRuns(),
    );
  });
});

test.each([
  [0, 'no-answer', true],
  [0, 'bad-end', false],
  [408, 'upload-stalled', true],
  [409, 'idempotency-in-progress', true],
  [409, 'session-exists', false],
  [422, 'validation', false],
  [429, 'too-many-requests', true],
  [500, 'internal', true],
  [501, 'not-configured', false],
  [502, 'unreadable-answer', true],
  [503, 'database-unavailable', true],
  [504, 'unreadable-answer', true],
])('%i %s passes: %s', (status, type, passes) => {
  expect(isPassing({ status, type })).toBe(passes);
});

const UNKNOWN = { status: 404, type: 'client-not-found' };

test.each([
  ['DELETE', UNKNOWN, true, true],
  ['DELETE', UNKNOWN, false, false],
  ['DELETE', { status: 404, type: 'unreadable-answer' }, true, false],
  ['DELETE', { status: 409, type: 'wrong-state' }, true, false],
  ['GET', UNKNOWN, true, false],
])('%s with %j, an earlier answer lost (%j): is deleted %j', (method, error, isAnswerLost, deleted) => {
  expect(isDeleted(method, error, isAnswerLost)).toBe(deleted);
});

test.each([
  [{ type: 'no-answer' }, true],
  [{ type: 'unreadable-answer' }, true],
  [{ type: 'database-unavailable' }, false],
])('%j has lost an answer: %j', (error, lost) => {
  expect(isLost(error)).toBe(lost);
});

test.each([
  ['GET', '/v1/sessions', true],
  ['PUT', '/v1/clients/{externalId}', true],
  ['DELETE', '/v1/clients/{externalId}', true],
  ['POST', '/v1/sessions', true],
  ['POST', '/v1/recordings', true],
  ['POST', '/v1/sessions/refreshes', false],
  ['POST', '/v1/api-keys', false],
  ['POST', '/v1/subscriptions', false],
  ['PATCH', '/v1/sessions/{id}', false],
])('%s %s may be repeated: %s', (method, path, may) => {
  expect(isRepeatable(method, path, IDEMPOTENT_POSTS)).toBe(may);
});
