import { getQueueToken } from '@nestjs/bullmq';
import { Global, Injectable, Module } from '@nestjs/common';
import type pg from 'pg';
import { Clock } from '../../src/config/clock.js';
import { QUEUE_NAMES, type QueueName } from '../../src/queue/backend/queue-names.js';
import { DueParts } from '../../src/queue/due-rows/due-loop.js';
import { WorkerProcess } from '../../src/queue/due-rows/worker-process.js';
import { Poller } from '../../src/queue/notifier/poller.js';
import { QueueNotifier } from '../../src/queue/notifier/queue-notifier.js';
import type { StoreWatch } from '../../src/queue/notifier/store-watch.js';
import { OutcomeKeeper } from '../../src/queue/outbox/outbox.js';

/** Of a pool: a slow machine is no fault. */
export const UNBOUNDED = { connectionTimeoutMillis: 0, query_timeout: 0, statement_timeout: 0 };

/** Remembers for when somebody was notified; the world lets that time come, and works itself. */
@Injectable()
export class RecordedNotifications extends QueueNotifier {
  private moments: { queue: QueueName; atMs: number }[] = [];

  constructor(private readonly time: Clock) {
    super(new Map(), time, { awaySince: undefined, answers: async () => true } as unknown as StoreWatch);
  }

  override notify(queue: QueueName, _reason: string, when: Date | number = 0): void {
    const inMs = typeof when === 'number' ? when : when.getTime() - this.time.now().getTime();
    this.moments.push({ queue, atMs: this.time.monotonicMs() + inMs });
  }

  /** Milliseconds until the next moment that was notified for, 0 when one has come; undefined when none is. */
  get nextInMs(): number | undefined {
    if (this.moments.length === 0) return undefined;
    return Math.max(0, Math.min(...this.moments.map(({ atMs }) => atMs)) - this.time.monotonicMs());
  }

  /** The queues whose moment has come; it is forgotten. */
  take(): Set<QueueName> {
    const nowMs = this.time.monotonicMs();
    const come = this.moments.filter(({ atMs }) => atMs <= nowMs);
    this.moments = this.moments.filter(({ atMs }) => atMs > nowMs);
    return new Set(come.map(({ queue }) => queue));
  }
}

/** Polls nothing. */
@Injectable()
export class IdlePoller extends Poller {
  /** The work that a poller would do. */
  readonly names: string[] = [];

  override every(_everyMs: number, name: string): void {
    this.names.push(name);
  }
}

/** A process whose heart beats when the world says so, however long the machine takes. */
@Injectable()
export class ManualHeartbeat extends WorkerProcess {
  protected override plan(): void {}

  override async beat(): Promise<void> {
    const { options } = Reflect.get(this, 'own') as pg.Pool;
    Object.assign(options, UNBOUNDED);
    await super.beat();
  }
}

/** In the place of the product's `QueueModule`: nothing runs by itself, and there is no BullMQ. */
@Global()
@Module({
  providers: [
    { provide: QueueNotifier, inject: [Clock], useFactory: (clock: Clock) => new RecordedNotifications(clock) },
    { provide: Poller, useClass: IdlePoller },
    { provide: WorkerProcess, useClass: ManualHeartbeat },
    DueParts,
    OutcomeKeeper,
    ...QUEUE_NAMES.map((name) => ({ provide: getQueueToken(name), useValue: { name } })),
  ],
  exports: [
    QueueNotifier,
    Poller,
    WorkerProcess,
    DueParts,
    OutcomeKeeper,
    ...QUEUE_NAMES.map((name) => getQueueToken(name)),
  ],
})
export class WorldQueueModule {}
