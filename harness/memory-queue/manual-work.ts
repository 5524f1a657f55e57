import { Injectable } from '@nestjs/common';
import type { Worker } from 'bullmq';
import type { Clock } from '../../src/config/clock.js';
import { WorkerProcess } from '../../src/processes/worker-process.js';
import { Feeder } from '../../src/queue/work/feeder.js';
import { Intervals } from '../../src/queue/work/intervals.js';
import { Processes } from '../../src/queue/work/processes.js';
import { type JobQueue, WorkStore } from '../../src/queue/work/work-store.js';
import { MemoryQueue } from './memory-queue.js';
import { MemoryStore } from './memory-store.js';
import { MemoryWorker } from './memory-worker.js';

/** The queues of one process of a world. The world starts their jobs. */
export class MemoryWorkStore extends WorkStore {
  readonly workerClass = MemoryWorker as unknown as typeof Worker;
  readonly workerOptions;
  readonly jobs: MemoryStore;

  constructor(clock: Clock) {
    super(clock, 'DATABASE_URL');
    this.jobs = new MemoryStore(clock);
    this.workerOptions = { connection: this.jobs as never };
  }

  open(name: string): JobQueue {
    return new MemoryQueue(name, { connection: this.jobs }) as unknown as JobQueue;
  }

  async close(): Promise<void> {}
}

/**
 * A feeder whose rounds the world starts, one after the other: of two at a time only one wakes people, so the other would
 * take the world for settled.
 */
@Injectable()
export class ManualFeeder extends Feeder {
  private last: Promise<void> = Promise.resolve();

  override round(): Promise<void> {
    this.last = this.last.then(() => super.round());
    return this.last;
  }
}

/** Work that the world repeats. */
@Injectable()
export class ManualIntervals extends Intervals {
  readonly names = new Set<string>();

  override every(_everyMs: number, name: string): void {
    this.names.add(name);
  }
}

/** A process whose heartbeats the world sends. */
@Injectable()
export class ManualHeartbeat extends WorkerProcess {
  protected override plan(): void {}
}

/** The row of a process, which the world renews. */
@Injectable()
export class ManualProcesses extends Processes {
  protected override plan(): void {}
}
