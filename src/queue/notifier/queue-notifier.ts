import { Inject, Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { type Health, HealthIndicator } from '../../monitoring/health-indicator.js';
import type { QueueName } from '../backend/queue-names.js';
import { QueueStore } from '../backend/queue-store.js';
import { POLL_INTERVAL_MS, Poller } from './poller.js';

/** A queue whose activations are planned. `again` is true if something changed during the computation. */
interface PlannedQueue {
  readonly nextInMs: () => Promise<number | null>;
  running: boolean;
  again: boolean;
  /** When the latest activation that this process planned starts, in monotonic milliseconds. */
  waitingAtMs: number;
}

/** Notifies the queues. It never throws and never waits for its store, because the poller finds what it loses. */
@Injectable()
export class QueueNotifier {
  protected readonly plannedQueues = new Map<QueueName, PlannedQueue>();

  constructor(
    private readonly clock: Clock,
    @Inject(QueueStore) private readonly store: Pick<QueueStore, 'add' | 'health'>,
    @Inject(Poller) private readonly poller: Pick<Poller, 'wakeIn'>,
  ) {}

  /**
   * Activates one worker of a queue. The poller of this process then checks that a worker took the rows.
   *
   * @param withinMs the latest time for it in a planned queue, which is activated earlier if it can do something
   */
  notify(name: QueueName, withinMs = 0): void {
    const planned = this.plannedQueues.get(name);
    if (!planned) this.add(name, 0);
    else if (!this.isPlannedWithin(planned, withinMs)) this.planNext(name, planned);
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
  planAt(name: QueueName, inMs: number): void {
    const planned = this.plannedQueues.get(name);
    if (!planned || this.isPlannedWithin(planned, inMs)) return;
    if (planned.running) planned.again = true;
    else this.moveNext(name, planned, inMs);
  }

  /** True if an activation will start within `ms`. It sees every change committed by now, and plans the next one. */
  private isPlannedWithin({ waitingAtMs }: PlannedQueue, ms: number): boolean {
    const inMs = waitingAtMs - this.clock.monotonicMs();
    return inMs > 0 && inMs <= ms;
  }

  /** Computes the time of the next activation, one computation at a time, and moves the waiting activation there. */
  protected planNext(name: QueueName, planned: PlannedQueue): void {
    planned.again = planned.running;
    if (planned.running) return;
    planned.running = true;
    void planned
      .nextInMs()
      .catch(() => null) // the poller notifies again
      .then((inMs) => {
        planned.running = false;
        if (inMs !== null) this.moveNext(name, planned, inMs);
        if (planned.again) this.planNext(name, planned);
      });
  }

  protected moveNext(name: QueueName, planned: PlannedQueue, inMs: number): void {
    planned.waitingAtMs = this.clock.monotonicMs() + inMs;
    this.add(name, inMs);
  }

  protected add(name: QueueName, delayMs: number): void {
    void this.store.add(name, delayMs);
    this.poller.wakeIn(delayMs + POLL_INTERVAL_MS);
  }

  @HealthIndicator({ name: 'queue', needs: ['worker'] })
  health(): Promise<Health> {
    return this.store.health();
  }
}
