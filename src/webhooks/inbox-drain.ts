import { Injectable, Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import type pg from 'pg';
import { Random } from '../config/random.js';
import { errorTrace } from '../http/error-trace.js';
import { Metrics } from '../http/metrics.js';
import { Doorbell } from '../queue/doorbell.js';
import { WEBHOOK_INBOX_QUEUE } from '../queue/queue-names.js';
import { Sweep } from '../queue/sweep.js';
import { Vault } from '../vault/vault.js';
import { afterFailure, failureCode } from './attempt-rules.js';
import { type EventHandler, EventHandlers } from './event-handlers.js';
import { type DueDelivery, InboxRepository, type Outcome } from './inbox.repository.js';
import { parseEvent, type UnderstoodEvent } from './parse-event.js';
import { bodyPlace } from './sealed-body.js';

/** Deliveries of one transaction. */
const BATCH = 100;

/** Milliseconds between two looks for deliveries that nobody processed. */
const SWEEP_MS = 2_000;

/** Seconds after which a ring counts as lost: the sweep then drains by itself. */
const BELL_LOST_SECONDS = 3;

/** A due delivery and what its body says, or why that can't be told. */
interface Opened {
  delivery: DueDelivery;
  event: UnderstoodEvent | { eventType: string | null; reason: string; failed: boolean };
}

/** Empties the inbox: every due delivery goes to its handler, in a savepoint of its own. */
@Injectable()
export class InboxDrain implements OnModuleInit, OnModuleDestroy {
  private readonly log = new Logger(InboxDrain.name);
  private readonly settled;
  private running: Promise<void> | undefined;
  private again = false;
  private stopped = false;

  constructor(
    private readonly inbox: InboxRepository,
    private readonly handlers: EventHandlers,
    private readonly vault: Vault,
    private readonly random: Random,
    private readonly doorbell: Doorbell,
    private readonly sweep: Sweep,
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
    this.sweep.every(SWEEP_MS, 'webhook-inbox', () => this.lookAround());
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

  /** Rings for what is due; what nobody came for although the bell was rung is done here. */
  private async lookAround(): Promise<void> {
    const seconds = await this.inbox.oldestDueSeconds();
    if (seconds === null) return;
    this.doorbell.ring(WEBHOOK_INBOX_QUEUE, 'sweep');
    if (seconds > BELL_LOST_SECONDS) await this.run();
  }

  private async drain(): Promise<void> {
    do {
      this.again = false;
      while (!this.stopped && (await this.inbox.foldRepeats()) > 0);
      while (!this.stopped && (await this.drainBatch()) === BATCH);
    } while (this.again && !this.stopped);
  }

  /** @returns how many deliveries were taken */
  private async drainBatch(): Promise<number> {
    try {
      return await this.process(BATCH);
    } catch (error) {
      this.log.warn({ msg: 'a batch of the inbox failed; its deliveries are tried one by one', ...errorTrace(error) });
      return this.drainOneByOne();
    }
  }

  /** A delivery may spoil the transaction itself, e.g. a constraint that is checked at COMMIT. */
  private async drainOneByOne(): Promise<number> {
    for (let count = 0; count < BATCH; count += 1) {
      if (this.stopped) return count;
      const taken: DueDelivery[] = [];
      try {
        if ((await this.process(1, taken)) === 0) return count;
      } catch (error) {
        const [delivery] = taken;
        if (!delivery) throw error;
        await this.inbox.settle([this.failure(delivery, null, error)]);
      }
    }
    return BATCH;
  }

  private async process(limit: number, taken: DueDelivery[] = []): Promise<number> {
    const { outcomes, used } = await this.inbox.transaction(async (tx) => {
      // A transaction that lost a deadlock is run again: what it took before is free again.
      taken.splice(0, taken.length, ...(await this.inbox.take(tx, limit)));
      return taken.length === 0 ? { outcomes: [], used: new Set<EventHandler>() } : this.handleAll(tx, taken);
    });
    for (const outcome of outcomes) this.settled.inc({ state: outcome.state });
    for (const handler of used) await this.afterCommit(handler);
    return taken.length;
  }

  private async handleAll(tx: pg.PoolClient, deliveries: readonly DueDelivery[]) {
    const opened: Opened[] = [];
    for (const delivery of deliveries) opened.push(await this.open(tx, delivery));
    // Every worker meets subjects in one order, so that two of them can't lock each other out.
    opened.sort((a, b) => compare(subjectOf(a), subjectOf(b)));
    const outcomes: Outcome[] = [];
    const used = new Set<EventHandler>();
    for (const { delivery, event } of opened) {
      if ('reason' in event) {
        const { eventType, reason } = event;
        outcomes.push(
          event.failed ? this.failure(delivery, eventType, reason) : done(delivery, 'ignored', eventType, reason),
        );
        continue;
      }
      outcomes.push(await this.handle(tx, delivery, event, used));
    }
    await this.inbox.settle(outcomes, tx);
    return { outcomes, used };
  }

  private async open(tx: pg.PoolClient, delivery: DueDelivery): Promise<Opened> {
    const sealed = delivery.body ?? (await this.inbox.body(tx, delivery.id));
    try {
      const event = parseEvent(this.vault.openBytes(bodyPlace(delivery.signature.toString('hex')), sealed));
      return { delivery, event: 'reason' in event ? { ...event, failed: false } : event };
    } catch {
      // A data key is missing: the delivery waits for it.
      return { delivery, event: { eventType: null, reason: 'sealed', failed: true } };
    }
  }

  private async handle(
    tx: pg.PoolClient,
    delivery: DueDelivery,
    event: UnderstoodEvent,
    used: Set<EventHandler>,
  ): Promise<Outcome> {
    const { eventType, body } = event;
    const handler = this.handlers.of(eventType);
    await tx.query('SAVEPOINT delivery');
    try {
      const { id: deliveryId, receivedAt } = delivery;
      const handled = await handler.handle({ deliveryId, eventType, receivedAt, body }, tx);
      await tx.query('RELEASE SAVEPOINT delivery');
      used.add(handler);
      return done(delivery, handled, eventType, handled === 'ignored' ? 'not-ours' : null);
    } catch (error) {
      await tx.query('ROLLBACK TO SAVEPOINT delivery; RELEASE SAVEPOINT delivery').catch(() => {
        throw error; // the transaction itself is lost, and this is why
      });
      return this.failure(delivery, eventType, error);
    }
  }

  private failure(delivery: DueDelivery, eventType: string | null, cause: unknown): Outcome {
    const { id } = delivery;
    const attempts = delivery.attempts + 1;
    const { state, retryInMs } = afterFailure(attempts, this.random.fraction());
    const reason = typeof cause === 'string' ? cause : failureCode(cause);
    const trace = typeof cause === 'string' ? {} : errorTrace(cause);
    this.log.warn({
      msg: 'a webhook delivery was not processed',
      delivery: id,
      eventType,
      state,
      attempts,
      reason,
      ...trace,
    });
    return { id, state, eventType, reason, attempts, retryInMs };
  }

  private async afterCommit(handler: EventHandler): Promise<void> {
    try {
      await handler.afterCommit?.();
    } catch (error) {
      this.log.warn({ msg: 'a webhook handler failed after its commit', ...errorTrace(error) });
    }
  }
}

function done(
  { id, attempts }: DueDelivery,
  state: 'processed' | 'ignored',
  eventType: string | null,
  reason: string | null,
): Outcome {
  return { id, state, eventType, reason, attempts, retryInMs: null };
}

const subjectOf = ({ event }: Opened): string => ('subject' in event ? event.subject : '');

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
