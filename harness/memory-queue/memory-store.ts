import type { Clock } from '../../src/config/clock.js';
import { MemoryState } from './memory-state.js';

/** Runs after which the work counts as endless. */
const MAX_RUNS = 100_000;

/** A worker, as its store sees it. */
interface StoreWorker {
  /** Of its queue. */
  readonly name: string;
  readonly inProgress: number;
  readonly nextInMs: number | undefined;
  startNext(): Promise<void> | undefined;
}

/**
 * A store of queues in memory, in place of Redis: the option `connection` of `MemoryQueue` and `MemoryWorker`. Its workers
 * do nothing by themselves: `runDue` and `startNext` start jobs, on the given clock.
 */
export class MemoryStore {
  private readonly states = new Map<string, MemoryState>();
  /** The workers that run, the one that took a job least recently first. */
  private workers: StoreWorker[] = [];
  /** Ends of jobs that the store could not take while it was unavailable. */
  private lateEnds: (() => void)[] = [];
  private isUnavailable = false;

  constructor(private readonly clock: Clock) {}

  get nowMs(): number {
    return this.clock.now().getTime();
  }

  /** True while every command is rejected. Jobs in progress continue, and end once the store is available again. */
  get isAway(): boolean {
    return this.isUnavailable;
  }

  set isAway(isAway: boolean) {
    this.isUnavailable = isAway;
    if (!isAway) for (const end of this.lateEnds.splice(0)) end();
  }

  /** True while a job is in progress. */
  get isBusy(): boolean {
    return this.workers.some(({ inProgress }) => inProgress > 0);
  }

  /**
   * Milliseconds until a worker can take a job, because of the limiter, `rateLimit` or a scheduler: 0 if `startNext` would
   * start one. Undefined if only a new job or the end of a job in progress changes something.
   */
  get nextInMs(): number | undefined {
    if (this.isAway) return undefined;
    const waits = this.workers.map((worker) => worker.nextInMs).filter((ms) => ms !== undefined);
    return waits.length === 0 ? undefined : Math.min(...waits);
  }

  /** Forgets everything, as `FLUSHALL` does. Jobs in progress continue, but leave no trace. */
  wipe(): void {
    this.states.clear();
  }

  /**
   * Takes the next job that can be taken now, and starts its processor.
   *
   * @param queue the only one to take from
   * @returns resolves when the job has ended; undefined if no worker can take one
   */
  startNext(queue?: string): Promise<void> | undefined {
    if (this.isAway) return undefined;
    for (const worker of this.workers) {
      if (queue !== undefined && worker.name !== queue) continue;
      const ended = worker.startNext();
      if (!ended) continue;
      this.workers = [...this.workers.filter((other) => other !== worker), worker];
      return ended;
    }
    return undefined;
  }

  /**
   * Starts jobs until none can be taken, and waits for those that it started. A job that another call started may still be
   * in progress afterwards.
   *
   * @param queue the only one to take from
   * @throws Error if the work never ends
   */
  async runDue(queue?: string): Promise<void> {
    const started = new Set<Promise<void>>();
    for (let runs = 0; runs < MAX_RUNS; runs += 1) {
      const ended = this.startNext(queue);
      if (ended) {
        const kept: Promise<void> = ended.finally(() => started.delete(kept));
        started.add(kept);
      } else if (started.size > 0) {
        await Promise.race(started);
      } else {
        return;
      }
    }
    throw new Error(`Jobs still wait after ${MAX_RUNS} runs.`);
  }

  /** The jobs of a queue. @throws Error while the store is unavailable */
  stateOf(queue: string): MemoryState {
    if (this.isAway) throw Object.assign(new Error('connect ECONNREFUSED memory'), { code: 'ECONNREFUSED' });
    const state = this.states.get(queue) ?? new MemoryState();
    this.states.set(queue, state);
    return state;
  }

  /** Calls `end` now, or once the store is available again. */
  whenAvailable(end: () => void): void {
    if (this.isAway) this.lateEnds.push(end);
    else end();
  }

  open(worker: StoreWorker): void {
    this.workers.push(worker);
  }

  close(worker: StoreWorker): void {
    this.workers = this.workers.filter((other) => other !== worker);
  }
}
