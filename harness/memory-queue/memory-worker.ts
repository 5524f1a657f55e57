import { EventEmitter } from 'node:events';
import { MemoryJob } from './memory-job.js';
import type { MemoryLimiter, MemoryState, StoredJob } from './memory-state.js';
import type { MemoryStore } from './memory-store.js';

/** The longest that a worker sleeps because of the limiter, as in BullMQ. */
const MAX_LIMIT_MS = 30_000;

export interface MemoryWorkerOptions {
  readonly connection: MemoryStore;
  readonly concurrency?: number;
  /** Defaults to true. */
  readonly autorun?: boolean;
  limiter?: MemoryLimiter;
}

type Processor<Data> = (job: MemoryJob<Data>, token?: string) => Promise<unknown>;

/** BullMQ's `Worker` on a store in memory. It takes a job only when the store's `startNext` or `runDue` is called. */
export class MemoryWorker<Data = unknown> extends EventEmitter {
  concurrency: number;
  private readonly store: MemoryStore;
  private readonly active = new Set<Promise<void>>();
  /** A worker that was told to wait does not ask again before, although `rateLimit` may have shortened the pause. */
  private limitUntilMs = 0;
  private isOpen = false;
  private closing: Promise<void> | undefined;
  private resolveRun = () => {};

  constructor(
    readonly name: string,
    private readonly processor: Processor<Data>,
    readonly opts: MemoryWorkerOptions,
  ) {
    super();
    this.store = opts.connection;
    this.concurrency = opts.concurrency ?? 1;
    if (opts.autorun ?? true) void this.run();
  }

  get inProgress(): number {
    return this.active.size;
  }

  isRunning(): boolean {
    return this.isOpen;
  }

  /** Lets the store give jobs to this worker. @returns resolves when the worker is closed */
  async run(): Promise<void> {
    if (this.isOpen) throw new Error('Worker is already running.');
    if (this.closing) return;
    this.isOpen = true;
    this.store.open(this);
    await new Promise<void>((resolve) => {
      this.resolveRun = resolve;
    });
  }

  async waitUntilReady(): Promise<void> {}

  /** Takes no more jobs. @returns resolves when those in progress have ended */
  close(): Promise<void> {
    this.closing ??= this.end();
    return this.closing;
  }

  /** Milliseconds until this worker can take a job; undefined without a free place or a job. */
  get nextInMs(): number | undefined {
    const { nowMs } = this.store;
    const state = this.store.stateOf(this.name);
    const readyInMs = this.canTake() && !state.isMaxed() ? state.readyInMs(nowMs) : undefined;
    if (readyInMs === undefined) return undefined;
    return Math.max(readyInMs, this.limitUntilMs - nowMs, state.limitedMs(this.opts.limiter, nowMs));
  }

  /** Takes a job and starts its processor. @returns resolves when it has ended; undefined without a job */
  startNext(): Promise<void> | undefined {
    const { nowMs } = this.store;
    if (!this.canTake() || this.limitUntilMs > nowMs) return undefined;
    const state = this.store.stateOf(this.name);
    const { job, limitedMs = 0 } = state.take(this.opts.limiter, nowMs);
    this.limitUntilMs = limitedMs > 0 ? nowMs + Math.min(limitedMs, MAX_LIMIT_MS) : 0;
    if (!job) return undefined;
    const ended = this.process(job, state).finally(() => this.active.delete(ended));
    this.active.add(ended);
    return ended;
  }

  private canTake(): boolean {
    return !this.closing && this.active.size < this.concurrency;
  }

  private async process(stored: StoredJob, state: MemoryState): Promise<void> {
    const job = new MemoryJob<Data>(this.store, this.name, stored);
    this.emit('active', job, 'waiting');
    const outcome = await this.processor(job, stored.id).then(
      (result) => ({ event: 'completed' as const, value: result }),
      (error: unknown) => ({ event: 'failed' as const, value: error }),
    );
    this.finish(stored, state, outcome.event);
    this.emit(outcome.event, job, outcome.value, 'active');
  }

  private finish(job: StoredJob, state: MemoryState, outcome: 'completed' | 'failed'): void {
    this.store.whenAvailable(() => {
      // A store that was wiped meanwhile knows neither the job nor its state.
      if (this.store.stateOf(this.name) === state) state.finish(job, outcome);
      else if (this.listenerCount('error') > 0) this.emit('error', new Error(`Missing key for job ${job.id}.`));
    });
  }

  private async end(): Promise<void> {
    await Promise.all(this.active);
    this.isOpen = false;
    this.store.close(this);
    this.resolveRun();
    this.emit('closed');
  }
}
