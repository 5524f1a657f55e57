import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { withTimeout } from '../../config/with-timeout.js';
import type { WorkQueueName } from '../backend/queue-names.js';
import { WorkQueue } from './work-queue.js';
import { type JobQueue, WorkStore } from './work-store.js';

/** Timeout for the end of the connections. */
const CLOSE_MS = 1_000;

/** The queues of a process, for adding rows. */
@Injectable()
export class WorkQueues implements OnApplicationShutdown {
  private readonly opened: JobQueue[] = [];
  private readonly queues = new Map<WorkQueueName, WorkQueue>();

  constructor(private readonly store: WorkStore) {}

  of(name: WorkQueueName): WorkQueue {
    const known = this.queues.get(name);
    if (known) return known;
    const jobs = this.store.open(name);
    this.opened.push(jobs);
    const queue = new WorkQueue(jobs, this.store);
    this.queues.set(name, queue);
    return queue;
  }

  async onApplicationShutdown(): Promise<void> {
    const closed = Promise.allSettled(this.opened.map((queue) => queue.close())).then(() => this.store.close());
    await withTimeout(closed, CLOSE_MS, () => undefined).catch(() => undefined);
  }
}
