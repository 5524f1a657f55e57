import { Clock } from '../../config/clock.js';
import { Metrics } from '../../monitoring/metrics.js';
import type { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { InboxAppender, NOTIFY_INTERVAL_MS } from './inbox-appender.js';
import type { InboxWriterRepository } from './inbox-writer.repository.js';

let notifications: number;
let appender: InboxAppender;
beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['setImmediate'] });
  notifications = 0;
  const notifier = {
    notify: () => {
      notifications += 1;
    },
  };
  const writer = { insert: async () => {} } as unknown as InboxWriterRepository;
  appender = new InboxAppender(writer, new Clock(), notifier as unknown as QueueNotifier, new Metrics());
});
afterEach(() => jest.useRealTimers());

/** Appends deliveries, each in a separate commit. */
async function append(times: number): Promise<void> {
  const row = { signature: Buffer.alloc(0), body: Buffer.alloc(0), sentAt: '0', secretIndex: 0 };
  for (let i = 0; i < times; i += 1) await appender.append(row);
}

test('the first commit notifies immediately, and many within the interval once more at its end', async () => {
  await append(50);
  expect(notifications).toBe(1);
  jest.advanceTimersByTime(NOTIFY_INTERVAL_MS);
  expect(notifications).toBe(2);
  jest.advanceTimersByTime(10 * NOTIFY_INTERVAL_MS);
  expect(notifications).toBe(2);
  await append(1);
  expect(notifications).toBe(3);
});

test('a shutdown sends the pending notification', async () => {
  await append(2);
  await appender.onModuleDestroy();
  expect(notifications).toBe(2);
});
