import { Logger } from '@nestjs/common';
import type { Clock } from '../../config/clock.js';
import type { Random } from '../../config/random.js';
import { errorTrace } from '../../http/problem/error-trace.js';
import { type BackoffBounds, backoffMs } from '../../queue/backend/backoff.js';
import { FAULT_BACKOFF, GONE_BACKOFF } from '../model/refresh-timing.js';
import type { FetchResult } from './platform-sessions.js';
import { RefreshPause } from './refresh-pause.js';

/** Milliseconds; what is due later than this is left to the poller. */
const HORIZON_MS = 60_000;

/** Milliseconds before the next ring, at least. */
const SHORTEST_RING_MS = 100;

/** Milliseconds after which a ring counts as lost. */
const BELL_LOST_MS = 4_000;

/** Rows that one round of the poller fetches at most. */
const SWEEP_TURNS = 25;

/** A row whose turn it is, leased to this worker. */
export interface FetchClaim {
  /** Faults of its own in a row. */
  failures: number;
  /** When the platform last refused the key for this very row. */
  refusedAt: Date | null;
}

/** Why a fetch failed, and when the next may leave. */
export interface FetchFault {
  code: string;
  /** Milliseconds from now. */
  waitMs: number;
  /** True when the fault is the row's own and makes its waits longer. */
  failure: boolean;
}

/** The row is due again at once. */
const STOPPED: FetchFault = { code: 'stopped', waitMs: 0, failure: false };

/** Rows of one kind that are kept up to date by fetching them. */
export interface FetchWork<Turn extends FetchClaim, Answer> {
  /** For the log. */
  readonly name: string;
  /** False while the contract does not say how to fetch: the rows stay due for a later start. */
  isConfigured(): boolean;
  /** Rows that are fetched side by side after `wake`. */
  readonly places?: number;
  /** False while this process must not begin anything: its leases may be another's. */
  mayWork?(): boolean;
  claimNext(): Promise<Turn | undefined>;
  /** When the next row is due that nobody works on. */
  nextDueAt(): Promise<Date | undefined>;
  fetch(turn: Turn, signal: AbortSignal): Promise<FetchResult<Answer>>;
  keepAnswer(turn: Turn, answer: Answer): Promise<void>;
  /** @param waitMs after which it is fetched again */
  recordNotFound(turn: Turn, waitMs: number): Promise<void>;
  keepFault(turn: Turn, fault: FetchFault): Promise<void>;
  /** Whatever became of a turn, this process works on it no longer. */
  endClaim?(turn: Turn): void;
  /** Wakes another worker at a moment, milliseconds since the Unix epoch. */
  notifyAt(moment: number): void;
  count(outcome: string): void;
}

/** Fetches the rows that are due, one after the other; several activations do so side by side. */
export class FetchLoop<Turn extends FetchClaim, Answer> {
  private readonly log = new Logger(FetchLoop.name);
  private readonly pause = new RefreshPause();
  private readonly shutdown = new AbortController();
  private readonly underWay = new Set<Promise<void>>();
  private wokenMeanwhile = false;

  constructor(
    private readonly work: FetchWork<Turn, Answer>,
    private readonly clock: Clock,
    private readonly random: Random,
  ) {}

  /** Ends the fetches that are under way; their rows are due again at once. */
  stop(): void {
    this.shutdown.abort();
  }

  /** Resolves when what `wake` began has ended. */
  async finished(): Promise<void> {
    while (this.underWay.size > 0) await Promise.all(this.underWay);
  }

  /** Begins to work beside what is under way, in a place that is free; without one, as soon as one is. */
  wake(): void {
    if (this.shutdown.signal.aborted) return;
    if (this.hasNoPlace()) {
      this.wokenMeanwhile = true;
      return;
    }
    const work = this.run()
      .catch((error: unknown) => this.log.warn({ msg: `a turn failed (${this.work.name})`, ...errorTrace(error) }))
      .finally(() => {
        this.underWay.delete(work);
        if (!this.wokenMeanwhile) return;
        this.wokenMeanwhile = false;
        this.wake();
      });
    this.underWay.add(work);
  }

  /** Works until nothing is due, or so many rows had their turn. */
  async run(turns = Number.POSITIVE_INFINITY): Promise<void> {
    if (!this.work.isConfigured()) return;
    for (let taken = 0; taken < turns && this.mayGoOn(); taken += 1) {
      const turn = await this.claimNext();
      if (!turn) return this.notifyForNext();
      this.letAnotherJoin();
      await this.fetch(turn).finally(() => this.work.endClaim?.(turn));
    }
  }

  /** Notifies for what is due; what nobody came for although a notification was sent is fetched here. */
  async lookAround(): Promise<void> {
    if (!this.work.isConfigured()) return;
    const overdueMs = this.nowMs() - ((await this.work.nextDueAt())?.getTime() ?? Number.POSITIVE_INFINITY);
    if (overdueMs >= 0) this.work.notifyAt(this.nowMs());
    if (overdueMs > BELL_LOST_MS) await this.run(SWEEP_TURNS);
  }

  /** There may be more that is due: another place of this process looks, or, when all are taken, another process. */
  private letAnotherJoin(): void {
    if (this.hasNoPlace()) this.work.notifyAt(this.nowMs());
    else this.wake();
  }

  private hasNoPlace(): boolean {
    return this.underWay.size >= (this.work.places ?? 0);
  }

  private mayGoOn(): boolean {
    return !this.shutdown.signal.aborted && this.mayWork() && this.pause.mayFetch(this.clock.monotonicMs());
  }

  private mayWork(): boolean {
    return this.work.mayWork?.() ?? true;
  }

  private nowMs(): number {
    return this.clock.now().getTime();
  }

  private async claimNext(): Promise<Turn | undefined> {
    let turn: Turn | undefined;
    try {
      turn = await this.work.claimNext();
      return turn;
    } finally {
      if (!turn) this.pause.unused();
    }
  }

  private async fetch(turn: Turn): Promise<void> {
    const { signal } = this.shutdown;
    if (!this.mayWork()) {
      this.pause.unused();
      return this.work.keepFault(turn, STOPPED);
    }
    const result = await this.work.fetch(turn, signal);
    if (signal.aborted && result.kind !== 'answer') return this.work.keepFault(turn, STOPPED);
    this.work.count(result.kind === 'pause' || result.kind === 'fault' ? result.code : result.kind);
    switch (result.kind) {
      case 'answer':
        this.pause.succeeded(this.clock.monotonicMs());
        return this.keep(turn, result.answer);
      case 'gone':
        this.pause.succeeded(this.clock.monotonicMs());
        return this.work.recordNotFound(turn, this.backoffOf(turn, GONE_BACKOFF));
      case 'fault':
        this.pause.unused();
        return this.failure(turn, result.code);
      case 'pause':
        return this.holdBack(turn, result);
    }
  }

  /** An answer that can't be stored must not be fetched again and again without a pause. */
  private async keep(turn: Turn, answer: Answer): Promise<void> {
    try {
      await this.work.keepAnswer(turn, answer);
    } catch (error) {
      this.log.error({ msg: `an answer could not be stored (${this.work.name})`, ...errorTrace(error) });
      await this.failure(turn, 'not-storable');
    }
  }

  private async failure(turn: Turn, code: string): Promise<void> {
    await this.work.keepFault(turn, { code, waitMs: this.backoffOf(turn, FAULT_BACKOFF), failure: true });
  }

  private backoffOf(turn: Turn, bounds: BackoffBounds): number {
    return backoffMs(turn.failures + 1, this.random.fraction(), bounds);
  }

  /** A refusal is the row's own when others were fetched since its last one (trap 15); all else concerns all. */
  private async holdBack(turn: Turn, { code, askedMs }: FetchResult<Answer> & { kind: 'pause' }): Promise<void> {
    const now = this.clock.monotonicMs();
    const refusedMs = turn.refusedAt ? now - (this.nowMs() - turn.refusedAt.getTime()) : undefined;
    if (code === 'platform-unauthorized' && refusedMs !== undefined && this.pause.succeededSince(refusedMs)) {
      this.pause.unused();
      return this.failure(turn, code);
    }
    const waitMs = this.pause.begin(code, now, this.random.fraction(), askedMs) - now;
    this.log.warn({ msg: `nothing is fetched for the moment (${this.work.name})`, code, forMs: Math.round(waitMs) });
    // Due later than whatever is due already: the probe after the pause prefers another row.
    await this.work.keepFault(turn, { code, waitMs, failure: false });
    this.work.notifyAt(this.nowMs() + waitMs);
  }

  private async notifyForNext(): Promise<void> {
    const next = (await this.work.nextDueAt())?.getTime();
    if (next === undefined || next >= this.nowMs() + HORIZON_MS) return;
    // What is due and could not be taken must not ring without a pause.
    this.work.notifyAt(Math.max(next, this.nowMs() + SHORTEST_RING_MS));
  }
}
