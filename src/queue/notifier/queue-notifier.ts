import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import type { Job, Queue } from 'bullmq';
import { Clock } from '../../config/clock.js';
import { within } from '../../config/within.js';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { type Notification, QUEUE_STORE, type QueueName } from '../backend/queue-names.js';
import type { Poller } from './poller.js';
import type { StoreWatch } from './store-watch.js';

/** Delayed notifications are rounded up to this many milliseconds, so that many for one time become one job. */
const ROUNDING_MS = 25;

/** Delays from here on are rounded up more coarsely, because events come in bursts. */
const DISTANT_MS = 500;
const COARSE_MS = 100;

/** How long equal notifications are dropped. Short, because the worker that took the first may have been killed. */
const DEDUPLICATION_MS = 1_000;

/** Timeout for a notification, and maximum notifications in flight. */
const ANSWER_MS = 2_000;
const MAX_IN_FLIGHT = 1_000;

/** Timeout for the notifications in flight when the process stops. */
const LAST_ANSWERS_MS = 1_000;

/** Timeout for releasing a deduplication key. Short, because work and shutdown wait for it. */
const RELEASE_TIMEOUT_MS = 500;

/** How long after a notification the poller checks that a worker took the rows. */
const CHECK_AFTER_MS = 1_000;

/** A queue whose activations are planned. `again` is true if something changed during the computation. */
export interface PlannedQueue {
  readonly nextInMs: () => Promise<number | null>;
  running: boolean;
  again: boolean;
  /** When the latest activation that this process planned starts, in monotonic milliseconds. */
  waitingAtMs: number;
}

/** Notifies the queues. It never throws and never waits for its store, because the poller finds what it loses. */
@Injectable()
export class QueueNotifier implements OnModuleDestroy {
  private readonly inFlight = new Set<Promise<unknown>>();
  protected readonly plannedQueues = new Map<QueueName, PlannedQueue>();
  private closed = false;

  constructor(
    private readonly queues: ReadonlyMap<QueueName, Queue<Notification>>,
    private readonly clock: Clock,
    private readonly store: StoreWatch,
    private readonly poller: Pick<Poller, 'wakeIn'>,
  ) {}

  /**
   * Activates one worker of a queue, now or later, and wakes the poller of this process a second after that.
   *
   * A notification is dropped while an equal one waits, at most for a second. The worker releases the deduplication key
   * first (`releaseDeduplicationKey`), so that a notification during its work is kept.
   *
   * @param when the latest time for it: a time by this process's clock, or milliseconds from now, because the database's
   *   clock may differ. A planned queue is activated earlier if it can do something.
   */
  notify(name: QueueName, reason: string, when: Date | number = 0): void {
    const now = this.clock.now().getTime();
    const askedMs = Math.max(0, typeof when === 'number' ? when : when.getTime() - now);
    const planned = this.plannedQueues.get(name);
    if (planned) {
      if (!this.isPlannedWithin(planned, askedMs)) this.planNext(name, planned, reason);
      return;
    }
    const delayMs = askedMs < DISTANT_MS ? askedMs : Math.ceil((now + askedMs) / COARSE_MS) * COARSE_MS - now;
    const id = delayMs > 0 ? `notify-${Math.ceil((now + delayMs) / ROUNDING_MS)}` : 'notify';
    this.add(name, reason, delayMs, { id });
  }

  /**
   * Lets the notifications of a queue be planned: at most one activation waits, for the time when it can do something.
   *
   * @param nextInMs milliseconds until then; null if nothing is due
   */
  planned(name: QueueName, nextInMs: () => Promise<number | null>): void {
    const waitingAtMs = Number.NEGATIVE_INFINITY;
    this.plannedQueues.set(name, { nextInMs, running: false, again: false, waitingAtMs });
  }

  /**
   * Plans the next activation of a planned queue for a time that the caller has computed, unless one waits that starts
   * earlier. If a time is being computed, it is computed again instead, because the two may have read different states.
   */
  planAt(name: QueueName, reason: string, inMs: number): void {
    const planned = this.plannedQueues.get(name);
    if (!planned || this.isPlannedWithin(planned, inMs)) return;
    if (planned.running) planned.again = true;
    else this.moveNext(name, planned, reason, inMs);
  }

  /** Whether an activation will start within `ms`. It sees every change committed by now, and plans the next one. */
  private isPlannedWithin({ waitingAtMs }: PlannedQueue, ms: number): boolean {
    const inMs = waitingAtMs - this.clock.monotonicMs();
    return inMs > 0 && inMs <= ms;
  }

  /** Computes the time of the next activation, one computation at a time, and moves the waiting activation there. */
  protected planNext(name: QueueName, planned: PlannedQueue, reason: string): void {
    planned.again = planned.running;
    if (planned.running || this.closed) return;
    planned.running = true;
    const planning = planned
      .nextInMs()
      .catch(() => null) // the poller notifies again
      .then((inMs) => {
        planned.running = false;
        if (inMs !== null) this.moveNext(name, planned, reason, inMs);
        if (planned.again) this.planNext(name, planned, reason);
      })
      .finally(() => this.inFlight.delete(planning));
    this.inFlight.add(planning);
  }

  protected moveNext(name: QueueName, planned: PlannedQueue, reason: string, inMs: number): void {
    planned.waitingAtMs = this.clock.monotonicMs() + inMs;
    this.add(name, reason, inMs, { id: 'next', replace: true, extend: true });
  }

  protected add(
    name: QueueName,
    reason: string,
    delayMs: number,
    key: { id: string; replace?: true; extend?: true },
  ): void {
    this.poller.wakeIn(delayMs + CHECK_AFTER_MS);
    const queue = this.queues.get(name);
    // An unavailable store may leave every notification without an answer.
    if (!queue || this.closed || this.inFlight.size >= MAX_IN_FLIGHT) return;
    const slow = setTimeout(() => this.store.failed(new Error('no answer')), ANSWER_MS).unref();
    const deduplication = { ...key, ttl: Math.ceil(delayMs) + DEDUPLICATION_MS };
    const adding = queue
      .add('notify', { reason }, { delay: delayMs, deduplication })
      .catch((error: unknown) => this.store.failed(error))
      .finally(() => {
        clearTimeout(slow);
        this.inFlight.delete(adding);
      });
    this.inFlight.add(adding);
  }

  /** Pings the store, because without notifications nothing else shows that it is unavailable. */
  @HealthIndicator('queue')
  async health(): Promise<Health> {
    const since = this.store.unavailableSince;
    if (!since && (await this.store.answers())) return { status: 'ok' };
    const reason = `The store of the queues (${QUEUE_STORE}) is unavailable. Work continues more slowly, by polling.`;
    const facts = since && { since: since.toISOString() };
    return { status: 'degraded', reason, ...(facts && { facts }) };
  }

  async onModuleDestroy(): Promise<void> {
    this.closed = true;
    await within(LAST_ANSWERS_MS, Promise.all(this.inFlight), () => undefined);
  }
}

/**
 * Releases the deduplication key before the work, so that a notification during the work is kept. A failure is harmless,
 * because the poller finds the rows.
 */
export async function releaseDeduplicationKey(job: Job<Notification>): Promise<void> {
  const released = job.removeDeduplicationKey().catch(() => false);
  await within(RELEASE_TIMEOUT_MS, released, () => false);
}
