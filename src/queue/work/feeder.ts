import { Injectable } from '@nestjs/common';
import { Intervals } from './intervals.js';
import type { Schedule, WorkQueue } from './work-queue.js';

/** Time between two rounds. A row whose job was lost waits at most as long. */
export const ROUND_MS = 1_000;

/** Usual maximum of rows that wait in a queue, so that a pause or a hold takes effect within seconds. */
export const QUEUE_LENGTH = 50;

/** The name of the rounds in the log. */
export const DUE_ROWS = 'due rows';

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
 * Adds due rows to their queues once a second, in each worker process. So a store that loses everything costs a second, and
 * nothing else. Processes may add the same row: it then waits once.
 */
@Injectable()
export class Feeder {
  private readonly fed: Fed[] = [];

  constructor(private readonly intervals: Intervals) {}

  /** Declares a queue. Call it from a processor's `onModuleInit`. */
  feed(fed: Fed): void {
    this.fed.push(fed);
    // Each queue has rounds of its own, so that one whose store or statement hangs delays no other.
    this.intervals.every(ROUND_MS, DUE_ROWS, () => this.fill(fed));
  }

  /** Adds the due rows of every queue now. A queue whose rows cannot be read stops no other. */
  async round(): Promise<void> {
    await Promise.allSettled(this.fed.map((fed) => this.fill(fed)));
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
      if (!(await queue.add(id, urgent))) return;
      if (!job) room -= 1;
    }
  }
}
