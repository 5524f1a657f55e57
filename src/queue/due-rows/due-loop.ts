import { WorkerHost } from '@nestjs/bullmq';
import { Injectable, Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import type { Job } from 'bullmq';
import { Clock } from '../../config/clock.js';
import { Random } from '../../config/random.js';
import { Database } from '../../database/database.js';
import { errorTrace } from '../../http/problem/error-trace.js';
import { Metrics } from '../../http/server/metrics.js';
import { type Attributes, inSpan, type Traceparent } from '../../tracing/trace.js';
import type { Notification, QueueName } from '../backend/queue-names.js';
import { Poller } from '../notifier/poller.js';
import { QueueNotifier, releaseDeduplicationKey } from '../notifier/queue-notifier.js';
import type { DueRows, Leased } from './due-rows.js';
import { WorkerProcess } from './worker-process.js';

/** Milliseconds; what is due later than this is left to the poller. */
const HORIZON_MS = 60_000;

/** Milliseconds before the next notification, at least: a row that is due and can't be claimed must not cause a spin. */
const SHORTEST_WAIT_MS = 100;

/** Columns of due rows that every loop reads. */
export interface DueColumns {
  /** Of what made it due, the newest first. */
  traceparents: Traceparent[];
  /** Faults in a row. */
  failures: number;
  due_at: Date | null;
}

/** What a loop does with the rows of one table. */
export interface DueWork<Row> {
  /** For the log. */
  readonly name: string;
  /** Notified when rows are due. */
  readonly queue: QueueName;
  /** Rows that this process works on side by side. */
  readonly places: number;
  /** What its spans say of a row: ids that this service made. */
  readonly traced?: (row: Row) => Attributes;
  /** False while the contract does not say how to call: the rows stay due for a later start. */
  isConfigured(): boolean;
}

/** What every loop needs. */
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

/** Claims and works on the rows of a table that are due: in several places of this process, until none is due. */
export abstract class DueLoop<Row extends DueColumns> {
  protected readonly log = new Logger(DueLoop.name);
  protected readonly shutdown = new AbortController();
  private readonly underWay = new Set<Promise<void>>();
  private triggeredMeanwhile = false;

  protected constructor(
    private readonly declared: DueWork<Row>,
    readonly due: Pick<DueRows<Row>, 'claim' | 'done' | 'nextDueAt' | 'lock' | 'settle'>,
    protected readonly parts: DueParts,
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
    const work = this.run(() => this.letAnotherJoin())
      .catch((error: unknown) => this.log.warn({ msg: `a claim failed (${this.declared.name})`, ...errorTrace(error) }))
      .finally(() => {
        this.underWay.delete(work);
        if (!this.triggeredMeanwhile) return;
        this.triggeredMeanwhile = false;
        this.trigger();
      });
    this.underWay.add(work);
  }

  /** Works on one row after the other until none is due. @param claimed called for each row once it is leased */
  async run(claimed = () => {}): Promise<void> {
    while (this.mayClaim()) {
      const claimingMs = this.parts.clock.monotonicMs();
      let claim: Leased<Row> | undefined;
      try {
        claim = await this.due.claim();
      } finally {
        if (!claim) this.nothingClaimed();
      }
      if (!claim) return this.notifyForNext();
      const { lease } = claim;
      claimed();
      await this.workTraced(claim, claimingMs).finally(() => this.due.done(lease));
    }
  }

  /** Within the trace of what made the row due. */
  private workTraced(claim: Leased<Row>, claimingMs: number): Promise<void> {
    const { name, traced } = this.declared;
    const { traceparents: causes, failures, due_at: dueAt } = claim.row;
    const attributes = {
      ...traced?.(claim.row),
      'notebridge.attempt': failures + 1,
      ...(dueAt && { 'notebridge.waited_ms': Math.max(0, this.parts.clock.now().getTime() - dueAt.getTime()) }),
    };
    const options = { kind: 'CONSUMER', causes, attributes } as const;
    return inSpan(`process ${name}`, options, () => this.work(claim, claimingMs));
  }

  /** @param claimingMs monotonic milliseconds before the claim was made */
  protected abstract work(claim: Leased<Row>, claimingMs: number): Promise<void>;

  protected mayClaim(): boolean {
    return !this.shutdown.signal.aborted && this.declared.isConfigured() && this.parts.worker.mayWork();
  }

  protected nothingClaimed(): void {}

  /** Has a worker look for rows that are due in so many milliseconds. */
  protected notifyIn(waitMs: number): void {
    this.parts.notifier.notify(this.declared.queue, 'due', waitMs);
  }

  /** There may be more that is due: another place of this process looks, or, when all are taken, another process. */
  private letAnotherJoin(): void {
    if (this.hasNoPlace()) this.notifyIn(0);
    else this.trigger();
  }

  private hasNoPlace(): boolean {
    return this.underWay.size >= this.declared.places;
  }

  private async notifyForNext(): Promise<void> {
    const next = await this.due.nextDueAt();
    const waitMs = next ? next.getTime() - this.parts.clock.now().getTime() : HORIZON_MS;
    if (waitMs < HORIZON_MS) this.notifyIn(Math.max(waitMs, SHORTEST_WAIT_MS));
  }
}

/** Triggers loops when their queue is notified, and at intervals, for a notification may be lost. */
export abstract class DueProcessor extends WorkerHost implements OnModuleInit, OnModuleDestroy {
  protected constructor(
    private readonly poller: Poller,
    private readonly poll: { name: string; everyMs: number; also?: () => Promise<void> },
    private readonly loops: readonly Pick<DueLoop<DueColumns>, 'trigger' | 'stop' | 'finished'>[],
  ) {
    super();
  }

  onModuleInit(): void {
    const { name, everyMs, also } = this.poll;
    this.poller.every(everyMs, name, async () => {
      this.trigger();
      await also?.();
    });
  }

  async process(job: Job<Notification>): Promise<void> {
    await releaseDeduplicationKey(job);
    this.trigger();
  }

  async onModuleDestroy(): Promise<void> {
    for (const loop of this.loops) loop.stop();
    await this.worker.close();
    await Promise.all(this.loops.map((loop) => loop.finished()));
  }

  /** Each loop has its own places: a platform that hangs in one holds up no other. */
  private trigger(): void {
    for (const loop of this.loops) loop.trigger();
  }
}
