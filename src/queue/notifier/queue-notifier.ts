import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import type { Queue } from 'bullmq';
import { Clock } from '../../config/clock.js';
import { within } from '../../config/within.js';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { type Notification, QUEUE_STORE, type QueueName } from '../backend/queue-names.js';

/** Delayed notifies are rounded up to this many milliseconds, so that many wishes for one moment become one job. */
const ROUNDING_MS = 25;

/** Milliseconds for which a notification may hang unanswered: whoever took it on may have been killed with it in hand. */
const HUNG_MS = 1_000;

/** Milliseconds after which a ring without an answer counts as broken, and how many may wait for theirs. */
const ANSWER_MS = 2_000;
const MOST_UNDER_WAY = 1_000;

/** Milliseconds that the store has to answer when it is asked how it is, or when the last notifies are waited for. */
const PATIENCE_MS = 1_000;

/** Milliseconds between two log lines about the same broken notification. */
const QUIET_MS = 30_000;

/** Notifies the queues. It never throws and never waits for its store: a lost ring is made good by the poller. */
@Injectable()
export class QueueNotifier implements OnModuleDestroy {
  private readonly log = new Logger(QueueNotifier.name);
  private readonly silentUntil = new Map<string, number>();
  private readonly underWay = new Set<Promise<unknown>>();
  private closed = false;
  private brokenSince: Date | undefined;

  constructor(
    private readonly queues: ReadonlyMap<QueueName, Queue<Notification>>,
    private readonly clock: Clock,
  ) {
    for (const [name, queue] of queues) queue.on('error', (error) => this.warn(name, error));
  }

  /**
   * Wakes one worker of a queue, now or later.
   *
   * A ring is dropped while an equal one waits, for a second at most; whoever answers takes the notification off first
   * (`answered`), so a ring during the work is not lost.
   *
   * @param when a moment of this process's clock, or milliseconds from now: the database's clock may be another, and
   *   what it calls later may be past here
   */
  notify(name: QueueName, reason: string, when: Date | number = 0): void {
    const queue = this.queues.get(name);
    // A store that is away may keep every ring waiting: no more of them than would ever be worth it.
    if (!queue || this.closed || this.underWay.size >= MOST_UNDER_WAY) return;
    const delayMs = Math.max(0, typeof when === 'number' ? when : when.getTime() - this.clock.now().getTime());
    const moment = Math.ceil((this.clock.now().getTime() + delayMs) / ROUNDING_MS);
    const id = delayMs > 0 ? `notify-${moment}` : 'notify';
    const slow = setTimeout(() => this.complain(name, new Error('no answer')), ANSWER_MS).unref();
    const adding = queue
      .add('ring', { reason }, { delay: delayMs, deduplication: { id, ttl: Math.ceil(delayMs) + HUNG_MS } })
      .then(() => {
        this.brokenSince = undefined;
      })
      .catch((error: unknown) => this.complain(name, error))
      .finally(() => {
        clearTimeout(slow);
        this.underWay.delete(adding);
      });
    this.underWay.add(adding);
  }

  /** Asks the store itself: before anybody rang, nothing else tells that it is away. */
  @HealthIndicator('queue')
  async health(): Promise<Health> {
    if (!this.brokenSince && (await this.storeAnswers())) return { status: 'ok' };
    const reason = `The store of the queue (${QUEUE_STORE}) can not be reached: work goes on by the poller, more slowly.`;
    return {
      status: 'degraded',
      reason,
      ...(this.brokenSince && { facts: { since: this.brokenSince.toISOString() } }),
    };
  }

  async onModuleDestroy(): Promise<void> {
    this.closed = true;
    await within(PATIENCE_MS, Promise.all(this.underWay), () => undefined);
  }

  /** One look at one queue, for all stand in the same store. */
  private async storeAnswers(): Promise<boolean> {
    const [queue] = this.queues.values();
    if (!queue) return true;
    const answer = queue.isPaused().then(
      () => true,
      () => false,
    );
    return within(PATIENCE_MS, answer, () => false);
  }

  private complain(name: string, error: unknown): void {
    this.brokenSince ??= this.clock.now();
    this.warn(name, error);
  }

  private warn(name: string, error: unknown): void {
    const now = this.clock.monotonicMs();
    if (now < (this.silentUntil.get(name) ?? 0)) return;
    this.silentUntil.set(name, now + QUIET_MS);
    this.log.warn(
      `the queue ${name} can not be rung (${error instanceof Error ? error.name : 'unknown'}): look at ${QUEUE_STORE}; the poller goes on`,
    );
  }
}
