import { NOTIFY_INTERVAL_MS, ThrottledNotifier } from './throttled-notifier.js';

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

test('the first call notifies immediately, and many within the interval once more at its end', () => {
  let notifies = 0;
  const notifier = new ThrottledNotifier(() => {
    notifies += 1;
  });
  for (let i = 0; i < 50; i += 1) notifier.notify();
  expect(notifies).toBe(1);
  jest.advanceTimersByTime(NOTIFY_INTERVAL_MS);
  expect(notifies).toBe(2);
  jest.advanceTimersByTime(10 * NOTIFY_INTERVAL_MS);
  expect(notifies).toBe(2);
});

test('closing sends the pending notification', () => {
  let notifies = 0;
  const notifier = new ThrottledNotifier(() => {
    notifies += 1;
  });
  notifier.notify();
  notifier.notify();
  notifier.close();
  expect(notifies).toBe(2);
});
