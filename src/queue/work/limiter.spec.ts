import { type Limits, limitsOf } from './limiter.js';

/** Calls that can arrive in some minute, with a store that is wiped once. */
const mostCalls = ({ max, duration, concurrency }: Limits) =>
  max * (Math.floor(60_000 / duration) + 3) - 1 + concurrency;

/** Every value that USER_MANAGEMENT_CALLS_PER_MINUTE may reasonably have. */
const SETTINGS = Array.from({ length: 991 }, (_, index) => index + 10);
const valuesWhere = (fails: (limit: number, limits: Limits) => boolean) =>
  SETTINGS.filter((limit) => fails(limit, limitsOf(limit)));

test('no setting from 10 to 1,000 lets more calls arrive in a minute than it says', () => {
  expect(valuesWhere((limit, limits) => mostCalls(limits) > limit)).toEqual([]);
});

test('each of two processes can always work on a job', () => {
  expect(valuesWhere((_, { concurrency }) => concurrency < 2)).toEqual([]);
});

test('no setting wastes more than a third of its calls', () => {
  expect(valuesWhere((limit, { max, duration }) => (max * 60_000) / duration < (limit * 2) / 3)).toEqual([]);
});

test('the limits are whole numbers, as Redis needs them', () => {
  expect(valuesWhere((_, limits) => !Object.values(limits).every(Number.isInteger))).toEqual([]);
});

test('300 calls a minute are one job in 207 ms, and at most eight in progress', () => {
  expect(limitsOf(300)).toEqual({ max: 1, duration: 207, concurrency: 8 });
  expect(mostCalls(limitsOf(300))).toBe(299);
});

test('one window of a minute would let far more calls arrive', () => {
  expect(mostCalls({ max: 300, duration: 60_000, concurrency: 8 })).toBe(1_207);
  expect(mostCalls({ max: 3, duration: 627, concurrency: 16 })).toBeGreaterThan(300);
});
