import { Injectable, type OnApplicationBootstrap, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Random } from '../../config/random.js';
import { Database } from '../../database/database.js';
import { Metrics } from '../../http/server/metrics.js';
import { type Attributes, inSpan, type Traceparent } from '../../tracing/trace.js';
import type { ActivatedWorker } from '../backend/activated-worker.js';
import type { QueueName } from '../backend/queue-names.js';
import type { QueueStore } from '../backend/queue-store.js';
import type { Bind, NextDue, Poller } from '../notifier/poller.js';
import { QueueNotifier } from '../notifier/queue-notifier.js';
import type { DueRows, Leased } from './due-rows.js';
import { TriggeredLoop } from './triggered-loop.js';
import { WorkerProcess } from './worker-process.js';

/** Rows due later than this are left to the poller. */
const HORIZON_MS = 60_000;

/** Minimum delay of the next notification, so that a due row that cannot be claimed does not keep the loop busy. */
const MIN_WAIT_MS = 100;

/** Columns of due rows that every loop reads. */
export interface DueColumns {
  /** Traces that made the row due, newest first. */
  traceparents: Traceparent[];
  /** Consecutive faults. */
  failures: number;
  dueAt: Date | null;
}

/** The work on the due rows of one table. */
export interface DueWork<Row> {
  /** For logs, spans and the poller. */
  readonly name: string;
  /** The queue that is notified when rows are due. */
  readonly queue: QueueName;
  /** Maximum rows in progress per process. */
  readonly concurrency: number;
  /** Attributes of a row's spans. Only ids that this service made. */
  readonly traced?: (row: Row) => Attributes;
  /** False while the contract does not define the call. The rows stay due for a later start. */
  isConfigured(): boolean;
}

/** The dependencies of every loop. */
@Injectable()
export class DueParts {
  constructor(
    readonly database: Database,
    readonly worker: WorkerProcess,
    readonly clock: Clock,
    readonly random: Random,
    readonly metrics: Metrics,
    readonly notifier: QueueNotifier,
  ) {}
}

/** Leases due rows. `nextDueAt` is missing if the queue plans its own next notification. */
type Claims<Row> = Pick<DueRows<Row & object>, 'claim' | 'done' | 'nextDue'> &
  Partial<Pick<DueRows<Row & object>, 'nextDueAt'>>;

/**
 * Claims and processes the due rows of a table, several at a time, until none is due.
 *
 * @typeParam Result of the work on one row
 */
export abstract class DueLoop<
  Row extends DueColumns,
  Result = void,
  Due extends Claims<Row> = Claims<Row> & Pick<DueRows<Row>, 'lock' | 'settle'>,
> extends TriggeredLoop {
  protected constructor(
    private readonly declared: DueWork<Row>,
    readonly due: Due,
    protected readonly parts: DueParts,
  ) {
    super(declared);
  }

  override nextDue(bind: Bind): string | null {
    return this.declared.isConfigured() ? this.due.nextDue(bind) : null;
  }

  protected override runSlot(): Promise<void> {
    return this.run(() => this.startNextSlot());
  }

  /** Processes one row after the other until none is due. @param claimed called with each row once it is leased */
  async run(claimed: (row: Row) => void = () => {}): Promise<void> {
    while (this.mayClaim()) if (!(await this.runOne(claimed))) return this.notifyForNext();
  }

  /** Processes the next row. @returns undefined if none is due */
  protected async runOne(claimed: (row: Row) => void): Promise<{ result: Result } | undefined> {
    const claimingMs = this.parts.clock.monotonicMs();
    let claim: Leased<Row> | undefined;
    try {
      claim = await this.due.claim();
    } finally {
      if (!claim) this.nothingClaimed();
    }
    if (!claim) return undefined;
    const { lease } = claim;
    claimed(claim.row);
    return { result: await this.workTraced(claim, claimingMs).finally(() => this.due.done(lease)) };
  }

  /** Continues the trace that made the row due. */
  private workTraced(claim: Leased<Row>, claimingMs: number): Promise<Result> {
    const { name, traced } = this.declared;
    const { traceparents: causes, failures, dueAt } = claim.row;
    const attributes = {
      ...traced?.(claim.row),
      'notebridge.attempt': failures + 1,
      ...(dueAt && { 'notebridge.waited_ms': Math.max(0, this.parts.clock.now().getTime() - dueAt.getTime()) }),
    };
    const options = { kind: 'CONSUMER', causes, attributes } as const;
    return inSpan(`process ${name}`, options, () => this.work(claim, claimingMs));
  }

  /** @param claimingMs monotonic time before the claim */
  protected abstract work(claim: Leased<Row>, claimingMs: number): Promise<Result>;

  protected mayClaim(): boolean {
    return !this.shutdown.signal.aborted && this.declared.isConfigured() && this.parts.worker.mayWork();
  }

  protected nothingClaimed(): void {}

  /** Notifies a worker after `waitMs`. */
  protected notifyIn(waitMs: number): void {
    this.parts.notifier.notify(this.declared.queue, 'due', waitMs);
  }

  /** More rows may be due. If all slots of this process are in use, another process may have one. */
  private startNextSlot(): void {
    if (this.isFull()) this.notifyIn(0);
    else this.trigger();
  }

  private async notifyForNext(): Promise<void> {
    const next = await this.due.nextDueAt?.();
    const waitMs = next ? next.getTime() - this.parts.clock.now().getTime() : HORIZON_MS;
    if (waitMs < HORIZON_MS) this.notifyIn(Math.max(waitMs, MIN_WAIT_MS));
  }
}

/** Work that has due times and is not a `DueLoop`. */
export interface Poll {
  readonly name: string;
  readonly nextDue: NextDue;
  readonly work: () => Promise<void>;
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
    private readonly polls: readonly Poll[] = [],
  ) {}

  onModuleInit(): void {
    for (const loop of this.loops)
      this.poller.whenDue(
        loop.name,
        (bind) => loop.nextDue(bind),
        () => loop.trigger(),
      );
    for (const { name, nextDue, work } of this.polls) this.poller.whenDue(name, nextDue, work);
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
