import { Queue, type QueueOptions } from 'bullmq';

/**
 * BullMQ's queue, whose `close` succeeds also when its store was lost: there is nobody to say goodbye to, and Nest would
 * print one stack trace for each queue.
 */
export class BoundedQueue extends Queue {
  constructor(name: string, options: QueueOptions) {
    super(name, options);
    // BullMQ prints whole connections of errors that nobody listens to; the doorbell, which tells of them, comes later.
    this.on('error', () => undefined);
  }

  override async close(): Promise<void> {
    await super.close().catch(() => {
      // Stops the attempts to connect again. Not awaited: it waits for the end of a connection that there is none of.
      this.disconnect().catch(() => undefined);
    });
  }
}
