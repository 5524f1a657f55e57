import { ThrottledNotifier } from './receiver.js';

const NOTIFY_EVERY_MS = 250;

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

test('the first pull notifies at once; many within the interval ring once more, at its end', () => {
  let notifies = 0;
  const notifier = new ThrottledNotifier(() => {
    notifies += 1;
  });
  for (let i = 0; i < 50; i += 1) notifier.notify();
  expect(notifies).toBe(1);
  jest.advanceTimersByTime(NOTIFY_EVERY_MS);
  expect(notifies).toBe(2);
  jest.advanceTimersByTime(10 * NOTIFY_EVERY_MS);
  expect(notifies).toBe(2);
});

test('a ring that is owed is not lost by closing', () => {
  let notifies = 0;
  const notifier = new ThrottledNotifier(() => {
    notifies += 1;
  });
  notifier.notify();
  notifier.notify();
  notifier.close();
  expect(notifies).toBe(2);
});
