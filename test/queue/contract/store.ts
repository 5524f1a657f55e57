/** A row, and what tells one add from another. */
export interface RowData {
  readonly id: string;
  readonly change?: unknown;
}

/** The part of BullMQ's `Job` that the product uses. */
export interface ContractJob {
  readonly id?: string;
  readonly name: string;
  readonly data: RowData;
  readonly priority?: number;
  changePriority(options: { priority?: number }): Promise<void>;
}

export interface ContractOptions {
  readonly deduplication?: { readonly id: string; readonly keepLastIfActive?: boolean };
  readonly priority?: number;
  readonly removeOnComplete?: boolean;
  readonly removeOnFail?: boolean;
}

type JobState = 'waiting' | 'prioritized' | 'active' | 'delayed' | 'completed' | 'failed';

/** The part of BullMQ's `Queue` that the product uses. */
export interface ContractQueue {
  add(name: string, data: RowData, options?: ContractOptions): Promise<ContractJob>;
  getJobs(states: JobState[], start?: number, end?: number, asc?: boolean): Promise<ContractJob[]>;
  getWaitingCount(): Promise<number>;
  getPrioritizedCount(): Promise<number>;
  setGlobalConcurrency(concurrency: number): Promise<unknown>;
  getGlobalConcurrency(): Promise<number | null>;
  rateLimit(ms: number): Promise<void>;
  upsertJobScheduler(id: string, repeat: { every: number }, template?: object): Promise<unknown>;
  getJobSchedulers(): Promise<{ readonly key: string; readonly every?: number }[]>;
  close(): Promise<void>;
}

/** The part of BullMQ's `Worker` that the product uses. */
export interface ContractWorker {
  concurrency: number;
  readonly opts: { limiter?: { max: number; duration: number } };
  run(): Promise<void>;
  close(): Promise<void>;
}

export interface ContractWorkerOptions {
  readonly concurrency?: number;
  readonly autorun?: boolean;
  readonly limiter?: { max: number; duration: number };
}

export type Processor = (job: ContractJob) => Promise<unknown>;

/** A store of queues, and its time: real, or the world's. */
export interface ContractStore {
  /** How many adds the random test makes, so that it takes about a second. */
  readonly randomAdds: number;
  /** A queue of a producer. */
  queue(name: string): ContractQueue;
  worker(name: string, processor: Processor, options?: ContractWorkerOptions): ContractWorker;
  /** Deletes everything in the store. */
  wipe(): Promise<void>;
  /** Lets time pass, and with it the work. */
  advance(ms: number): Promise<void>;
  /** Lets time pass until `look` returns true. */
  until(look: () => boolean | Promise<boolean>): Promise<void>;
  /** Resolves later. For processors. */
  sleep(ms: number): Promise<void>;
  nowMs(): number;
  /** A queue of a producer that has never reached its store. */
  unreachableQueue(name: string): ContractQueue;
  /** What its adds do. On Redis, BullMQ waits for the first connection without end, whatever the connection's options. */
  readonly unreachableAdd: 'rejected' | 'hangs';
  /** How many commands the workers have sent so far; undefined for a store in memory. */
  commands?(): Promise<number>;
  /** Makes the store unavailable to producers, or available again. */
  setAway(isAway: boolean): Promise<void>;
  /** Everything in the store as text; undefined for a store in memory. */
  dump?(): Promise<string>;
  /** Closes the queues and workers of the test. */
  closeOpened(): Promise<void>;
  close(): Promise<void>;
}
