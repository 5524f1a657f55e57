import { optionsOf } from '../../../src/queue/work/work-queue.js';
import type {
  ContractJob,
  ContractOptions,
  ContractQueue,
  ContractStore,
  ContractWorker,
  ContractWorkerOptions,
} from './store.js';

const IDLE_LOOKS = 3;

/** A run of a job, as a processor saw it. */
export interface Run {
  readonly id: string;
  readonly change: unknown;
  readonly priority: number;
  readonly atMs: number;
}

/** A queue of its own for each test, and what its workers did. */
export class Contract {
  store!: ContractStore;
  queue!: ContractQueue;
  name = '';
  readonly runs: Run[] = [];
  active: string[] = [];
  mostActive = 0;
  /** Two active jobs of one row. */
  overlaps = 0;
  private tests = 0;
  private release = () => {};
  private gate: Promise<void> | undefined;

  begin(): void {
    this.tests += 1;
    this.name = `contract-${this.tests}`;
    this.queue = this.store.queue(this.name);
    this.runs.length = 0;
    this.active = [];
    this.mostActive = 0;
    this.overlaps = 0;
    this.gate = undefined;
  }

  async end(): Promise<void> {
    this.open();
    await this.store.closeOpened();
  }

  /** Adds a row that is not urgent. @param change anything that tells one add from another */
  add(id: string, change: unknown = 0, options: ContractOptions = {}): Promise<ContractJob> {
    return this.queue.add('row', { id, change }, { ...optionsOf(id, false), ...options });
  }

  addUrgent(id: string, change: unknown = 0): Promise<ContractJob> {
    return this.queue.add('row', { id, change }, optionsOf(id));
  }

  /** Starts a worker. @param work what its processor does besides recording the run */
  work(options: ContractWorkerOptions = {}, work: (job: ContractJob) => unknown = () => undefined): ContractWorker {
    return this.store.worker(this.name, (job) => this.process(job, work), options);
  }

  /** From now on, each processor waits at its end until `open`. */
  hold(): void {
    this.gate = new Promise((resolve) => {
      this.release = resolve;
    });
  }

  open(): void {
    this.gate = undefined;
    this.release();
  }

  /** Waits in a processor, which must not drive the time. */
  async waitInside(look: () => boolean): Promise<void> {
    while (!look()) await this.store.sleep(5);
  }

  get ranIds(): string[] {
    return this.runs.map(({ id }) => id);
  }

  /** Resolves after so many runs have started. */
  async untilRun(count: number): Promise<void> {
    await this.store.until(() => this.runs.length >= count);
  }

  /** Looks several times: PostgreSQL reads one state after the other, so a job that moves between them may be missed. */
  async untilIdle(): Promise<void> {
    let looks = 0;
    await this.store.until(async () => {
      const isIdle = this.active.length === 0 && (await this.rows()).length === 0;
      looks = isIdle ? looks + 1 : 0;
      return looks === IDLE_LOOKS;
    });
  }

  /** The rows that wait, are active or delayed, or left a job behind. */
  async rows(): Promise<string[]> {
    const all = await this.queue.getJobs(['waiting', 'prioritized', 'active', 'delayed', 'completed', 'failed']);
    return all.map(({ data }) => data.id);
  }

  private async process(job: ContractJob, work: (job: ContractJob) => unknown): Promise<void> {
    const { id, change } = job.data;
    this.runs.push({ id, change, priority: job.priority ?? 0, atMs: this.store.nowMs() });
    if (this.active.includes(id)) this.overlaps += 1;
    this.active.push(id);
    this.mostActive = Math.max(this.mostActive, this.active.length);
    try {
      await work(job);
      await this.gate;
    } finally {
      this.active.splice(this.active.indexOf(id), 1);
    }
  }
}
