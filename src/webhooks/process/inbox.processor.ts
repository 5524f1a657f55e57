import { Processor, WorkerHost } from '@nestjs/bullmq';
import { Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import type { Job } from 'bullmq';
import { errorTrace } from '../../http/problem/error-trace.js';
import { Metrics } from '../../http/server/metrics.js';
import { type Notification, WEBHOOK_INBOX_QUEUE } from '../../queue/backend/queue-names.js';
import { Poller } from '../../queue/notifier/poller.js';
import { QueueNotifier, releaseDeduplicationKey } from '../../queue/notifier/queue-notifier.js';
import type { EventHandler } from './event-handlers.js';
import { type DueDelivery, InboxRepository, type TakeLimit } from './inbox.repository.js';
import { InboxBatch } from './inbox-batch.js';

/** Deliveries of one transaction, and their bytes: a body's JSON may take twenty times as many in memory. */
const BATCH: TakeLimit = { rows: 100, bytes: 1024 ** 2 };

const POLL_MS = 2_000;

/** Seconds after which a notification counts as lost: the poller then processes what is due itself. */
const NOTIFICATION_LOST_SECONDS = 3;

/** Empties the inbox: every due delivery goes to its handler, batch by batch. */
@Processor(WEBHOOK_INBOX_QUEUE, { concurrency: 1 })
export class InboxProcessor extends WorkerHost implements OnModuleInit, OnModuleDestroy {
  private readonly log = new Logger(InboxProcessor.name);
  private readonly settled;
  private running: Promise<void> | undefined;
  private again = false;
  private stopped = false;

  constructor(
    private readonly inbox: InboxRepository,
    private readonly batch: InboxBatch,
    private readonly notifier: QueueNotifier,
    private readonly poller: Poller,
    metrics: Metrics,
  ) {
    super();
    this.settled = metrics.counter('webhook_settled_total', 'Deliveries that a worker looked at', ['state']);
    metrics.gauge('webhook_inbox_open', 'Deliveries that still want work', [], async (gauge) =>
      gauge.set(await inbox.countOpen().catch(() => Number.NaN)),
    );
    metrics.gauge('webhook_inbox_dead', 'Dead letters: deliveries that wait for a replay', [], async (gauge) =>
      gauge.set(await inbox.countDead()),
    );
  }

  onModuleInit(): void {
    this.poller.every(POLL_MS, 'webhook-inbox', () => this.poll());
  }

  async onModuleDestroy(): Promise<void> {
    this.stopped = true;
    await this.running?.catch(() => undefined);
    await this.worker.close();
  }

  override async process(job: Job<Notification>): Promise<void> {
    await releaseDeduplicationKey(job);
    await this.processDue();
  }

  private async poll(): Promise<void> {
    const seconds = await this.inbox.oldestDueSeconds();
    if (seconds === null) return;
    this.notifier.notify(WEBHOOK_INBOX_QUEUE, 'poll');
    if (seconds > NOTIFICATION_LOST_SECONDS) await this.processDue();
  }

  /** Works until nothing is due. A call while it runs makes it look once more. */
  private processDue(): Promise<void> {
    this.again = true;
    this.running ??= this.processAll().finally(() => {
      this.running = undefined;
    });
    return this.running;
  }

  private async processAll(): Promise<void> {
    while (this.again && !this.stopped) {
      this.again = false;
      while (!this.stopped && (await this.inbox.foldRepeats()) > 0);
      while (!this.stopped && (await this.processBatch()) > 0);
    }
  }

  /** @returns how many deliveries were taken */
  private async processBatch(): Promise<number> {
    try {
      return await this.runBatch(BATCH);
    } catch (error) {
      this.log.warn({ msg: 'a batch of the inbox failed; its deliveries are tried one by one', ...errorTrace(error) });
      return this.processOneByOne();
    }
  }

  /** A delivery may spoil the transaction itself, e.g. a constraint that is checked at COMMIT. */
  private async processOneByOne(): Promise<number> {
    for (let count = 0; count < BATCH.rows; count += 1) {
      if (this.stopped) return count;
      const taken: DueDelivery[] = [];
      try {
        if ((await this.runBatch({ ...BATCH, rows: 1 }, taken)) === 0) return count;
      } catch (error) {
        const [delivery] = taken;
        if (!delivery) throw error;
        await this.inbox.recordOutcomes([this.batch.failure(delivery, null, error)]);
      }
    }
    return BATCH.rows;
  }

  private async runBatch(limit: TakeLimit, taken?: DueDelivery[]): Promise<number> {
    const { outcomes, used } = await this.batch.run(limit, taken);
    for (const outcome of outcomes) this.settled.inc({ state: outcome.state });
    for (const handler of used) await this.afterCommit(handler);
    return outcomes.length;
  }

  private async afterCommit(handler: EventHandler): Promise<void> {
    try {
      await handler.afterCommit?.();
    } catch (error) {
      this.log.warn({ msg: 'a webhook handler failed after its commit', ...errorTrace(error) });
    }
  }
}
