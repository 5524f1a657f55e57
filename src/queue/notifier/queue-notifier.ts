import { Inject, Injectable, type OnModuleDestroy } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { within } from '../../config/within.js';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import type { QueueName } from '../backend/queue-names.js';
import { QueueStore } from '../backend/queue-store.js';
import { Poller } from './poller.js';

/** Delayed notifications are rounded up to this many milliseconds, so that many for one time become one job. */
const ROUNDING_MS = 100;

/** How long equal notifications are dropped. Short, because the worker that took the first may have been killed. */
const DEDUPLICATION_MS = 1_000;

/** Maximum notifications in flight. */
const MAX_IN_FLIGHT = 1_000;

/** Timeout for the notifications in flight when the process stops. */
const LAST_ANSWERS_MS = 1_000;

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
  private readonly inFlight = new Set<Promise<void>>();
  protected readonly plannedQueues = new Map<QueueName, PlannedQueue>();
  private closed = false;

  constructor(
    private readonly clock: Clock,
    @Inject(QueueStore) private readonly store: Pick<QueueStore, 'add' | 'health'>,
    @Inject(Poller) private readonly poller: Pick<Poller, 'wakeIn'>,
  ) {}

  /**
   * Activates one worker of a queue, and wakes the poller of this process a second after that. A notification is dropped
   * while an equal one waits, at most for a second. The worker releases its deduplication key before it works.
   *
   * @param withinMs the latest time for it, from now. A planned queue is activated earlier if it can do something.
   */
  notify(name: QueueName, reason: string, withinMs = 0): void {
    const planned = this.plannedQueues.get(name);
    if (planned) {
      if (!this.isPlannedWithin(planned, withinMs)) this.planNext(name, planned, reason);
      return;
    }
    const now = this.clock.now().getTime();
    const at = withinMs > 0 ? Math.ceil((now + withinMs) / ROUNDING_MS) * ROUNDING_MS : now;
    this.add(name, reason, at - now, { id: at > now ? `notify-${at}` : 'notify' });
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
      });
    this.follow(planning);
  }

  protected moveNext(name: QueueName, planned: PlannedQueue, reason: string, inMs: number): void {
    planned.waitingAtMs = this.clock.monotonicMs() + inMs;
    this.add(name, reason, inMs, { id: 'next', replace: true, extend: true });
  }

  protected add(
    name: QueueName,
    reason: string,
    delay: number,
    key: { id: string; replace?: true; extend?: true },
  ): void {
    this.poller.wakeIn(delay + CHECK_AFTER_MS);
    if (this.closed || this.inFlight.size >= MAX_IN_FLIGHT) return;
    const deduplication = { ...key, ttl: Math.ceil(delay) + DEDUPLICATION_MS };
    this.follow(this.store.add(name, reason, { delay, deduplication }));
  }

  private follow(work: Promise<void>): void {
    this.inFlight.add(work);
    void work.finally(() => this.inFlight.delete(work));
  }

  @HealthIndicator({ name: 'queue', needs: ['worker'] })
  health(): Promise<Health> {
    return this.store.health();
  }

  async onModuleDestroy(): Promise<void> {
    this.closed = true;
    await within(LAST_ANSWERS_MS, Promise.all(this.inFlight), () => undefined);
  }
}
