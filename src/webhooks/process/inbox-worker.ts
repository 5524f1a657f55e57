import { Injectable, Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { errorTrace } from '../../http/problem/error-trace.js';
import { Metrics } from '../../http/server/metrics.js';
import { WEBHOOK_INBOX_QUEUE } from '../../queue/backend/queue-names.js';
import { Poller } from '../../queue/notifier/poller.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import type { EventHandler } from './event-handlers.js';
import { type DueDelivery, InboxRepository, type TakeLimit } from './inbox.repository.js';
import { InboxBatch } from './inbox-batch.js';

/** Deliveries of one transaction, and their bytes: a body's JSON may take twenty times as many in memory. */
const BATCH: TakeLimit = { rows: 100, bytes: 1024 ** 2 };

/** Milliseconds between two looks for deliveries that nobody processed. */
const POLL_MS = 2_000;

/** Seconds after which a ring counts as lost: the poller then drains by itself. */
const BELL_LOST_SECONDS = 3;

/** Empties the inbox: every due delivery goes to its handler, batch by batch. */
@Injectable()
export class InboxWorker implements OnModuleInit, OnModuleDestroy {
  private readonly log = new Logger(InboxWorker.name);
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
    this.settled = metrics.counter('webhook_settled_total', 'Deliveries that a worker looked at', ['state']);
    metrics.gauge('webhook_inbox_open', 'Deliveries that still want work', [], async (gauge) =>
      gauge.set(await this.inbox.countOpen().catch(() => Number.NaN)),
    );
    metrics.gauge('webhook_inbox_dead', 'Dead letters: deliveries that wait for a replay', [], async (gauge) =>
      gauge.set(await this.inbox.countDead()),
    );
  }

  onModuleInit(): void {
    this.poller.every(POLL_MS, 'webhook-inbox', () => this.lookAround());
  }

  async onModuleDestroy(): Promise<void> {
    this.stopped = true;
    await this.running?.catch(() => undefined);
  }

  /** Works until nothing is due. While it runs, a further call makes it look once more. */
  run(): Promise<void> {
    if (this.running) {
      this.again = true;
      return this.running;
    }
    this.running = this.drain().finally(() => {
      this.running = undefined;
    });
    return this.running;
  }

  /** Notifies for what is due; what nobody came for although a notification was sent is done here. */
  private async lookAround(): Promise<void> {
    const seconds = await this.inbox.oldestDueSeconds();
    if (seconds === null) return;
    this.notifier.notify(WEBHOOK_INBOX_QUEUE, 'poll');
    if (seconds > BELL_LOST_SECONDS) await this.run();
  }

  private async drain(): Promise<void> {
    do {
      this.again = false;
      while (!this.stopped && (await this.inbox.foldRepeats()) > 0);
      while (!this.stopped && (await this.processBatch()) > 0);
    } while (this.again && !this.stopped);
  }

  /** @returns how many deliveries were taken */
  private async processBatch(): Promise<number> {
    try {
      return await this.process(BATCH);
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
        if ((await this.process({ ...BATCH, rows: 1 }, taken)) === 0) return count;
      } catch (error) {
        const [delivery] = taken;
        if (!delivery) throw error;
        await this.inbox.settle([this.batch.failure(delivery, null, error)]);
      }
    }
    return BATCH.rows;
  }

  private async process(limit: TakeLimit, taken?: DueDelivery[]): Promise<number> {
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
