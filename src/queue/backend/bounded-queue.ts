import { Queue, type QueueOptions } from 'bullmq';
import { within } from '../../config/within.js';

/** Milliseconds that the store has to say goodbye; queues may close one after the other. */
const GOODBYE_MS = 300;

/**
 * BullMQ's queue, whose `close` succeeds also when its store was lost or fell silent: there is nobody to say goodbye to,
 * and Nest would print one stack trace for each queue.
 */
export class BoundedQueue extends Queue {
  constructor(name: string, options: QueueOptions) {
    super(name, options);
    // BullMQ prints whole connections of errors that nobody listens to; the notifier, which tells of them, comes later.
    this.on('error', () => undefined);
  }

  override async close(): Promise<void> {
    const closed = super.close().then(
      () => true,
      () => false,
    );
    if (await within(GOODBYE_MS, closed, () => false)) return;
    // Stops the attempts to connect again. Not awaited: it waits for the end of a connection that there is none of.
    this.disconnect().catch(() => undefined);
  }
}
