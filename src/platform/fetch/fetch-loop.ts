import type { PoolClient } from 'pg';
import { type DueColumns, DueLoop, type DueLoopDeps, type DueWork } from '../../due-rows/due-loop.js';
import { DueRows, type DueTable, type Leased } from '../../due-rows/due-rows.js';
import { errorTrace } from '../../errors/error-trace.js';
import type { Metrics } from '../../monitoring/metrics.js';
import { type Bounds, backoffMs, FAULT_BACKOFF, NOT_FOUND_BACKOFF } from '../../queue/work/backoff.js';
import { UnreadableValue } from '../../vault/unreadable-value.js';
import { faultOf, PlatformError } from '../contract/platform-errors.js';
import { FetchPause, isPauseCause, isRefusal, type PauseCause } from './fetch-pause.js';

/** The columns that decide on the next fetch. */
export interface FetchColumns extends DueColumns {
  /** Consecutive faults of this row. */
  failures: number;
  /** The code of the last one. */
  fault: string | null;
  /** If that is a refusal: when the platform last rejected the key or the URL for this row, or first answered 404. */
  refusedAt: Date | null;
}

/** The changes of a row after a fetch, as assignments with parameters from $1. They end the lease. */
export interface Outcome {
  set: string;
  values: readonly unknown[];
  afterCommit?: () => Promise<void> | void;
}

/** A fetched row: as claimed, and as it is now, locked. */
export interface Fetched<Row> {
  claimed: Row;
  row: Row & { now: Date };
}

/** Rows of one kind that are updated by fetches. Their table has the `FetchColumns`. */
interface FetchWork<Row extends FetchColumns, Answer> extends DueWork {
  readonly table: DueTable;
  /** Counts fetches by outcome. */
  readonly counter: { name: string; help: string };
  /** @throws {PlatformError} which decides when the next fetch is due */
  fetch(row: Row, signal: AbortSignal): Promise<Answer>;
  storeAnswer(tx: PoolClient, fetched: Fetched<Row>, answer: Answer): Promise<Outcome>;
  /** @param waitMs until the next fetch */
  storeNotFound(fetched: Fetched<Row>, waitMs: number): Outcome;
}

/** Fetches the due rows of a table. */
export class FetchLoop<Row extends FetchColumns, Answer> extends DueLoop<Row> {
  private readonly pause = new FetchPause();
  private readonly fetches: ReturnType<Metrics['counter']>;

  constructor(
    private readonly rows: FetchWork<Row, Answer>,
    deps: DueLoopDeps,
    due: DueLoop<Row>['due'] = new DueRows<Row>(rows.table, deps.database, deps.worker),
  ) {
    super(rows, due, deps);
    this.fetches = deps.metrics.counter(rows.counter.name, rows.counter.help, ['outcome']);
  }

  /** Stores an answer, unless the lease is lost. */
  storeAnswer(claim: Leased<Row>, answer: Answer): Promise<void> {
    return this.store(claim, (tx, fetched) => this.rows.storeAnswer(tx, fetched, answer));
  }

  /** Stores that the platform does not know a row, unless the lease is lost. @param waitMs until the next fetch */
  storeNotFound(claim: Leased<Row>, waitMs: number): Promise<void> {
    return this.store(claim, async (_tx, fetched) => this.rows.storeNotFound(fetched, waitMs));
  }

  /**
   * Stores that a fetch failed, unless the lease is lost.
   *
   * @param waitMs until the next fetch
   * @param failures 1 for a fault of this row, which increases its backoff
   */
  async storeFault({ lease }: Leased<Row>, code: string, waitMs: number, failures: 0 | 1 = 0): Promise<void> {
    await this.due.settle(this.deps.database.pool, lease, {
      set: `fault = $1, failures = failures + $2,
        refused_at = CASE WHEN $4 AND ($1 <> 'maybe-gone' OR fault IS DISTINCT FROM $1) THEN clock_timestamp()
          ELSE refused_at END,
        due_at = clock_timestamp() + $3 * interval '1 millisecond'`,
      values: [code, failures, waitMs, isRefusal(code)],
    });
  }

  protected override mayClaim(): boolean {
    return super.mayClaim() && this.pause.mayFetch(this.deps.clock.monotonicMs());
  }

  protected override nothingClaimed(): void {
    this.pause.releaseProbe();
  }

  protected override async work(claim: Leased<Row>): Promise<void> {
    if (!this.deps.worker.hasFreshHeartbeat()) {
      this.pause.releaseProbe();
      return this.storeFault(claim, 'stopped', 0);
    }
    let answer: Answer;
    try {
      answer = await this.rows.fetch(claim.row, this.shutdown.signal);
    } catch (error) {
      return this.failed(claim, error);
    }
    this.fetches.inc({ outcome: 'answer' });
    this.pause.succeeded(this.deps.clock.monotonicMs());
    try {
      await this.storeAnswer(claim, answer);
    } catch (error) {
      // The stored row was damaged from outside, and another fetch would not fix it. An event makes it due again.
      if (error instanceof UnreadableValue) {
        const set = `fault = 'unreadable', failures = failures + 1, due_at = NULL`;
        await this.due.settle(this.deps.database.pool, claim.lease, { set, values: [] });
        return;
      }
      // Without a backoff, an answer that cannot be stored would be fetched continuously.
      this.log.error({ msg: `an answer could not be stored (${this.rows.name})`, ...errorTrace(error) });
      await this.scheduleRetry(claim, 'not-storable');
    }
  }

  private async failed(claim: Leased<Row>, error: unknown): Promise<void> {
    if (this.shutdown.signal.aborted) return this.storeFault(claim, 'stopped', 0);
    const fault = error instanceof PlatformError ? faultOf(error) : 'internal';
    const isGone = error instanceof PlatformError && error.kind === 'not-found' && this.isKnownGone(claim, fault);
    const code = isGone ? 'gone' : fault;
    this.fetches.inc({ outcome: code });
    if (isPauseCause(code)) return this.begin(claim, code, (error as PlatformError).retryAfterMs);
    // A 404 shows that a server answers, but not that it is the platform.
    if (fault === 'maybe-gone') this.pause.end();
    else this.pause.releaseProbe();
    return isGone
      ? this.storeNotFound(claim, this.backoffOf(claim, NOT_FOUND_BACKOFF))
      : this.scheduleRetry(claim, code);
  }

  private isKnownGone(claim: Leased<Row>, fault: string): boolean {
    return claim.row.fault === 'gone' || this.isOnlyThisRow(claim, fault);
  }

  private async store(
    { row: claimed, lease }: Leased<Row>,
    store: (tx: PoolClient, fetched: Fetched<Row>) => Promise<Outcome>,
  ): Promise<void> {
    const outcome = await this.deps.database.transaction(async (tx) => {
      const row = await this.due.lock(tx, lease);
      if (!row) return undefined;
      const stored = await store(tx, { claimed, row });
      await this.due.settle(tx, lease, stored);
      return stored;
    });
    await outcome?.afterCommit?.();
  }

  private scheduleRetry(claim: Leased<Row>, code: string): Promise<void> {
    return this.storeFault(claim, code, this.backoffOf(claim, FAULT_BACKOFF), 1);
  }

  private backoffOf({ row }: Leased<Row>, bounds: Bounds): number {
    return backoffMs(row.failures + 1, this.deps.random.fraction(), bounds);
  }

  /** True if another row was fetched since this row was refused for the same reason. */
  private isOnlyThisRow({ row }: Leased<Row>, code: string): boolean {
    if (row.fault !== code || row.refusedAt === null) return false;
    const { clock } = this.deps;
    return this.pause.succeededSince(clock.monotonicMs() - (clock.now().getTime() - row.refusedAt.getTime()));
  }

  /** Pauses all fetches, unless only this row is refused. */
  private async begin(claim: Leased<Row>, code: PauseCause, askedMs: number | undefined): Promise<void> {
    const { clock, random } = this.deps;
    if (isRefusal(code) && this.isOnlyThisRow(claim, code)) {
      this.pause.releaseProbe();
      return this.scheduleRetry(claim, code);
    }
    const now = clock.monotonicMs();
    const waitMs = this.pause.begin(code, now, random.fraction(), askedMs) - now;
    this.log.warn({ msg: `all fetches are paused (${this.rows.name})`, code, forMs: Math.round(waitMs) });
    // Due after all other rows, so that the probe after the pause is another row.
    await this.storeFault(claim, code, waitMs);
  }
}
