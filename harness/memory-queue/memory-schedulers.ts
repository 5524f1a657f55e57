import type { MemoryJobOptions, MemoryState } from './memory-state.js';

/** What a job scheduler adds each time. */
export interface MemoryTemplate {
  readonly name?: string;
  readonly data?: unknown;
  readonly opts?: MemoryJobOptions;
}

/** A job scheduler as `getJobSchedulers` returns it. */
export interface MemoryScheduler {
  readonly key: string;
  readonly name: string;
  readonly every: number;
  readonly next: number;
}

interface Stored {
  readonly template: MemoryTemplate;
  readonly every: number;
  /** Distance of each run from a multiple of `every`. */
  readonly offset: number;
  readonly nextMs: number;
}

/** The job schedulers of a queue: the scripts `addJobScheduler` and `updateJobScheduler`. */
export class MemorySchedulers {
  private readonly byId = new Map<string, Stored>();

  constructor(private readonly state: MemoryState) {}

  /** Adds or replaces a scheduler. A new one runs at once, a known one when it would have run. */
  upsert(id: string, every: number, template: MemoryTemplate, nowMs: number): void {
    const known = this.byId.get(id);
    const isSame = known?.every === every;
    const pending = known && this.state.find(jobIdOf(id, known.nextMs));
    const isPending = pending?.state === 'waiting' || pending?.state === 'delayed';
    if (pending && isPending) this.state.remove(pending.id);
    let nextMs = known && isSame ? nextRun(known, nowMs) : nowMs;
    if (known && isSame && isPending) nextMs = known.nextMs;
    this.store(id, { template, every, offset: known?.offset ?? nextMs % every, nextMs }, nowMs);
  }

  /** Adds the next job of a scheduler, once its current one starts. */
  proceed(id: string, jobId: string, nowMs: number): void {
    const known = this.byId.get(id);
    if (known && jobIdOf(id, known.nextMs) === jobId)
      this.store(id, { ...known, nextMs: nextRun(known, nowMs) }, nowMs);
  }

  all(): MemoryScheduler[] {
    return [...this.byId]
      .map(([key, { every, nextMs, template }]) => ({ key, name: template.name ?? key, every, next: nextMs }))
      .sort((a, b) => b.next - a.next);
  }

  private store(id: string, scheduler: Stored, nowMs: number): void {
    this.byId.set(id, scheduler);
    const { template, nextMs } = scheduler;
    this.state.put({
      id: jobIdOf(id, nextMs),
      name: template.name ?? id,
      data: JSON.stringify(template.data ?? {}),
      opts: template.opts ?? {},
      state: nextMs > nowMs ? 'delayed' : 'waiting',
      dueMs: nextMs,
      schedulerId: id,
    });
  }
}

const jobIdOf = (id: string, ms: number): string => `repeat:${id}:${ms}`;

/** Runs that were missed are skipped. */
function nextRun({ nextMs, every, offset }: Stored, nowMs: number): number {
  if (nextMs + every >= nowMs) return nextMs + every;
  const slot = Math.floor(nowMs / every) * every + offset;
  return slot <= nowMs ? slot + every : slot;
}
