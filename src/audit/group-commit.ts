import { setTimeout as delay } from 'node:timers/promises';

/** The bounds of a group commit. */
interface GroupCommitLimits {
  /** Maximum concurrent commits. */
  inFlight: number;
  /** Of one commit. A single row may exceed the bytes. */
  batch: { rows: number; bytes: number };
  /** Of the rows that wait for a commit. A row beyond them is rejected. */
  waiting: { rows: number; bytes: number };
  /** How long after its arrival a row is rejected, including the wait. */
  deadlineMs: number;
}

/** Thrown when a row may or may not be in the database, so that the sender must repeat it. */
class NotCommitted extends Error {
  constructor(readonly reason: 'full' | 'late' | 'database' | 'closing') {
    super(`not known to be committed: ${reason}`);
  }
}

interface Entry<T> {
  row: T;
  bytes: number;
  arrivedAt: number;
  resolve: () => void;
  reject: (reason: NotCommitted) => void;
}

/** How often to look for late rows while there are any rows, and for the end of the last commit on shutdown. */
const DEADLINE_CHECK_MS = 50;
const CLOSE_CHECK_MS = 5;

/**
 * Adaptive group commit. Rows that arrive while a slot is free are committed at the end of this turn of the event loop,
 * others together in the next commit. No timer delays a row, and groups grow with the load of the database. A failed
 * group is retried once, row by row.
 */
export class GroupCommit<T> {
  private waiting: Entry<T>[] = [];
  private waitingBytes = 0;
  private readonly inFlight = new Set<readonly Entry<T>[]>();
  /** Runs only while rows wait or a commit is in flight, because 20 wake-ups a second cost an idle process CPU. */
  private deadlineCheck: NodeJS.Timeout | undefined;
  private gathering = false;
  private closed = false;

  /** @param how `commit` stores all rows or throws; after an error that `isUnavailable`, no row is retried; `now` is monotonic */
  constructor(
    private readonly limits: GroupCommitLimits,
    private readonly how: {
      commit(rows: readonly T[]): Promise<void>;
      isUnavailable(error: unknown): boolean;
      now(): number;
    },
  ) {}

  /** Waiting rows, and commits in progress. */
  get load(): { waiting: number; inFlight: number } {
    return { waiting: this.waiting.length, inFlight: this.inFlight.size };
  }

  /**
   * Commits a row together with others. Resolves once it is committed.
   *
   * @param bytes of the row in memory
   * @throws {NotCommitted} at its deadline at the latest
   */
  add(row: T, bytes: number): Promise<void> {
    const most = this.limits.waiting;
    const isFull = this.waiting.length >= most.rows || this.waitingBytes + bytes > most.bytes;
    if (this.closed || isFull) return Promise.reject(new NotCommitted(this.closed ? 'closing' : 'full'));
    return new Promise((resolve, reject) => {
      this.waiting.push({ row, bytes, arrivedAt: this.how.now(), resolve, reject });
      this.waitingBytes += bytes;
      this.deadlineCheck ??= setInterval(() => this.rejectLate(), DEADLINE_CHECK_MS).unref();
      if (this.gathering || this.inFlight.size >= this.limits.inFlight) return;
      this.gathering = true;
      setImmediate(() => {
        this.gathering = false;
        this.fillSlots();
      });
    });
  }

  /** Rejects new rows, and waits until the present ones are committed or rejected. */
  async close(): Promise<void> {
    this.closed = true;
    while (!this.isEmpty) await delay(CLOSE_CHECK_MS);
    this.stopCheck();
  }

  private fillSlots(): void {
    while (this.waiting.length > 0 && this.inFlight.size < this.limits.inFlight) {
      const group = this.takeFirst(this.fitting());
      this.inFlight.add(group);
      void this.commit(group).finally(() => {
        this.inFlight.delete(group);
        this.fillSlots();
      });
    }
  }

  /** The number of waiting rows for the next commit. */
  private fitting(): number {
    const { rows, bytes } = this.limits.batch;
    let size = 0;
    const tooMany = this.waiting.findIndex((entry, at) => {
      size += entry.bytes;
      return at === rows || (at > 0 && size > bytes);
    });
    return tooMany === -1 ? this.waiting.length : tooMany;
  }

  private takeFirst(count: number): Entry<T>[] {
    const taken = this.waiting.splice(0, count);
    for (const entry of taken) this.waitingBytes -= entry.bytes;
    return taken;
  }

  private async commit(group: readonly Entry<T>[]): Promise<void> {
    const together = this.how.commit(group.map(({ row }) => row)).then(() => true);
    const committed = await together.catch(() => false);
    let unavailable = false;
    for (const entry of group) {
      if (committed) entry.resolve();
      else if (unavailable) entry.reject(new NotCommitted('database'));
      else if (this.isLate(entry)) entry.reject(new NotCommitted('late'));
      else
        await this.how.commit([entry.row]).then(entry.resolve, (error: unknown) => {
          unavailable = this.how.isUnavailable(error);
          entry.reject(new NotCommitted('database'));
        });
    }
  }

  private get isEmpty(): boolean {
    return this.waiting.length + this.inFlight.size === 0;
  }

  private stopCheck(): void {
    clearInterval(this.deadlineCheck);
    this.deadlineCheck = undefined;
  }

  private isLate(entry: Entry<T>): boolean {
    return this.how.now() - entry.arrivedAt >= this.limits.deadlineMs;
  }

  /** Includes rows whose commit is in progress, because its outcome will not be known in time. */
  private rejectLate(): void {
    if (this.isEmpty) this.stopCheck();
    const firstInTime = this.waiting.findIndex((entry) => !this.isLate(entry));
    const late = this.takeFirst(firstInTime === -1 ? this.waiting.length : firstInTime);
    for (const group of this.inFlight) late.push(...group.filter((entry) => this.isLate(entry)));
    for (const entry of late) entry.reject(new NotCommitted('late'));
  }
}
