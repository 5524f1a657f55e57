/** Why a row is not known to be kept. */
export type NotCommittedReason = 'full' | 'late' | 'database' | 'closing';

/** The row may or may not be in the database: the sender must send it again. */
export class NotCommitted extends Error {
  constructor(readonly reason: NotCommittedReason) {
    super(`not known to be kept: ${reason}`);
    this.name = 'NotCommitted';
  }
}

/** The bounds of a group commit. */
export interface GroupCommitLimits {
  /** Commits under way at once. */
  inFlight: number;
  /** Of one commit. A single row may have more bytes. */
  batch: { rows: number; bytes: number };
  /** Of the waiting room; a row that does not fit is refused. */
  waiting: { rows: number; bytes: number };
  /** Milliseconds from the arrival of a row until it is given up, waiting included. */
  deadlineMs: number;
}

/** What the group commit needs of the world. */
export interface GroupCommitWorld<T> {
  /** Commits all rows or throws. */
  commit(rows: readonly T[]): Promise<void>;
  /** Answers whether an error is not about the rows, so that trying others is useless. */
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
const WATCH_MS = 50;

/**
 * Adaptive group commit: a row that arrives while a commit slot is free leaves at once, with those of the same turn of
 * the event loop; whoever arrives while all slots are taken goes together in the next commit. No timer delays a row;
 * the busier the database, the larger the groups. A group that fails is tried again row by row, once, so that one row
 * can't take its company down.
 */
export class GroupCommit<T> {
  private waiting: Entry<T>[] = [];
  private waitingBytes = 0;
  private readonly inFlight = new Set<readonly Entry<T>[]>();
  private watch: NodeJS.Timeout | undefined;
  private gathering = false;
  private closed = false;
  private emptied: () => void = () => {};

  constructor(
    private readonly limits: GroupCommitLimits,
    private readonly world: GroupCommitWorld<T>,
  ) {}

  /** Rows that nobody commits yet, and commits under way. */
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
    const { rows, bytes: room } = this.limits.waiting;
    if (this.waiting.length >= rows || this.waitingBytes + bytes > room)
      return Promise.reject(new NotCommitted('full'));
    return new Promise((resolve, reject) => {
      this.waiting.push({ row, bytes, arrivedAt: this.world.now(), resolve, reject });
      this.waitingBytes += bytes;
      this.watch ??= setInterval(() => this.giveUpLate(), WATCH_MS);
      this.gather();
    });
  }

  /** Takes no more rows and waits until the present ones are committed or given up. */
  async close(): Promise<void> {
    this.closed = true;
    if (this.waiting.length === 0 && this.inFlight.size === 0) return;
    await new Promise<void>((resolve) => {
      this.emptied = resolve;
    });
  }

  /** Rows of requests that were read in the same turn of the event loop leave together. */
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
      void this.settle(group).finally(() => {
        this.inFlight.delete(group);
        this.fillSlots();
        this.rest();
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
    const group = this.waiting.splice(0, count);
    for (const entry of group) this.waitingBytes -= entry.bytes;
    return group;
  }

  private async settle(group: readonly Entry<T>[]): Promise<void> {
    try {
      await this.world.commit(group.map((entry) => entry.row));
      for (const entry of group) entry.resolve();
    } catch {
      await this.settleOneByOne(group);
    }
  }

  private async settleOneByOne(group: readonly Entry<T>[]): Promise<void> {
    let unavailable = false;
    for (const entry of group) {
      if (unavailable || this.isLate(entry)) {
        entry.reject(new NotCommitted(unavailable ? 'database' : 'late'));
        continue;
      }
      try {
        await this.world.commit([entry.row]);
        entry.resolve();
      } catch (error) {
        unavailable = this.world.isUnavailable(error);
        entry.reject(new NotCommitted('database'));
      }
    }
  }

  private isLate(entry: Entry<T>): boolean {
    return this.world.now() - entry.arrivedAt >= this.limits.deadlineMs;
  }

  /** Rows whose commit is under way are given up too: what becomes of them is not known in time. */
  private giveUpLate(): void {
    const firstInTime = this.waiting.findIndex((entry) => !this.isLate(entry));
    const late = this.waiting.splice(0, firstInTime === -1 ? this.waiting.length : firstInTime);
    for (const entry of late) this.waitingBytes -= entry.bytes;
    for (const group of this.inFlight) late.push(...group.filter((entry) => this.isLate(entry)));
    for (const entry of late) entry.reject(new NotCommitted('late'));
    this.rest();
  }

  private rest(): void {
    if (this.waiting.length > 0 || this.inFlight.size > 0) return;
    clearInterval(this.watch);
    this.watch = undefined;
    this.emptied();
  }
}
