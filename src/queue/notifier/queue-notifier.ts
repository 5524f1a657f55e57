import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import type { Job, Queue } from 'bullmq';
import { Clock } from '../../config/clock.js';
import { within } from '../../config/within.js';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { type Notification, QUEUE_STORE, type QueueName } from '../backend/queue-names.js';
import type { StoreWatch } from './store-watch.js';

/** Delayed notifications are rounded up to this many milliseconds, so that many for one moment become one job. */
const ROUNDING_MS = 25;

/** From this delay on they are rounded up more coarsely, in milliseconds: events come in bursts. */
const DISTANT_MS = 500;
const COARSE_MS = 100;

/** Milliseconds for which equal notifications are dropped: the worker that took one may have been killed with it. */
const DEDUPLICATION_MS = 1_000;

/** Milliseconds after which a notification without an answer counts as failed, and how many may wait for theirs. */
const ANSWER_MS = 2_000;
const MOST_UNDER_WAY = 1_000;

/** Milliseconds that the store has to answer the last notifications of a process. */
const LAST_ANSWERS_MS = 1_000;

/** Milliseconds that the store has to release a key: one without an answer delays no work, and no shutdown. */
const RELEASE_TIMEOUT_MS = 500;

/** Notifies the queues. It never throws and never waits for its store: the poller makes up for a lost notification. */
@Injectable()
export class QueueNotifier implements OnModuleDestroy {
  private readonly underWay = new Set<Promise<unknown>>();
  private closed = false;

  constructor(
    private readonly queues: ReadonlyMap<QueueName, Queue<Notification>>,
    private readonly clock: Clock,
    private readonly store: StoreWatch,
  ) {}

  /**
   * Activates one worker of a queue, now or later.
   *
   * A notification is dropped while an equal one waits, for a second at most; the worker releases the deduplication key
   * first (`releaseDeduplicationKey`), so that a notification during its work is kept.
   *
   * @param when a moment of this process's clock, or milliseconds from now: the database's clock may be another, and
   *   what it calls later may be past here
   */
  notify(name: QueueName, reason: string, when: Date | number = 0): void {
    const queue = this.queues.get(name);
    // A store that is away may leave every notification without an answer: their number is bounded.
    if (!queue || this.closed || this.underWay.size >= MOST_UNDER_WAY) return;
    const now = this.clock.now().getTime();
    const askedMs = Math.max(0, typeof when === 'number' ? when : when.getTime() - now);
    const delayMs = askedMs < DISTANT_MS ? askedMs : Math.ceil((now + askedMs) / COARSE_MS) * COARSE_MS - now;
    const id = delayMs > 0 ? `notify-${Math.ceil((now + delayMs) / ROUNDING_MS)}` : 'notify';
    const slow = setTimeout(() => this.store.failed(new Error('no answer')), ANSWER_MS).unref();
    const adding = queue
      .add('notify', { reason }, { delay: delayMs, deduplication: { id, ttl: Math.ceil(delayMs) + DEDUPLICATION_MS } })
      .catch((error: unknown) => this.store.failed(error))
      .finally(() => {
        clearTimeout(slow);
        this.underWay.delete(adding);
      });
    this.underWay.add(adding);
  }

  /** Asks the store itself: before the first notification nothing else shows that it is away. */
  @HealthIndicator('queue')
  async health(): Promise<Health> {
    const since = this.store.awaySince;
    if (!since && (await this.store.answers())) return { status: 'ok' };
    const reason = `The store of the queue (${QUEUE_STORE}) can not be reached: work goes on by the poller, more slowly.`;
    const facts = since && { since: since.toISOString() };
    return { status: 'degraded', reason, ...(facts && { facts }) };
  }

  async onModuleDestroy(): Promise<void> {
    this.closed = true;
    await within(LAST_ANSWERS_MS, Promise.all(this.underWay), () => undefined);
  }
}

/**
 * Releases the deduplication key before the work, so that a notification during it is kept. Failing to is harmless: the
 * poller notifies.
 */
export async function releaseDeduplicationKey(job: Job<Notification>): Promise<void> {
  const released = job.removeDeduplicationKey().catch(() => false);
  await within(RELEASE_TIMEOUT_MS, released, () => false);
}
