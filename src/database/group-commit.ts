import { setTimeout as delay } from 'node:timers/promises';

/** The bounds of a group commit. */
interface GroupCommitLimits {
  /** Commits under way at once. */
  inFlight: number;
  /** Of one commit. A single row may have more bytes. */
  batch: { rows: number; bytes: number };
  /** Of the rows that wait for a commit; a row that does not fit is refused. */
  waiting: { rows: number; bytes: number };
  /** Milliseconds from the arrival of a row until it is rejected, waiting included. */
  deadlineMs: number;
}

/** The row may or may not be in the database: the sender must send it again. */
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
 * Adaptive group commit: rows that arrive while a slot is free leave at the end of this turn of the event loop, others
 * together in the next commit. No timer delays a row; the busier the database, the larger the groups. A group that
 * fails is tried again row by row, once.
 */
export class GroupCommit<T> {
  private waiting: Entry<T>[] = [];
  private waitingBytes = 0;
  private readonly inFlight = new Set<readonly Entry<T>[]>();
  /** Runs only while rows wait or a commit is in flight, because 20 wake-ups a second cost an idle process CPU. */
  private deadlineCheck: NodeJS.Timeout | undefined;
  private gathering = false;
  private closed = false;

  /** @param how `commit` stores all or throws; `isUnavailable`: trying other rows is useless; `now` never goes back */
  constructor(
    private readonly limits: GroupCommitLimits,
    private readonly how: {
      commit(rows: readonly T[]): Promise<void>;
      isUnavailable(error: unknown): boolean;
      now(): number;
    },
  ) {}

  /** Rows that are in no commit yet, and commits under way. */
  get load(): { waiting: number; inFlight: number } {
    return { waiting: this.waiting.length, inFlight: this.inFlight.size };
  }

  /**
   * Commits a row together with others; resolves once it is committed.
   *
   * @param bytes that the row holds in memory
   * @throws {NotCommitted} at the latest when the deadline has passed
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

  /** Takes no more rows and waits until the present ones are committed or rejected. */
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

  /** How many of the waiting rows one commit takes. */
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

  /** Rows whose commit is under way are rejected too: its outcome is not known in time. */
  private rejectLate(): void {
    if (this.isEmpty) this.stopCheck();
    const firstInTime = this.waiting.findIndex((entry) => !this.isLate(entry));
    const late = this.takeFirst(firstInTime === -1 ? this.waiting.length : firstInTime);
    for (const group of this.inFlight) late.push(...group.filter((entry) => this.isLate(entry)));
    for (const entry of late) entry.reject(new NotCommitted('late'));
  }
}
