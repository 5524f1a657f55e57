import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Clock } from '../../config/clock.js';
import { Random } from '../../config/random.js';
import { Database } from '../../database/database.js';
import { errorTrace } from '../../http/problem/error-trace.js';
import { Metrics } from '../../http/server/metrics.js';
import { type BackoffBounds, backoffMs } from '../backend/backoff.js';
import { DueLoop, type DueWork } from './due-loop.js';
import { DueRows, type DueTable, type Leased } from './due-rows.js';
import { FetchPause, type PauseCause } from './fetch-pause.js';
import { WorkerProcess } from './worker-process.js';

/** Bounds of the wait after a fault of a fetch, in milliseconds. */
const FAULT_BACKOFF: BackoffBounds = { baseMs: 2_000, maxMs: 15 * 60_000 };

/**
 * Bounds of the wait after the platform did not know what was asked for, in milliseconds: over two days it grows from
 * seconds, for what the platform has just made, to the longest pause.
 */
const NOT_FOUND_BACKOFF: BackoffBounds = { baseMs: 4_000, maxMs: 24 * 3_600_000 };

/** What a fetch came to, as far as its consequences differ. */
export type FetchResult<T> =
  | { kind: 'answer'; answer: T }
  | { kind: 'gone' }
  /** Concerns every fetch, not this one alone. */
  | { kind: 'pause'; code: PauseCause; askedMs?: number }
  /** Concerns this one alone, as far as is known. */
  | { kind: 'fault'; code: string };

/** Columns that decide on the next fetch of a row, beside those of its table. */
export interface FetchColumns {
  /** Faults of its own in a row. */
  failures: number;
  /** When the platform last refused the key for this very row. */
  refused_at: Date | null;
}

/** What a fetch leaves on its row: assignments, whose parameters count from $1. The lease ends with them. */
export interface Outcome {
  set: string;
  values: readonly unknown[];
  afterCommit?: () => Promise<void> | void;
}

/** A row that was fetched: as it was when it was claimed, and as it is now, locked. */
export interface Fetched<Row> {
  claimed: Row;
  row: Row & { now: Date };
}

/** Rows of one kind that are kept up to date by fetching them. They have `fault` and the `FetchColumns`, too. */
export interface FetchWork<Row extends FetchColumns, Answer> extends DueWork {
  /** Counts fetches by outcome. */
  readonly counter: { name: string; help: string };
  fetch(row: Row, signal: AbortSignal): Promise<FetchResult<Answer>>;
  storeAnswer(tx: PoolClient, fetched: Fetched<Row>, answer: Answer): Promise<Outcome>;
  /** @param waitMs after which it is fetched again */
  storeNotFound(fetched: Fetched<Row>, waitMs: number): Outcome;
}

/** What every loop of fetches needs. */
@Injectable()
export class FetchParts {
  constructor(
    readonly database: Database,
    readonly worker: WorkerProcess,
    readonly clock: Clock,
    readonly random: Random,
    readonly metrics: Metrics,
  ) {}

  dueRows<Row extends object>(table: DueTable): DueRows<Row> {
    return new DueRows(table, this.database, this.worker);
  }
}

/** Keeps the rows of a table up to date by fetching those that are due. */
export class FetchLoop<Row extends FetchColumns, Answer> extends DueLoop<Row> {
  private readonly pause = new FetchPause();
  private readonly fetches: ReturnType<Metrics['counter']>;

  constructor(
    private readonly rows: FetchWork<Row, Answer>,
    due: DueLoop<Row>['due'],
    private readonly parts: FetchParts,
  ) {
    super(rows, due, parts.worker, parts.clock);
    this.fetches = parts.metrics.counter(rows.counter.name, rows.counter.help, ['outcome']);
  }

  /** Stores an answer, unless the lease is lost. */
  storeAnswer(claim: Leased<Row>, answer: Answer): Promise<void> {
    return this.store(claim, (tx, fetched) => this.rows.storeAnswer(tx, fetched, answer));
  }

  /** Stores that the platform does not know a row now, unless the lease is lost. @param waitMs until the next fetch */
  storeNotFound(claim: Leased<Row>, waitMs: number): Promise<void> {
    return this.store(claim, async (_tx, fetched) => this.rows.storeNotFound(fetched, waitMs));
  }

  /**
   * Stores that a fetch failed, unless the lease is lost.
   *
   * @param waitMs until the next fetch
   * @param failures 1 when the fault is the row's own and makes its waits longer
   */
  async storeFault({ lease }: Leased<Row>, code: string, waitMs: number, failures: 0 | 1 = 0): Promise<void> {
    await this.due.settle(this.parts.database.pool, lease, {
      set: `fault = $1, failures = failures + $2,
        refused_at = CASE WHEN $1 = 'platform-unauthorized' THEN clock_timestamp() ELSE refused_at END,
        due_at = clock_timestamp() + $3 * interval '1 millisecond'`,
      values: [code, failures, waitMs],
    });
  }

  protected override mayClaim(): boolean {
    return super.mayClaim() && this.pause.mayFetch(this.clock.monotonicMs());
  }

  protected override nothingClaimed(): void {
    this.pause.unused();
  }

  protected override async work(claim: Leased<Row>): Promise<void> {
    const { signal } = this.shutdown;
    if (!this.mayWork()) {
      this.pause.unused();
      return this.storeFault(claim, 'stopped', 0);
    }
    const result = await this.rows.fetch(claim.row, signal);
    if (signal.aborted && result.kind !== 'answer') return this.storeFault(claim, 'stopped', 0);
    this.fetches.inc({ outcome: result.kind === 'pause' || result.kind === 'fault' ? result.code : result.kind });
    switch (result.kind) {
      case 'answer':
        this.pause.succeeded(this.clock.monotonicMs());
        return this.keep(claim, result.answer);
      case 'gone':
        this.pause.succeeded(this.clock.monotonicMs());
        return this.storeNotFound(claim, this.backoffOf(claim, NOT_FOUND_BACKOFF));
      case 'fault':
        this.pause.unused();
        return this.failed(claim, result.code);
      case 'pause':
        return this.begin(claim, result);
    }
  }

  /** An answer that can't be stored must not be fetched again and again without a pause. */
  private async keep(claim: Leased<Row>, answer: Answer): Promise<void> {
    try {
      await this.storeAnswer(claim, answer);
    } catch (error) {
      this.log.error({ msg: `an answer could not be stored (${this.rows.name})`, ...errorTrace(error) });
      await this.failed(claim, 'not-storable');
    }
  }

  private async store(
    { row: claimed, lease }: Leased<Row>,
    store: (tx: PoolClient, fetched: Fetched<Row>) => Promise<Outcome>,
  ): Promise<void> {
    const outcome = await this.parts.database.transaction(async (tx) => {
      const row = await this.due.lock(tx, lease);
      if (!row) return undefined;
      const stored = await store(tx, { claimed, row });
      await this.due.settle(tx, lease, stored);
      return stored;
    });
    await outcome?.afterCommit?.();
  }

  private async failed(claim: Leased<Row>, code: string): Promise<void> {
    await this.storeFault(claim, code, this.backoffOf(claim, FAULT_BACKOFF), 1);
  }

  private backoffOf({ row }: Leased<Row>, bounds: BackoffBounds): number {
    return backoffMs(row.failures + 1, this.parts.random.fraction(), bounds);
  }

  /** A refused key is the row's own fault when others were fetched since its last refusal; all else concerns all rows. */
  private async begin(claim: Leased<Row>, { code, askedMs }: FetchResult<Answer> & { kind: 'pause' }): Promise<void> {
    const now = this.clock.monotonicMs();
    const { refused_at: refusedAt } = claim.row;
    const refusedMs = refusedAt ? now - (this.nowMs() - refusedAt.getTime()) : undefined;
    if (code === 'platform-unauthorized' && refusedMs !== undefined && this.pause.succeededSince(refusedMs)) {
      this.pause.unused();
      return this.failed(claim, code);
    }
    const waitMs = this.pause.begin(code, now, this.parts.random.fraction(), askedMs) - now;
    this.log.warn({ msg: `nothing is fetched for the moment (${this.rows.name})`, code, forMs: Math.round(waitMs) });
    // Due later than whatever is due already: the probe after the pause prefers another row.
    await this.storeFault(claim, code, waitMs);
    this.rows.notifyAt(this.nowMs() + waitMs);
  }
}
