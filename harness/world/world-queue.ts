import { Global, Injectable, Module } from '@nestjs/common';
import { Clock } from '../../src/config/clock.js';
import type { Health } from '../../src/monitoring/health-indicator.js';
import { WorkerProcess } from '../../src/processes/worker-process.js';
import type { QueueName } from '../../src/queue/backend/queue-names.js';
import { QueueStore } from '../../src/queue/backend/queue-store.js';
import { Poller } from '../../src/queue/notifier/poller.js';
import { QueueNotifier } from '../../src/queue/notifier/queue-notifier.js';

/** No BullMQ: the world does the work of the queues itself. */
const NO_STORE = {
  add: async () => undefined,
  work: () => undefined,
  health: async (): Promise<Health> => ({ status: 'ok' }),
};

/** The world does the work of the polls itself. */
const NO_POLLER = { wakeIn: () => undefined };

/** Records when each queue is notified; the world moves time there and does the work itself. */
@Injectable()
export class RecordedNotifications extends QueueNotifier {
  /** When the next notification of each queue is due, in monotonic milliseconds. */
  private readonly pending = new Map<QueueName, number>();
  private readonly unplanned = new Set<QueueName>();

  constructor(private readonly time: Clock) {
    super(time, NO_STORE, NO_POLLER);
  }

  protected override planNext(queue: QueueName): void {
    this.unplanned.add(queue);
  }

  protected override add(queue: QueueName, delayMs: number): void {
    this.pending.set(queue, this.time.monotonicMs() + delayMs);
  }

  /** Computes the times of the planned notifications. */
  async plan(): Promise<void> {
    for (const queue of this.unplanned) {
      this.unplanned.delete(queue);
      const planned = this.plannedQueues.get(queue);
      const inMs = await planned?.nextInMs();
      if (planned && inMs != null) this.moveNext(queue, planned, inMs);
    }
  }

  /** Milliseconds until the next notification, 0 if one is due; undefined without any. */
  get nextInMs(): number | undefined {
    if (this.pending.size === 0) return undefined;
    return Math.max(0, Math.min(...this.pending.values()) - this.time.monotonicMs());
  }

  /** Removes the due notifications. @returns their queues */
  takeDue(): QueueName[] {
    const due = [...this.pending].filter(([, atMs]) => atMs <= this.time.monotonicMs()).map(([queue]) => queue);
    for (const queue of due) this.pending.delete(queue);
    return due;
  }
}

/** Reports which work is due, but never starts it. */
@Injectable()
export class IdlePoller extends Poller {
  /** The polls that the service declared. */
  readonly names: string[] = [];

  override every(_everyMs: number, name: string): void {
    this.names.push(name);
  }

  override whenDue(...poll: Parameters<Poller['whenDue']>): void {
    this.names.push(poll[0]);
    super.whenDue(...poll);
  }

  override onApplicationBootstrap(): void {}

  /** Milliseconds until a row of each poll is due, by the product's own statement. */
  async waitsByName(): Promise<[name: string, ms: number][]> {
    return (await this.waitsForRows()).map(([{ name }, ms]) => [name, ms]);
  }
}

/** A worker process whose heartbeats the world sends. */
@Injectable()
export class ManualHeartbeat extends WorkerProcess {
  protected override plan(): void {}
}

/** Replaces the product's `DueRowsModule`: no BullMQ, and nothing runs unless the world runs it. */
@Global()
@Module({
  providers: [
    { provide: QueueNotifier, inject: [Clock], useFactory: (clock: Clock) => new RecordedNotifications(clock) },
    { provide: Poller, useClass: IdlePoller },
    { provide: WorkerProcess, useClass: ManualHeartbeat },
    { provide: QueueStore, useValue: NO_STORE },
  ],
  exports: [QueueStore, QueueNotifier, Poller, WorkerProcess],
})
export class WorldQueueModule {}
