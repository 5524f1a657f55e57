import { Logger } from '@nestjs/common';
import type { ConnectionOptions, Queue, Worker } from 'bullmq';
import type { Clock } from '../../config/clock.js';
import { namesCause, type StoreSetting, storeFault } from '../backend/store-fault.js';

/** The data of a job. It names a row, and holds nothing else. */
export interface RowJob {
  /** The row's primary key. */
  readonly id: string;
}

/** What this service uses of BullMQ's `Queue`. */
export type JobQueue = Pick<
  Queue<RowJob, void, string>,
  'add' | 'getJobs' | 'setGlobalConcurrency' | 'upsertJobScheduler' | 'close' | 'on'
>;

/** The options of BullMQ's module: all workers of a process share one connection. */
interface WorkerOptions {
  readonly connection: ConnectionOptions;
  readonly prefix?: string;
}

/** Minimum time between two log lines about an unavailable store. */
const REMINDER_MS = 60_000;

/** Where the queues are: Redis or PostgreSQL, with a connection of the workers and one of the producers. */
export abstract class WorkStore {
  private readonly log = new Logger('Queues');
  private quietUntilMs = Number.NEGATIVE_INFINITY;

  protected constructor(
    private readonly clock: Clock,
    private readonly setting: StoreSetting,
  ) {}

  /** The class of the workers. */
  abstract readonly workerClass: typeof Worker;
  /** Their options. Their connection waits for a store that is away. */
  abstract readonly workerOptions: WorkerOptions;

  /** Opens a queue for adding jobs, on a connection that fails at once while the store is away. */
  abstract open(name: string): JobQueue;

  /** Ends the connections. The workers are closed by now. */
  abstract close(): Promise<void>;

  /** Logs a fault of the store, at most once a minute, because every connection reports it. The feeder makes up for it. */
  failed(error: unknown): void {
    const nowMs = this.clock.monotonicMs();
    if (nowMs < this.quietUntilMs || !namesCause(error)) return;
    this.quietUntilMs = nowMs + REMINDER_MS;
    this.log.warn(`${storeFault(error, this.setting)} Rows that are due wait, and are worked on once it is back`);
  }
}
