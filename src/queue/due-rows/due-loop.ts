import { Logger } from '@nestjs/common';
import type { Clock } from '../../config/clock.js';
import { errorTrace } from '../../http/problem/error-trace.js';
import type { DueRows, Leased } from './due-rows.js';
import type { WorkerProcess } from './worker-process.js';

/** Milliseconds; what is due later than this is left to the poller. */
const HORIZON_MS = 60_000;

/** Milliseconds before the next notification, at least: a row that is due and can't be claimed must not cause a spin. */
const SHORTEST_WAIT_MS = 100;

/** What a loop does with the rows of one table. */
export interface DueWork {
  /** For the log. */
  readonly name: string;
  /** Rows that this process works on side by side. */
  readonly places: number;
  /** False while the contract does not say how to call: the rows stay due for a later start. */
  isConfigured(): boolean;
  /** Has a worker look at a moment, milliseconds since the Unix epoch. */
  notifyAt(moment: number): void;
}

/** Claims and works on the rows of a table that are due: in several places of this process, until none is due. */
export abstract class DueLoop<Row extends object> {
  protected readonly log = new Logger(DueLoop.name);
  protected readonly shutdown = new AbortController();
  private readonly underWay = new Set<Promise<void>>();
  private triggeredMeanwhile = false;

  protected constructor(
    private readonly declared: DueWork,
    readonly due: Pick<DueRows<Row>, 'claim' | 'done' | 'nextDueAt' | 'lock' | 'settle'>,
    private readonly worker: Pick<WorkerProcess, 'mayWork'>,
    protected readonly clock: Clock,
  ) {}

  /** Claims nothing more, and aborts what may be aborted. */
  stop(): void {
    this.shutdown.abort();
  }

  /** Resolves when what `trigger` began has ended. */
  async finished(): Promise<void> {
    while (this.underWay.size > 0) await Promise.all(this.underWay);
  }

  /** Begins to work beside what is under way, in a place that is free; without one, as soon as one is. */
  trigger(): void {
    if (this.shutdown.signal.aborted) return;
    if (this.hasNoPlace()) {
      this.triggeredMeanwhile = true;
      return;
    }
    const work = this.run()
      .catch((error: unknown) => this.log.warn({ msg: `a claim failed (${this.declared.name})`, ...errorTrace(error) }))
      .finally(() => {
        this.underWay.delete(work);
        if (!this.triggeredMeanwhile) return;
        this.triggeredMeanwhile = false;
        this.trigger();
      });
    this.underWay.add(work);
  }

  /** Works on one row after the other until none is due. */
  async run(): Promise<void> {
    while (this.mayClaim()) {
      const claimingMs = this.clock.monotonicMs();
      let claim: Leased<Row> | undefined;
      try {
        claim = await this.due.claim();
      } finally {
        if (!claim) this.nothingClaimed();
      }
      if (!claim) return this.notifyForNext();
      const { lease } = claim;
      this.letAnotherJoin();
      await this.work(claim, claimingMs).finally(() => this.due.done(lease));
    }
  }

  /** @param claimingMs monotonic milliseconds before the claim was made */
  protected abstract work(claim: Leased<Row>, claimingMs: number): Promise<void>;

  protected mayClaim(): boolean {
    return !this.shutdown.signal.aborted && this.declared.isConfigured() && this.mayWork();
  }

  protected nothingClaimed(): void {}

  protected mayWork(): boolean {
    return this.worker.mayWork();
  }

  protected nowMs(): number {
    return this.clock.now().getTime();
  }

  /** There may be more that is due: another place of this process looks, or, when all are taken, another process. */
  private letAnotherJoin(): void {
    if (this.hasNoPlace()) this.declared.notifyAt(this.nowMs());
    else this.trigger();
  }

  private hasNoPlace(): boolean {
    return this.underWay.size >= this.declared.places;
  }

  private async notifyForNext(): Promise<void> {
    const next = (await this.due.nextDueAt())?.getTime();
    if (next === undefined || next >= this.nowMs() + HORIZON_MS) return;
    this.declared.notifyAt(Math.max(next, this.nowMs() + SHORTEST_WAIT_MS));
  }
}
