import type { PoolClient } from 'pg';
import { type DueColumns, DueLoop, type DueLoopDeps, type DueWork } from '../../due-rows/due-loop.js';
import { DueRows, type DueTable, type Leased } from '../../due-rows/due-rows.js';
import { type Lease, RELEASE } from '../../due-rows/lease.js';
import { errorTrace } from '../../errors/error-trace.js';
import { Problem } from '../../http/problem/problem.js';
import type { Metrics } from '../../monitoring/metrics.js';
import type { Bind } from '../../queue/notifier/poller.js';
import { backoffMs } from '../../queue/work/backoff.js';
import { Sending } from '../../sending/sending.js';
import { PlatformError } from '../contract/platform-errors.js';
import { FetchPause, type PauseCause } from '../fetch/fetch-pause.js';
import type { OutcomeWriter } from './outcome-writer.js';
import { retryWhenTaken } from './request-rows.js';

/**
 * The columns of a table of requests, in addition to those of due rows and leases. The table has `accepted_at`, too, with
 * an index on it where it is not null. States:
 *
 * - `Requested` with a due date: to be sent. Without one: an attempt is in flight, whose mark was committed before.
 * - `Unknown`: an attempt may have taken effect. It is never sent again automatically.
 * - Any other: the request has ended.
 */
interface RequestColumns extends DueColumns {
  id: string;
  state: string;
  /** When the attempt in flight, or the last one, was marked. */
  attemptedAt: Date | null;
  /** When the platform last answered in a way that may be the fault of the URL or the API key. */
  refusedAt: Date | null;
}

/** Changes a request by the outcome of its attempt. The row is locked. */
export interface RequestOutcomes<Row, Answer> {
  /** Stores the platform's answer. If it belongs to another request, the outcome stays unknown. */
  accepted(tx: PoolClient, row: Row, answer: Answer): Promise<void>;
  /** Stores that the platform certainly did not accept the request. @param message of the platform */
  rejected(tx: PoolClient, row: Row, message: string): Promise<void>;
  /** Stores that an attempt may have taken effect. Called once per attempt. */
  unknown(tx: PoolClient, row: Row): Promise<void>;
}

/** Requests that are sent at most once per attempt. */
interface SendWork<Row, Answer> extends DueWork {
  readonly table: Pick<DueTable, 'name' | 'columns'> & {
    readonly lane: number;
    /** SQL assignments when a late answer shows that an attempt had no effect. */
    readonly onRequestedAgain: string;
  };
  readonly outcomes: RequestOutcomes<Row, Answer>;
  /** Counts attempts by outcome. */
  readonly counter: { name: string; help: string };
  /** Timeout of the call. */
  readonly timeoutMs: number;
  /** @throws {PlatformError} which decides about the request; {Problem} if its body cannot be decrypted, or the audit log takes no entry */
  send(row: Row): Promise<Answer>;
  /** Called after an outcome was committed. */
  afterCommit?(): void;
}

/** How long after the platform's timeout an attempt may take to be sent and to store its outcome. */
const MARGIN_MS = 10_000;

/** The backoff of a request after an attempt that had no effect. */
const BACKOFF = { baseMs: 1_000, maxMs: 5 * 60_000 };

/** Maximum time from the mark of an attempt to its sending. A later attempt is not sent, because it may soon count as lost. */
const SEND_WITHIN_MS = 2_000;

/** SQL condition: an attempt is in flight, or its process died before it stored the outcome. */
export const ATTEMPT_IN_FLIGHT = `state = 'Requested' AND due_at IS NULL`;

/**
 * Sends requests that must not be sent twice. The mark of each attempt is committed first.
 *
 * - An answer accepts or rejects the request.
 * - Without a readable answer it is `Unknown`, and so is one whose process died.
 * - A redirect, 401, 403, 404 or 405 had no effect, and may be the fault of the URL or the API key. The operation pauses,
 *   and the request is sent again, first as a probe. If another request was accepted in between, the same answer rejects it.
 */
export class SendOnce<Row extends RequestColumns, Answer> extends DueLoop<Row> {
  private readonly rows: DueRows<Row>;
  private readonly pause = new FetchPause();
  private readonly attempts: ReturnType<Metrics['counter']>;

  constructor(
    private readonly requests: SendWork<Row, Answer>,
    private readonly outcomeWriter: OutcomeWriter,
    sending: Sending,
    deps: DueLoopDeps,
  ) {
    const { name, columns, lane } = requests.table;
    const onClaim = 'attempted_at = clock_timestamp(), due_at = NULL';
    const effectMs = requests.timeoutMs + MARGIN_MS;
    const table = { name, columns, key: 'id', lanes: [{ lane }], effectMs, held: sending.heldSql, onClaim };
    const rows = new DueRows<Row>(table, deps.database, deps.worker);
    super(requests, rows, deps);
    this.rows = rows;
    this.attempts = deps.metrics.counter(requests.counter.name, requests.counter.help, ['outcome']);
  }

  /** For the poller: due while `settleLost` has work. */
  readonly lostSince = (bind: Bind): string => this.rows.lostSince(ATTEMPT_IN_FLIGHT, bind);

  /** Marks requests `Unknown` whose process died before it stored the outcome of their attempt. */
  async settleLost(): Promise<void> {
    for (const lease of await this.rows.lost(ATTEMPT_IN_FLIGHT)) {
      this.log.warn(`a process ended before it stored the outcome of an attempt (${this.name})`);
      await this.storeUnknown(lease);
      this.attempts.inc({ outcome: 'lost' });
    }
  }

  protected override mayClaim(): boolean {
    return super.mayClaim() && this.pause.mayFetch(this.deps.clock.monotonicMs());
  }

  protected override nothingClaimed(): void {
    this.pause.releaseProbe();
  }

  protected override async work(attempt: Leased<Row>, claimingMs: number): Promise<void> {
    if (this.deps.clock.monotonicMs() - claimingMs > SEND_WITHIN_MS) return this.notSent(attempt, 'late');
    let answer: Answer;
    try {
      // No signal: a shutdown waits for the answer rather than leaving the outcome unknown.
      answer = await this.requests.send(attempt.row);
    } catch (error) {
      return this.failed(attempt, error);
    }
    this.pause.succeeded(this.deps.clock.monotonicMs());
    await this.save(attempt, 'accepted', () =>
      this.storeOutcome(attempt.lease, (tx, row) => this.requests.outcomes.accepted(tx, row, answer)),
    );
  }

  private async failed(attempt: Leased<Row>, error: unknown): Promise<void> {
    if (error instanceof Problem) {
      // It is retried, because a missing data key may return, and the audit log may take entries again.
      this.log.warn({
        msg: `a request could not be decrypted or recorded; nothing was sent (${this.name})`,
        ...errorTrace(error),
      });
      return this.notSent(attempt, 'unreadable');
    }
    if (!(error instanceof PlatformError)) {
      this.log.error({ msg: `an attempt failed unexpectedly (${this.name})`, ...errorTrace(error) });
    }
    if (!(error instanceof PlatformError) || error.kind === 'unknown-outcome') {
      this.pause.releaseProbe();
      return this.save(attempt, 'unknown-outcome', () => this.storeUnknown(attempt.lease));
    }
    const cause = pauseCauseOf(error);
    if (cause && !(isRefusal(cause) && (await this.isOwnFault(attempt.row)))) {
      return this.pauseAll(attempt, cause, error.retryAfterMs);
    }
    if (error.kind === 'held') return this.postpone(attempt, error.kind, 0, 0);
    if (error.kind === 'not-configured') return this.notSent(attempt, error.kind);
    this.pause.end();
    const message = error.platformMessage ?? '';
    return this.save(attempt, 'rejected', () =>
      this.storeOutcome(attempt.lease, (tx, row) => this.requests.outcomes.rejected(tx, row, message)),
    );
  }

  /** True if the platform accepted another request after it last refused this one, so that URL and key are right. */
  private async isOwnFault({ refusedAt }: Row): Promise<boolean> {
    if (refusedAt === null) return false;
    const accepted = `SELECT FROM ${this.requests.table.name} WHERE accepted_at > $1 LIMIT 1`;
    const { rowCount } = await this.deps.database.pool.query(accepted, [refusedAt]).catch(() => ({ rowCount: 0 }));
    return rowCount === 1;
  }

  /** Pauses the operation. The request is due when the pause ends, after all others, so that the probe is another one. */
  private async pauseAll(attempt: Leased<Row>, cause: PauseCause, askedMs: number | undefined): Promise<void> {
    const now = this.deps.clock.monotonicMs();
    const waitMs = this.pause.begin(cause, now, this.deps.random.fraction(), askedMs) - now;
    this.log.warn({ msg: `the operation is paused (${this.name})`, code: cause, forMs: Math.round(waitMs) });
    await this.postpone(attempt, cause, waitMs);
  }

  private notSent(attempt: Leased<Row>, fault: string): Promise<void> {
    this.pause.releaseProbe();
    return this.postpone(attempt, fault, backoffMs(attempt.row.failures + 1, this.deps.random.fraction(), BACKOFF));
  }

  /** Stores that an attempt had no effect, and makes the request due again. */
  private async postpone(attempt: Leased<Row>, fault: string, waitMs: number, failures: 0 | 1 = 1): Promise<void> {
    const { name, onRequestedAgain } = this.requests.table;
    await this.save(attempt, fault, () =>
      this.storeOutcome(attempt.lease, async (tx, row) => {
        await tx.query(
          `UPDATE ${name} SET state = 'Requested', attempted_at = NULL, fault = $2, failures = failures + $5,
             refused_at = CASE WHEN $4 THEN clock_timestamp() ELSE refused_at END,
             due_at = clock_timestamp() + $3 * interval '1 millisecond', ${RELEASE}
             ${row.state === 'Unknown' ? `, ${onRequestedAgain}` : ''}
           WHERE id = $1`,
          [attempt.lease.key, fault, waitMs, isRefusal(fault), failures],
        );
      }),
    );
  }

  private storeUnknown(lease: Lease): Promise<void> {
    return this.storeOutcome(lease, async (tx, row) => {
      if (row.state === 'Requested' && row.dueAt === null) await this.requests.outcomes.unknown(tx, row);
    });
  }

  /**
   * Stores the outcome of an attempt, unless the request has ended, or another attempt followed. A late answer counts,
   * although its lease is over and the request `Unknown`.
   */
  private async storeOutcome({ key, no }: Lease, store: (tx: PoolClient, row: Row) => Promise<void>): Promise<void> {
    const { name, columns } = this.requests.table;
    await retryWhenTaken(() =>
      this.deps.database.transaction(async (tx) => {
        const { rows } = await tx.query<Row>(
          `SELECT ${columns} FROM ${name} t WHERE id = $1 AND lease_no = $2 AND state IN ('Requested', 'Unknown') FOR UPDATE`,
          [key, no],
        );
        if (rows[0]) await store(tx, rows[0]);
      }),
    );
  }

  private async save({ lease }: Leased<Row>, outcome: string, write: () => Promise<unknown>): Promise<void> {
    const isStored = await this.outcomeWriter.writeUntilStored({ request: lease.key }, write);
    this.attempts.inc({ outcome });
    if (isStored) this.requests.afterCommit?.();
  }
}

/** True for answers that may be the fault of the URL or the API key instead of the request. */
function isRefusal(fault: string): boolean {
  return fault === 'platform-unauthorized' || fault === 'platform-address';
}

function pauseCauseOf({ kind, isWrongAddress }: PlatformError): PauseCause | undefined {
  if (kind === 'unauthorized') return 'platform-unauthorized';
  if (kind === 'not-found' || isWrongAddress) return 'platform-address';
  if (kind === 'unreachable') return 'platform-unreachable';
  return kind === 'rate-limited' ? kind : undefined;
}
