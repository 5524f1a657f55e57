import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { isRetried, PrismaService } from '../../database/prisma.service.js';
import { backoffMs } from '../../due-rows/backoff.js';
import { DueLoopDeps } from '../../due-rows/due-loop.js';
import { TriggeredLoop } from '../../due-rows/triggered-loop.js';
import { errorTrace, failureCode } from '../../errors/error-trace.js';
import { Contract } from '../../platform/contract/contract.js';
import { MissingDataKey } from '../../vault/unreadable-value.js';
import { Vault } from '../../vault/vault.js';
import { bodyPlace } from '../receive/inbox-writer.repository.js';
import { EventHandlers, type Handled } from './event-handlers.js';
import { InboxRepository, type Outcome, type Outcomes, type TakenDelivery } from './inbox.repository.js';
import { type PlatformEvent, parseEvent, type UnderstoodEvent } from './parse-event.js';

/** Deliveries per transaction. */
const MAX_BATCH = 10;

/** Concurrent batches per process: one waits for the database or the disk while another works. */
const SLOTS = 2;

/** How long a batch may last before it commits without the rest, because fetches wait for the rows that it has locked. */
const MAX_BATCH_MS = 1_000;

/** Failed attempts after which a delivery is dead: about an hour, by the backoff below. */
export const MAX_ATTEMPTS = 12;
const BACKOFF = { baseMs: 1_000, maxMs: 30 * 60_000 };

/** Attempts without an outcome after which a delivery is dead, because it ends the processes that handle it. */
const MAX_LOST = 3;

/** How long a delivery waits whose handler returned `waiting`. */
const WAIT_MS = 1_000;

/** How long a delivery waits whose data key is missing. An operator must add the key. */
const KEY_WAIT_MS = 30_000;

/** The outcome of each result of a handler. */
const OUTCOMES: Record<Handled, Outcome> = {
  processed: { state: 'processed' },
  ignored: { state: 'ignored', reason: 'not-ours' },
  waiting: { state: 'received', reason: 'waiting', retryInMs: WAIT_MS },
};

const UNDO = 'ROLLBACK TO SAVEPOINT delivery; RELEASE SAVEPOINT delivery';

/**
 * Empties the inbox in small batches: one transaction each, and a savepoint for each delivery. Before the work, the take
 * is committed with a visibility timeout. A delivery that ends its process is therefore known by its missing outcome,
 * and delays the others of its batch by no more than that timeout.
 */
@Injectable()
export class InboxLoop extends TriggeredLoop {
  private readonly settled;

  constructor(
    private readonly prisma: PrismaService,
    private readonly inbox: InboxRepository,
    private readonly handlers: EventHandlers,
    private readonly vault: Vault,
    private readonly contract: Contract,
    private readonly deps: DueLoopDeps,
  ) {
    super({ name: 'webhook inbox', concurrency: SLOTS }, deps.poller);
    const { metrics } = deps;
    this.settled = metrics.counter('webhook_settled_total', 'Outcomes of attempts to process a delivery', ['state']);
    metrics.gauge('webhook_inbox_open', 'Deliveries that still need work', [], async (gauge) =>
      gauge.set(await inbox.count('due_at IS NOT NULL')),
    );
    metrics.gauge('webhook_inbox_dead', 'Dead letters: deliveries that need a replay', [], async (gauge) =>
      gauge.set(await inbox.count(`state = 'dead'`)),
    );
  }

  nextDue(): string {
    return this.inbox.nextDue();
  }

  protected async runSlot(): Promise<void> {
    const { signal } = this.shutdown;
    while (!signal.aborted && (await this.inbox.foldRepeats()) > 0);
    while (!signal.aborted) {
      const batch = await this.inbox.take(MAX_BATCH);
      if (batch.length === 0) return;
      if (batch.length === MAX_BATCH) this.trigger();
      await this.process(batch);
    }
  }

  private async process(batch: readonly TakenDelivery[]): Promise<void> {
    let outcomes: Outcomes;
    try {
      outcomes = await this.inbox.transaction((tx) => this.handleAll(tx, batch));
    } catch (error) {
      // A delivery may fail the transaction itself, for example by a constraint that is checked at COMMIT.
      if (batch.length > 1) {
        this.log.warn({ msg: 'a batch of the inbox failed; each delivery is tried alone', ...errorTrace(error) });
        for (const each of batch) await this.process([each]);
        return;
      }
      outcomes = new Map(batch.map((delivery) => [delivery, this.failure(delivery, error)]));
      await this.inbox.record(outcomes);
    }
    const settled = [...outcomes.values()];
    for (const { state } of settled) if (state !== 'received') this.settled.inc({ state });
  }

  private async handleAll(tx: pg.PoolClient, batch: readonly TakenDelivery[]): Promise<Outcomes> {
    const startedMs = this.deps.clock.monotonicMs();
    const opened = batch.map((delivery) => [delivery, this.open(delivery)] as const);
    // All workers lock the rows of subjects in the same order, so that they cannot deadlock.
    opened.sort(([, a], [, b]) => compare(a.subject ?? '', b.subject ?? ''));
    const outcomes = new Map<TakenDelivery, Outcome>();
    for (const [delivery, found] of opened) {
      const isLate = outcomes.size > 0 && this.deps.clock.monotonicMs() - startedMs > MAX_BATCH_MS;
      if (this.shutdown.signal.aborted || isLate) outcomes.set(delivery, { state: 'received', retryInMs: 0 });
      else outcomes.set(delivery, 'event' in found ? await this.handle(tx, delivery, found) : found);
    }
    await this.inbox.record(outcomes, tx);
    return outcomes;
  }

  /** The event of a delivery, or the outcome of a delivery without one. */
  private open(delivery: TakenDelivery): UnderstoodEvent | Outcome {
    const lost = delivery.takes - 1;
    if (lost >= MAX_LOST) {
      return this.logged(delivery, { state: 'dead', reason: 'no-outcome', attempts: delivery.attempts + lost });
    }
    try {
      const body = this.vault.openBytes(bodyPlace(delivery.signature.toString('hex')), delivery.body);
      const parsed = parseEvent(body, this.contract.events);
      return 'event' in parsed ? parsed : { ...parsed, state: 'not-understood' };
    } catch (error) {
      if (error instanceof MissingDataKey) return { state: 'failed', reason: 'sealed', retryInMs: KEY_WAIT_MS };
      return this.failure(delivery, error, { reason: 'sealed' });
    }
  }

  private async handle(
    tx: pg.PoolClient,
    delivery: TakenDelivery,
    { event, subject }: UnderstoodEvent,
  ): Promise<Outcome> {
    const outcome = await this.handleInSavepoint(tx, delivery, event);
    return { ...outcome, eventType: event.eventType, subject };
  }

  private async handleInSavepoint(tx: pg.PoolClient, delivery: TakenDelivery, event: PlatformEvent): Promise<Outcome> {
    const { id: deliveryId, receivedAt, waitingSince } = delivery;
    const handler = this.handlers.of(event.eventType);
    await tx.query('SAVEPOINT delivery');
    try {
      const handled = await handler.handle(
        { ...event, deliveryId, receivedAt, waitingSince },
        await this.prisma.in(tx),
      );
      await tx.query(handled === 'waiting' ? UNDO : 'RELEASE SAVEPOINT delivery');
      if (handler.afterCommit && handled !== 'waiting') this.deps.database.afterCommit(tx, handler.afterCommit);
      return OUTCOMES[handled];
    } catch (error) {
      if (isRetried(error)) throw error; // the whole transaction runs again
      await tx.query(UNDO).catch(() => {
        throw error; // the transaction itself is lost, and this is why
      });
      return this.failure(delivery, error, { eventType: event.eventType });
    }
  }

  private failure(delivery: TakenDelivery, error: unknown, known: Partial<Outcome> = {}): Outcome {
    const attempts = delivery.attempts + 1;
    const next = afterFailure(attempts, this.deps.random.fraction());
    return this.logged(delivery, { ...next, reason: failureCode(error), attempts, ...known }, errorTrace(error));
  }

  private logged({ id }: TakenDelivery, outcome: Outcome, trace = {}): Outcome {
    this.log.warn({ msg: 'a webhook delivery was not processed', delivery: id, ...outcome, ...trace });
    return outcome;
  }
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** The state after this many failed attempts. @param fraction a random number in [0, 1) */
export function afterFailure(attempts: number, fraction: number): Pick<Outcome, 'state' | 'retryInMs'> {
  if (attempts >= MAX_ATTEMPTS) return { state: 'dead' };
  return { state: 'failed', retryInMs: backoffMs(attempts, fraction, BACKOFF) };
}
