import { Logger } from '@nestjs/common';
import type { ConnectionOptions, Queue, Worker } from 'bullmq';
import type { Clock } from '../../config/clock.js';
import { isRetried } from '../../database/prisma.service.js';
import { type Health, healthOf } from '../../monitoring/health-indicator.js';
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

/** How long the store may answer late, or end connections, before it is a fault. A busy machine does both. */
const MAX_SILENCE_MS = 3_500;

/** How long a fault lasts after its last error, at least, because other connections of the store may still get answers. */
const CALM_MS = 2_000;

/** Minimum time between two log lines about an unavailable store. */
const REMINDER_MS = 60_000;

/** Where the queues are: Redis or PostgreSQL, with a connection of the workers and one of the producers. */
export abstract class WorkStore {
  private readonly log = new Logger('Queues');
  private quietUntilMs = Number.NEGATIVE_INFINITY;
  /** The fault of the store, in a sentence; undefined while it is available. */
  private fault: { readonly sentence: string; readonly since: Date } | undefined;
  private failedAtMs = Number.NEGATIVE_INFINITY;
  /** The first error without a cause since the last answer. */
  private silentSinceMs: number | undefined;

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

  /** Health of the store, as this process sees it. Without Redis, the fault of PostgreSQL is the cause. */
  get health(): Health {
    if (!this.fault) return { status: 'ok' };
    const { sentence, since } = this.fault;
    const values = { fault: sentence, setting: this.setting };
    return healthOf([{ code: 'queue-unavailable', values, follows: true, since }]);
  }

  /** Notes an error of the store, and logs it at most once a minute, because every connection reports it. */
  failed(error: unknown): void {
    if (isRetried(error)) return; // the store is available
    const nowMs = this.clock.monotonicMs();
    const hasCause = namesCause(error);
    if (!hasCause) this.silentSinceMs ??= nowMs;
    if (!hasCause && !this.fault && nowMs - (this.silentSinceMs ?? nowMs) < MAX_SILENCE_MS) return;
    this.failedAtMs = nowMs;
    const since = this.fault?.since ?? this.clock.now();
    if (hasCause || !this.fault) this.fault = { sentence: storeFault(error, this.setting), since };
    if (nowMs < this.quietUntilMs) return;
    this.quietUntilMs = nowMs + REMINDER_MS;
    this.log.warn(`${this.fault.sentence} Rows that are due wait, and are worked on once it is back`);
  }

  /** Notes that the store took a job. */
  answered(): void {
    this.silentSinceMs = undefined;
    if (!this.fault || this.clock.monotonicMs() - this.failedAtMs < CALM_MS) return;
    this.fault = undefined;
    this.log.log('the queues are available again');
  }
}
