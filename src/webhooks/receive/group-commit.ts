/** The row may or may not be in the database: the sender must send it again. */
export class NotCommitted extends Error {
  constructor(readonly reason: 'full' | 'late' | 'database' | 'closing') {
    super(`not known to be committed: ${reason}`);
    this.name = 'NotCommitted';
  }
}

/** The bounds of a group commit. */
export interface GroupCommitLimits {
  /** Commits under way at once. */
  inFlight: number;
  /** Of one commit. A single row may have more bytes. */
  batch: { rows: number; bytes: number };
  /** Of the rows that wait for a commit; a row that does not fit is refused. */
  waiting: { rows: number; bytes: number };
  /** Milliseconds from the arrival of a row until it is rejected, waiting included. */
  deadlineMs: number;
}

interface GroupCommitDependencies<T> {
  /** Commits all rows or throws. */
  commit(rows: readonly T[]): Promise<void>;
  /** Whether an error is not about the rows, so that trying others is useless. */
  isUnavailable(error: unknown): boolean;
  /** Milliseconds that never go back. */
  now(): number;
}

interface Entry<T> {
  row: T;
  bytes: number;
  arrivedAt: number;
  resolve: () => void;
  reject: (reason: NotCommitted) => void;
}

/** Milliseconds between two looks for rows that are late. */
const DEADLINE_CHECK_MS = 50;

/**
 * Adaptive group commit: a row that arrives while a commit slot is free leaves at once, with those of the same tick of
 * the event loop; those that arrive while all slots are taken go together in the next commit. No timer delays a row;
 * the busier the database, the larger the groups. A group that fails is tried again row by row, once, so that one row
 * can't fail the others.
 */
export class GroupCommit<T> {
  private waiting: Entry<T>[] = [];
  private waitingBytes = 0;
  private readonly inFlight = new Set<readonly Entry<T>[]>();
  private deadlineCheck: NodeJS.Timeout | undefined;
  private gathering = false;
  private closed = false;
  private emptied: () => void = () => {};

  constructor(
    private readonly limits: GroupCommitLimits,
    private readonly dependencies: GroupCommitDependencies<T>,
  ) {}

  /** Rows that are in no commit yet, and commits under way. */
  get load(): { waiting: number; inFlight: number } {
    return { waiting: this.waiting.length, inFlight: this.inFlight.size };
  }

  /**
   * Commits a row together with others.
   *
   * @param bytes that the row holds in memory
   * @returns once the row is committed
   * @throws {NotCommitted} at the latest when the deadline has passed
   */
  add(row: T, bytes: number): Promise<void> {
    if (this.closed) return Promise.reject(new NotCommitted('closing'));
    const most = this.limits.waiting;
    if (this.waiting.length >= most.rows || this.waitingBytes + bytes > most.bytes)
      return Promise.reject(new NotCommitted('full'));
    return new Promise((resolve, reject) => {
      this.waiting.push({ row, bytes, arrivedAt: this.dependencies.now(), resolve, reject });
      this.waitingBytes += bytes;
      this.deadlineCheck ??= setInterval(() => this.rejectLate(), DEADLINE_CHECK_MS);
      this.gather();
    });
  }

  /** Takes no more rows and waits until the present ones are committed or rejected. */
  async close(): Promise<void> {
    this.closed = true;
    if (this.waiting.length === 0 && this.inFlight.size === 0) return;
    await new Promise<void>((resolve) => {
      this.emptied = resolve;
    });
  }

  /** Rows of requests that were read in the same tick of the event loop leave together. */
  private gather(): void {
    if (this.gathering || this.inFlight.size >= this.limits.inFlight) return;
    this.gathering = true;
    setImmediate(() => {
      this.gathering = false;
      this.fillSlots();
    });
  }

  private fillSlots(): void {
    while (this.waiting.length > 0 && this.inFlight.size < this.limits.inFlight) {
      const group = this.nextGroup();
      this.inFlight.add(group);
      void this.commit(group).finally(() => {
        this.inFlight.delete(group);
        this.fillSlots();
        this.endIfEmpty();
      });
    }
  }

  private nextGroup(): Entry<T>[] {
    const { rows, bytes } = this.limits.batch;
    let size = 0;
    let count = 0;
    for (const entry of this.waiting) {
      size += entry.bytes;
      if (count === rows || (count > 0 && size > bytes)) break;
      count += 1;
    }
    return this.takeFirst(count);
  }

  private takeFirst(count: number): Entry<T>[] {
    const taken = this.waiting.splice(0, count);
    for (const entry of taken) this.waitingBytes -= entry.bytes;
    return taken;
  }

  private async commit(group: readonly Entry<T>[]): Promise<void> {
    try {
      await this.dependencies.commit(group.map((entry) => entry.row));
      for (const entry of group) entry.resolve();
    } catch {
      await this.commitOneByOne(group);
    }
  }

  private async commitOneByOne(group: readonly Entry<T>[]): Promise<void> {
    let unavailable = false;
    for (const entry of group) {
      if (unavailable || this.isLate(entry)) {
        entry.reject(new NotCommitted(unavailable ? 'database' : 'late'));
        continue;
      }
      try {
        await this.dependencies.commit([entry.row]);
        entry.resolve();
      } catch (error) {
        unavailable = this.dependencies.isUnavailable(error);
        entry.reject(new NotCommitted('database'));
      }
    }
  }

  private isLate(entry: Entry<T>): boolean {
    return this.dependencies.now() - entry.arrivedAt >= this.limits.deadlineMs;
  }

  /** Rows whose commit is under way are rejected too: its outcome is not known in time. */
  private rejectLate(): void {
    const firstInTime = this.waiting.findIndex((entry) => !this.isLate(entry));
    const late = this.takeFirst(firstInTime === -1 ? this.waiting.length : firstInTime);
    for (const group of this.inFlight) late.push(...group.filter((entry) => this.isLate(entry)));
    for (const entry of late) entry.reject(new NotCommitted('late'));
    this.endIfEmpty();
  }

  private endIfEmpty(): void {
    if (this.waiting.length > 0 || this.inFlight.size > 0) return;
    clearInterval(this.deadlineCheck);
    this.deadlineCheck = undefined;
    this.emptied();
  }
}
