import { Injectable, type OnApplicationBootstrap, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { Clock } from '../config/clock.js';
import { Random } from '../config/random.js';
import { Database } from '../database/database.js';
import { Metrics } from '../monitoring/metrics.js';
import { WorkerProcess } from '../processes/worker-process.js';
import type { ActivatedWorker } from '../queue/backend/activated-worker.js';
import type { QueueName } from '../queue/backend/queue-names.js';
import type { QueueStore } from '../queue/backend/queue-store.js';
import { type Bind, Poller } from '../queue/notifier/poller.js';
import { QueueNotifier } from '../queue/notifier/queue-notifier.js';
import type { DueRows, Leased } from './due-rows.js';
import { TriggeredLoop } from './triggered-loop.js';

/** Columns of due rows that every loop reads. */
export interface DueColumns {
  /** The number of consecutive faults. */
  failures: number;
  dueAt: Date | null;
}

/** The work on the due rows of one table. */
export interface DueWork {
  /** For logs and the poller. */
  readonly name: string;
  /** Maximum rows in progress per process. */
  readonly concurrency: number;
  /** False while the contract does not define the call. The rows stay due for a later start. */
  isConfigured(): boolean;
}

/** The dependencies of every loop. */
@Injectable()
export class DueLoopDeps {
  constructor(
    readonly database: Database,
    readonly worker: WorkerProcess,
    readonly clock: Clock,
    readonly random: Random,
    readonly metrics: Metrics,
    readonly notifier: QueueNotifier,
    readonly poller: Poller,
  ) {}
}

/** Claims and processes the due rows of a table, several at a time, until none is due. */
export abstract class DueLoop<Row extends DueColumns> extends TriggeredLoop {
  protected constructor(
    private readonly declared: DueWork,
    protected readonly due: Pick<DueRows<Row>, 'claim' | 'done' | 'nextDue' | 'lock' | 'settle'>,
    protected readonly deps: DueLoopDeps,
  ) {
    super(declared, deps.poller);
  }

  override nextDue(bind: Bind): string | null {
    return this.declared.isConfigured() ? this.due.nextDue(bind) : null;
  }

  protected override runSlot(): Promise<void> {
    return this.run(() => this.trigger()); // more rows may be due
  }

  /** Processes one row after the other until none is due. @param claimed called once each row is leased */
  async run(claimed = () => {}): Promise<void> {
    while (this.mayClaim()) if (!(await this.runOne(claimed))) return;
  }

  /** Processes the next row. @returns false if none is due */
  private async runOne(claimed: () => void): Promise<boolean> {
    const claimingMs = this.deps.clock.monotonicMs();
    let claim: Leased<Row> | undefined;
    try {
      claim = await this.due.claim();
    } finally {
      if (!claim) this.nothingClaimed();
    }
    if (!claim) return false;
    claimed();
    await this.work(claim, claimingMs).finally(() => this.due.done(claim.lease));
    return true;
  }

  /** @param claimingMs monotonic time before the claim */
  protected abstract work(claim: Leased<Row>, claimingMs: number): Promise<void>;

  protected mayClaim(): boolean {
    return !this.shutdown.signal.aborted && this.declared.isConfigured() && this.deps.worker.hasFreshHeartbeat();
  }

  protected nothingClaimed(): void {}
}

/** Triggers loops when their queue is notified, or when the poller finds a due row whose notification was lost. */
export abstract class DueProcessor implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy {
  private worker: ActivatedWorker | undefined;

  /** @param polls further work of the feature, which the poller starts */
  protected constructor(
    private readonly queue: QueueName,
    private readonly store: QueueStore,
    private readonly poller: Poller,
    private readonly loops: readonly TriggeredLoop[],
    private readonly polls: readonly Parameters<Poller['whenDue']>[] = [],
  ) {}

  onModuleInit(): void {
    for (const loop of this.loops)
      this.poller.whenDue(
        loop.name,
        (bind) => loop.nextDue(bind),
        () => loop.trigger(),
      );
    for (const poll of this.polls) this.poller.whenDue(...poll);
  }

  onApplicationBootstrap(): void {
    // Each loop has its own slots, so that a call that hangs in one delays no other.
    this.worker = this.store.work(this.queue, async () => this.loops.forEach((loop) => void loop.trigger()));
  }

  async onModuleDestroy(): Promise<void> {
    for (const loop of this.loops) loop.stop();
    await this.worker?.close();
    await Promise.all(this.loops.map((loop) => loop.finished()));
  }
}
