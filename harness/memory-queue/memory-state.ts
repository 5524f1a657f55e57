import { MemorySchedulers } from './memory-schedulers.js';

/** The options of a job that the product uses. */
export interface MemoryJobOptions {
  readonly deduplication?: { readonly id: string; readonly keepLastIfActive?: boolean };
  readonly priority?: number;
  readonly removeOnComplete?: boolean;
  readonly removeOnFail?: boolean;
}

/** Delays, retries, own ids and parents are missing, because a job only names a row. */
const KNOWN_OPTIONS = ['deduplication', 'priority', 'removeOnComplete', 'removeOnFail'];

/** What a caller adds. */
export interface MemoryEntry {
  readonly name: string;
  /** JSON, as in a real store. */
  readonly data: string;
  readonly opts: MemoryJobOptions;
}

/** A job in the store. */
export interface StoredJob extends MemoryEntry {
  readonly id: string;
  state: 'waiting' | 'active' | 'delayed' | 'completed' | 'failed';
  priority: number;
  /** Jobs of one priority start in this order. */
  place: number;
  /** When a delayed job may start. */
  readonly dueMs?: number;
  readonly schedulerId?: string;
}

/** The option `limiter` of a worker. */
export interface MemoryLimiter {
  readonly max: number;
  readonly duration: number;
}

/** What a worker fetches: a job, or how long the limiter allows none, or neither. */
export interface Fetched {
  readonly job?: StoredJob;
  readonly limitedMs?: number;
}

/**
 * One queue as BullMQ's scripts leave it. Each method is one script: `addStandardJob`, `addPrioritizedJob`,
 * `changePriority`, `moveToActive`, `moveToFinished`.
 */
export class MemoryState {
  globalConcurrency: number | null = null;
  readonly schedulers = new MemorySchedulers(this);
  private readonly jobs = new Map<string, StoredJob>();
  /** The job of each deduplication id that waits or is active. */
  private readonly winners = new Map<string, string>();
  /** The last entry that was added for an active job with `keepLastIfActive`. */
  private readonly nexts = new Map<string, MemoryEntry & { readonly id: string }>();
  private limiter = { jobs: 0, untilMs: 0 };
  private ids = 0;
  private places = 0;

  /** Adds a job, unless a job of its row waits or is active. @returns the id of the new job or of that one */
  add(entry: MemoryEntry): string {
    const unknown = Object.keys(entry.opts).find((name) => !KNOWN_OPTIONS.includes(name));
    if (unknown !== undefined) throw new Error(`The queue in memory has no option "${unknown}".`);
    this.ids += 1;
    const id = String(this.ids);
    const { id: row, keepLastIfActive } = entry.opts.deduplication ?? {};
    const winner = row === undefined ? undefined : this.winners.get(row);
    if (row !== undefined && winner !== undefined) {
      if (keepLastIfActive && this.jobs.get(winner)?.state === 'active') this.nexts.set(row, { ...entry, id });
      return winner;
    }
    this.put({ ...entry, id, state: 'waiting' });
    return id;
  }

  /** Stores a job behind the others of its priority. */
  put(job: Omit<StoredJob, 'priority' | 'place'>): void {
    this.jobs.set(job.id, { ...job, priority: job.opts.priority ?? 0, place: this.nextPlace() });
    if (job.opts.deduplication) this.winners.set(job.opts.deduplication.id, job.id);
  }

  find(id: string): StoredJob | undefined {
    return this.jobs.get(id);
  }

  remove(id: string): void {
    this.jobs.delete(id);
  }

  /** Moves a waiting job to the tail of a priority. Of another job it only changes the field. */
  changePriority(id: string, priority: number): void {
    const job = this.jobs.get(id);
    if (!job) throw new Error(`Missing key for job ${id}. changePriority`);
    job.priority = priority;
    if (job.state === 'waiting') job.place = this.nextPlace();
  }

  /** Starts the limiter's window anew. Only workers with a limiter look at it. */
  rateLimit(ms: number, nowMs: number): void {
    this.limiter = { jobs: Number.MAX_SAFE_INTEGER, untilMs: nowMs + ms };
  }

  /** Milliseconds until the limiter lets a job through. */
  limitedMs(limiter: MemoryLimiter | undefined, nowMs: number): number {
    if (!limiter || limiter.max > this.limiter.jobs) return 0;
    return Math.max(0, this.limiter.untilMs - nowMs);
  }

  isMaxed(): boolean {
    return this.globalConcurrency !== null && this.count('active') >= this.globalConcurrency;
  }

  /** Milliseconds until a job may start, if a worker is free and no limit holds; undefined without any. */
  readyInMs(nowMs: number): number | undefined {
    const waits = [...this.jobs.values()]
      .filter(({ state }) => state === 'waiting' || state === 'delayed')
      .map(({ state, dueMs = nowMs }) => (state === 'waiting' ? 0 : Math.max(0, dueMs - nowMs)));
    return waits.length === 0 ? undefined : Math.min(...waits);
  }

  /** Fetches the next job for a worker with this limiter. */
  take(limiter: MemoryLimiter | undefined, nowMs: number): Fetched {
    this.promoteDue(nowMs);
    const limitedMs = this.limitedMs(limiter, nowMs);
    if (limitedMs > 0) return { limitedMs };
    if (this.isMaxed()) return {};
    const [job] = this.inOrder('waiting');
    if (!job) return {};
    if (limiter) this.useLimiter(limiter, nowMs);
    job.state = 'active';
    if (job.schedulerId !== undefined) this.schedulers.proceed(job.schedulerId, job.id, nowMs);
    return { job };
  }

  /** Ends an active job. The entry that was added for its row meanwhile becomes a job. */
  finish(job: StoredJob, state: 'completed' | 'failed'): void {
    const row = job.opts.deduplication?.id;
    if (row !== undefined && this.winners.get(row) === job.id) this.winners.delete(row);
    const next = row === undefined ? undefined : this.nexts.get(row);
    if (row !== undefined && next) {
      this.nexts.delete(row);
      this.put({ ...next, state: 'waiting' });
    }
    job.state = state;
    const isRemoved = state === 'completed' ? job.opts.removeOnComplete : job.opts.removeOnFail;
    if (isRemoved) this.jobs.delete(job.id);
  }

  count(state: StoredJob['state'], isPrioritized?: boolean): number {
    return this.inOrder(state, isPrioritized).length;
  }

  /** The jobs in a state, the next to start first. @param isPrioritized undefined for both */
  inOrder(state: StoredJob['state'], isPrioritized?: boolean): StoredJob[] {
    return [...this.jobs.values()]
      .filter((job) => job.state === state && (isPrioritized ?? job.priority > 0) === job.priority > 0)
      .sort((a, b) => a.priority - b.priority || a.place - b.place);
  }

  private promoteDue(nowMs: number): void {
    for (const job of this.inOrder('delayed')) {
      if ((job.dueMs ?? 0) > nowMs) continue;
      job.state = 'waiting';
      job.place = this.nextPlace();
    }
  }

  /** The first job of a window starts it. */
  private useLimiter({ duration }: MemoryLimiter, nowMs: number): void {
    if (this.limiter.untilMs <= nowMs) this.limiter = { jobs: 0, untilMs: nowMs + duration };
    this.limiter.jobs += 1;
  }

  private nextPlace(): number {
    this.places += 1;
    return this.places;
  }
}
