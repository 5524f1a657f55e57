import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { withTimeout } from '../../config/with-timeout.js';
import { type Health, HealthIndicator } from '../../monitoring/health-indicator.js';
import { PROBE, type QueueName } from '../backend/queue-names.js';
import { WorkQueue } from './work-queue.js';
import { type JobQueue, WorkStore } from './work-store.js';

/** Timeout for the end of the connections. */
const CLOSE_MS = 1_000;

/** The queues of a process, for adding rows. */
@Injectable()
export class WorkQueues implements OnApplicationShutdown {
  private readonly opened: JobQueue[] = [];
  private readonly queues = new Map<string, WorkQueue>();

  constructor(private readonly store: WorkStore) {}

  of(name: QueueName): WorkQueue {
    return this.open(name);
  }

  /** Adds a job, because a store that answers may still refuse to write, and workers may have nothing to do. */
  @HealthIndicator({ name: 'queue', needs: ['worker'] })
  async health(): Promise<Health> {
    await this.open(PROBE).add(PROBE);
    return this.store.health;
  }

  async onApplicationShutdown(): Promise<void> {
    const closed = Promise.allSettled(this.opened.map((queue) => queue.close())).then(() => this.store.close());
    await withTimeout(closed, CLOSE_MS, () => undefined).catch(() => undefined);
  }

  private open(name: string): WorkQueue {
    const known = this.queues.get(name);
    if (known) return known;
    const jobs = this.store.open(name);
    this.opened.push(jobs);
    const queue = new WorkQueue(jobs, this.store);
    this.queues.set(name, queue);
    return queue;
  }
}
