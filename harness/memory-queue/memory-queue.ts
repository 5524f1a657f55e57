import { EventEmitter } from 'node:events';
import { MemoryJob } from './memory-job.js';
import type { MemoryScheduler, MemoryTemplate } from './memory-schedulers.js';
import type { MemoryJobOptions, MemoryState, StoredJob } from './memory-state.js';
import type { MemoryStore } from './memory-store.js';

/** The names of BullMQ for the states of jobs. */
type JobType = 'waiting' | 'wait' | 'prioritized' | 'active' | 'delayed' | 'completed' | 'failed';

export interface MemoryQueueOptions {
  readonly connection: MemoryStore;
}

/** BullMQ's `Queue` on a store in memory: the part of it that the product uses. */
export class MemoryQueue<Data = unknown> extends EventEmitter {
  private readonly store: MemoryStore;

  constructor(
    readonly name: string,
    readonly opts: MemoryQueueOptions,
  ) {
    super();
    this.store = opts.connection;
  }

  async waitUntilReady(): Promise<void> {}

  /** @returns the job, with the id of the one of its row that waits or is active if there is one */
  async add(name: string, data: Data, opts: MemoryJobOptions = {}): Promise<MemoryJob<Data>> {
    const entry = { name, data: JSON.stringify(data), opts };
    return new MemoryJob(this.store, this.name, { ...entry, id: this.state.add(entry) });
  }

  /** The jobs in these states, by default newest first. @param end the last place of each state, -1 for all */
  async getJobs(types: readonly JobType[], start = 0, end = -1, asc = false): Promise<MemoryJob<Data>[]> {
    const found = types.flatMap((type) => {
      const jobs = asc ? this.inOrder(type) : this.inOrder(type).reverse();
      return jobs.slice(start, end < 0 ? undefined : end + 1);
    });
    return found.map((job) => new MemoryJob(this.store, this.name, job));
  }

  async getWaitingCount(): Promise<number> {
    return this.state.count('waiting', false);
  }

  async getPrioritizedCount(): Promise<number> {
    return this.state.count('waiting', true);
  }

  async getActiveCount(): Promise<number> {
    return this.state.count('active');
  }

  async setGlobalConcurrency(concurrency: number): Promise<void> {
    this.state.globalConcurrency = concurrency;
  }

  async getGlobalConcurrency(): Promise<number | null> {
    return this.state.globalConcurrency;
  }

  /** Pauses the workers that have a limiter. */
  async rateLimit(ms: number): Promise<void> {
    this.state.rateLimit(ms, this.store.nowMs);
  }

  async upsertJobScheduler(id: string, { every }: { every: number }, template: MemoryTemplate = {}): Promise<void> {
    this.state.schedulers.upsert(id, every, template, this.store.nowMs);
  }

  async getJobSchedulers(): Promise<MemoryScheduler[]> {
    return this.state.schedulers.all();
  }

  async close(): Promise<void> {}

  private get state(): MemoryState {
    return this.store.stateOf(this.name);
  }

  private inOrder(type: JobType): StoredJob[] {
    if (type === 'prioritized') return this.state.inOrder('waiting', true);
    if (type === 'waiting' || type === 'wait') return this.state.inOrder('waiting', false);
    return this.state.inOrder(type);
  }
}
