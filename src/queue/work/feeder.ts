import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { withTimeout } from '../../config/with-timeout.js';
import { isDatabaseUnavailable } from '../../errors/database-fault.js';
import { errorTrace } from '../../errors/error-trace.js';
import type { Schedule, WorkQueue } from './work-queue.js';

/** Time between two rounds. A row whose job was lost waits at most as long. */
export const ROUND_MS = 1_000;

/** Usual maximum of rows that wait in a queue, so that a pause or a hold takes effect within seconds. */
export const QUEUE_LENGTH = 50;

/** How long a shutdown waits for a round, which may wait for a silent database. */
const STOP_MS = 1_000;

/** Minimum time between two log lines about failed rounds. */
const QUIET_MS = 30_000;

/** A row that is due. */
export interface DueRow {
  readonly id: string;
  /** Undefined in a queue without urgent rows. */
  readonly urgent?: boolean;
}

/** A queue whose rows the feeder adds. */
export interface Fed {
  readonly queue: WorkQueue;
  /**
   * The rows that are due now: up to `length` urgent ones, then as many of the others, each the longest due first.
   * It leaves out the rows that may not be worked on for now.
   */
  due(): Promise<readonly DueRow[]>;
  /** Maximum rows that wait in the queue; `QUEUE_LENGTH` by default. */
  readonly length?: number;
  /** Maximum jobs in progress over all processes. */
  readonly concurrency?: number;
  readonly schedules?: readonly Schedule[];
}

/**
 * Adds due rows to their queues once a second, in each worker process. It is a timer and no job, because a wiped store
 * forgets its schedulers. So a store that loses everything costs a second, and nothing else. Processes may add the same row:
 * it then waits once.
 */
@Injectable()
export class Feeder implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly log = new Logger(Feeder.name);
  private readonly fed: Fed[] = [];
  private readonly running = new Map<Fed, Promise<void>>();
  private readonly timers = new Map<Fed, () => void>();
  private isStopped = false;
  private quietUntilMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly env: Env,
    private readonly clock: Clock,
  ) {}

  /** Declares a queue. Call it from a processor's `onModuleInit`. */
  feed(fed: Fed): void {
    this.fed.push(fed);
  }

  onApplicationBootstrap(): void {
    if (this.env.hasRole('worker')) for (const fed of this.fed) this.plan(fed);
  }

  async onModuleDestroy(): Promise<void> {
    this.isStopped = true;
    for (const cancel of this.timers.values()) cancel();
    await withTimeout(Promise.all(this.running.values()), STOP_MS, () => undefined);
  }

  /** Each queue has rounds of its own, so that one whose store or statement hangs delays no other. */
  protected plan(fed: Fed): void {
    const next = () => {
      const round = this.fill(fed).catch((error: unknown) => this.warn(error));
      this.running.set(fed, round);
      void round.finally(() => {
        if (!this.isStopped) this.plan(fed);
      });
    };
    this.timers.set(fed, this.clock.after(ROUND_MS, next));
  }

  /** Adds the due rows of every queue now. */
  async round(): Promise<void> {
    await Promise.all(this.fed.map((fed) => this.fill(fed).catch((error: unknown) => this.warn(error))));
  }

  private async fill({ queue, due, length = QUEUE_LENGTH, concurrency, schedules = [] }: Fed): Promise<void> {
    // A wiped store forgets both.
    if (concurrency !== undefined) await queue.setGlobalConcurrency(concurrency);
    for (const schedule of schedules) await queue.schedule(schedule);
    const rows = await due();
    const waiting = rows.length > 0 ? await queue.waiting(2 * length) : undefined;
    if (!waiting) return;
    let room = length - waiting.size;
    for (const { id, urgent } of rows) {
      const job = waiting.get(id);
      // A row may have become urgent while its job waits. An urgent job stays untouched: it would move to the tail.
      const isLate = job !== undefined && urgent === true && job.priority > 0;
      if (job ? !isLate : !urgent && room <= 0) continue;
      if (this.isStopped || !(await queue.add(id, urgent))) return;
      if (!job) room -= 1;
    }
  }

  private warn(error: unknown): void {
    const nowMs = this.clock.monotonicMs();
    if (nowMs < this.quietUntilMs) return;
    this.quietUntilMs = nowMs + QUIET_MS;
    const isUnavailable = isDatabaseUnavailable(error);
    this.log.warn({
      msg: isUnavailable
        ? 'PostgreSQL is unavailable, so due rows wait'
        : 'due rows could not be read, and are read again',
      ...(isUnavailable ? {} : errorTrace(error)),
    });
  }
}
