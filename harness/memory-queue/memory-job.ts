import type { MemoryEntry, MemoryJobOptions } from './memory-state.js';
import type { MemoryStore } from './memory-store.js';

/** BullMQ's `Job` in a store in memory. */
export class MemoryJob<Data = unknown> {
  readonly id: string;
  readonly name: string;
  readonly data: Data;
  readonly opts: MemoryJobOptions;
  priority: number;

  constructor(
    private readonly store: MemoryStore,
    private readonly queue: string,
    { id, name, data, opts, priority = opts.priority ?? 0 }: MemoryEntry & { id: string; priority?: number },
  ) {
    this.id = id;
    this.name = name;
    this.data = JSON.parse(data);
    this.opts = opts;
    this.priority = priority;
  }

  /** Moves a waiting job to the tail of the jobs with this priority. @throws Error if the job has ended */
  async changePriority({ priority = 0 }: { priority?: number }): Promise<void> {
    this.store.stateOf(this.queue).changePriority(this.id, priority);
    this.priority = priority;
  }
}
