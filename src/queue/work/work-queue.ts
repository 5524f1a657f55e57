import type { Job } from 'bullmq';
import { withTimeout } from '../../config/with-timeout.js';
import type { JobQueue, RowJob, WorkStore } from './work-store.js';

/** How long a caller waits for the store. A lost add costs a second, because the feeder adds the row again. */
export const ADD_TIMEOUT_MS = 1_500;

/** The priority of a job that is not urgent. Those without one come first. */
export const NOT_URGENT = 10;

/** Rows that wait for a worker, by their ids. */
export type WaitingRows = ReadonlyMap<string, Pick<Job<RowJob>, 'priority'>>;

/** The options of a row's job. @param urgent undefined in a queue without urgent rows */
export const optionsOf = (id: string, urgent?: boolean) => ({
  deduplication: { id, keepLastIfActive: true },
  removeOnComplete: true,
  removeOnFail: true,
  ...(urgent === false && { priority: NOT_URGENT }),
});

/** A job that repeats. */
export interface Schedule {
  readonly id: string;
  readonly everyMs: number;
}

/** The jobs of one queue. Each row has at most one waiting job and, while its worker lives, one active job. */
export class WorkQueue {
  /** @param queue on the producers' connection */
  constructor(
    private readonly queue: JobQueue,
    private readonly store: Pick<WorkStore, 'failed' | 'answered'>,
  ) {
    // Without a listener, a store that is away would end the process.
    queue.on('error', (error) => store.failed(error));
  }

  /**
   * Adds a row. If it waits already, it keeps its place; if it is being worked on, it runs once more. Never rejects, and
   * takes at most 1.5 seconds.
   *
   * @param urgent of a queue that has urgent rows: true moves it before those that are not, also if it waits already
   * @returns false without an answer of the store. The feeder adds the row again
   */
  async add(id: string, urgent?: boolean): Promise<boolean> {
    const added = await this.answered(async () => {
      const job = await this.queue.add('row', { id }, optionsOf(id, urgent));
      if (urgent) await job.changePriority({ priority: 0 });
      return true;
    });
    return added ?? false;
  }

  /**
   * The rows that wait for a worker, the next one first.
   *
   * @param limit of each priority
   * @returns undefined without an answer of the store
   */
  async waiting(limit = 100): Promise<WaitingRows | undefined> {
    const jobs = await this.answered(() => this.queue.getJobs(['waiting', 'prioritized'], 0, limit - 1, true));
    // A job that a worker takes meanwhile is undefined.
    return jobs && new Map(jobs.flatMap((job) => (job ? [[job.data.id, job]] : [])));
  }

  /** Bounds how many jobs all processes run at a time. */
  async setGlobalConcurrency(concurrency: number): Promise<void> {
    await this.answered(() => this.queue.setGlobalConcurrency(concurrency));
  }

  /** Makes a job repeat, unless it does already. */
  async schedule({ id, everyMs }: Schedule): Promise<void> {
    const options = { removeOnComplete: true, removeOnFail: true };
    await this.answered(() => this.queue.upsertJobScheduler(id, { every: everyMs }, { data: { id }, opts: options }));
  }

  private async answered<T>(ask: () => Promise<T>): Promise<T | undefined> {
    const late = new Error('no answer');
    try {
      const answer = await withTimeout(ask(), ADD_TIMEOUT_MS, () => Promise.reject(late));
      this.store.answered();
      return answer;
    } catch (error) {
      this.store.failed(error);
      return undefined;
    }
  }
}
