import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { Clock } from '../../config/clock.js';
import { Random } from '../../config/random.js';
import { Database, isRetried } from '../../database/database.js';
import { errorTrace, failureCode } from '../../http/problem/error-trace.js';
import { Metrics } from '../../http/server/metrics.js';
import { SpellingsRepository } from '../../platform/http/spellings.repository.js';
import { backoffMs } from '../../queue/backend/backoff.js';
import { WEBHOOK_INBOX_QUEUE } from '../../queue/backend/queue-names.js';
import { TriggeredLoop } from '../../queue/due-rows/triggered-loop.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { annotate, inSpan, markFailed } from '../../tracing/trace.js';
import { MissingDataKey } from '../../vault/unreadable-value.js';
import { Vault } from '../../vault/vault.js';
import { bodyPlace } from '../receive/inbox-writer.repository.js';
import { EventHandlers } from './event-handlers.js';
import { InboxRepository, type Outcome, type TakenDelivery } from './inbox.repository.js';
import { parseEvent, type UnderstoodEvent } from './parse-event.js';

/** Deliveries per transaction. */
const MAX_BATCH = 10;

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

type Found = UnderstoodEvent | Outcome;

/**
 * Empties the inbox in small batches: one transaction each, and a savepoint for each delivery. Before the work, the take
 * is committed with a visibility timeout. A delivery that ends its process is therefore known by its missing outcome,
 * and delays the others of its batch by no more than that timeout.
 */
@Injectable()
export class InboxLoop extends TriggeredLoop {
  private readonly settled;

  constructor(
    private readonly database: Database,
    private readonly inbox: InboxRepository,
    private readonly handlers: EventHandlers,
    private readonly vault: Vault,
    private readonly spellings: SpellingsRepository,
    private readonly notifier: QueueNotifier,
    private readonly clock: Clock,
    private readonly random: Random,
    metrics: Metrics,
  ) {
    super('webhook inbox', 1);
    this.settled = metrics.counter('webhook_settled_total', 'Outcomes of attempts to process a delivery', ['state']);
    metrics.gauge('webhook_inbox_open', 'Deliveries that still need work', [], async (gauge) =>
      gauge.set(await inbox.count('due_at IS NOT NULL')),
    );
    metrics.gauge('webhook_inbox_dead', 'Dead letters: deliveries that wait for a replay', [], async (gauge) =>
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
      await this.work(batch);
    }
  }

  private async work(batch: readonly TakenDelivery[]): Promise<void> {
    try {
      const outcomes = await this.inbox.transaction(async (tx) => {
        const handled = await this.handleAll(tx, batch);
        await this.inbox.record(handled, tx);
        return handled;
      });
      for (const { state } of outcomes) if (state !== 'received') this.settled.inc({ state });
      if (outcomes.some(({ reason }) => reason === 'waiting')) {
        this.notifier.notify(WEBHOOK_INBOX_QUEUE, 'waiting', WAIT_MS);
      }
    } catch (error) {
      // A delivery may fail the transaction itself, for example by a constraint that is checked at COMMIT.
      const [delivery, ...others] = batch;
      if (delivery && others.length === 0) return this.inbox.record([this.failure(delivery, null, error)]);
      this.log.warn({ msg: 'a batch of the inbox failed; each delivery is tried alone', ...errorTrace(error) });
      for (const each of batch) await this.work([each]);
    }
  }

  private async handleAll(tx: pg.PoolClient, batch: readonly TakenDelivery[]): Promise<Outcome[]> {
    const startedMs = this.clock.monotonicMs();
    const opened = batch.map((delivery) => ({ delivery, found: this.open(delivery) }));
    // All workers lock the rows of subjects in the same order, so that they cannot deadlock.
    opened.sort((a, b) => compare(a.found.subject ?? '', b.found.subject ?? ''));
    const outcomes: Outcome[] = [];
    for (const { delivery, found } of opened) {
      const isLate = outcomes.length > 0 && this.clock.monotonicMs() - startedMs > MAX_BATCH_MS;
      if (this.shutdown.signal.aborted || isLate)
        outcomes.push(outcomeOf(delivery, { state: 'received', retryInMs: 0 }));
      else outcomes.push('body' in found ? await this.handleTraced(tx, delivery, found) : found);
    }
    return outcomes;
  }

  /** The event of a delivery, or the outcome of a delivery without one. */
  private open(delivery: TakenDelivery): Found {
    const lost = delivery.takes - 1;
    if (lost >= MAX_LOST) return this.died(delivery, lost);
    try {
      const event = parseEvent(this.vault.openBytes(bodyPlace(delivery.signature.toString('hex')), delivery.body));
      if (!('body' in event)) return outcomeOf(delivery, { ...event, state: 'not-understood' });
      const subject = event.subject || (this.handlers.of(event.eventType).subjectOf?.(event.body) ?? '');
      return { ...event, subject };
    } catch (error) {
      if (!(error instanceof MissingDataKey)) return this.failure(delivery, null, 'sealed');
      return outcomeOf(delivery, { state: 'failed', reason: 'sealed', retryInMs: KEY_WAIT_MS });
    }
  }

  private handleTraced(tx: pg.PoolClient, delivery: TakenDelivery, event: UnderstoodEvent): Promise<Outcome> {
    const { id, traceparent, attempts } = delivery;
    const attributes = {
      'notebridge.delivery': id,
      'notebridge.event_type': event.eventType,
      'notebridge.attempt': attempts + 1,
    };
    const causes = traceparent === null ? [] : [traceparent];
    return inSpan('process webhook', { kind: 'CONSUMER', causes, attributes }, async () => {
      const outcome = await this.handle(tx, delivery, event);
      annotate({ 'notebridge.outcome': outcome.state });
      if (outcome.state === 'failed' || outcome.state === 'dead') markFailed(outcome.reason ?? outcome.state);
      return outcome;
    });
  }

  private async handle(
    tx: pg.PoolClient,
    delivery: TakenDelivery,
    { eventType, subject: named, spelling, body }: UnderstoodEvent,
  ): Promise<Outcome> {
    const handler = this.handlers.of(eventType);
    const about = { eventType, subject: named || null };
    await tx.query('SAVEPOINT delivery');
    try {
      const { id: deliveryId, receivedAt, waitingSince } = delivery;
      await this.spellings.learnIfNew(tx, spelling);
      const state = await handler.handle({ deliveryId, eventType, receivedAt, waitingSince, body }, tx);
      if (state === 'waiting') {
        await tx.query(UNDO);
        return outcomeOf(delivery, { ...about, state: 'received', reason: 'waiting', retryInMs: WAIT_MS });
      }
      await tx.query('RELEASE SAVEPOINT delivery');
      if (handler.afterCommit) this.database.afterCommit(tx, handler.afterCommit);
      return outcomeOf(delivery, { ...about, state, reason: state === 'ignored' ? 'not-ours' : null });
    } catch (error) {
      if (isRetried(error)) throw error; // the whole transaction runs again
      await tx.query(UNDO).catch(() => {
        throw error; // the transaction itself is lost, and this is why
      });
      return { ...this.failure(delivery, eventType, error), ...about };
    }
  }

  /** The outcome of a failed attempt. @param cause a code, or the error */
  private failure(delivery: TakenDelivery, eventType: string | null, cause: unknown): Outcome {
    const attempts = delivery.attempts + 1;
    const [reason, trace] = typeof cause === 'string' ? [cause, {}] : [failureCode(cause), errorTrace(cause)];
    const next = afterFailure(attempts, this.random.fraction());
    return this.warned(outcomeOf(delivery, { ...next, eventType, reason, attempts }), trace);
  }

  private died(delivery: TakenDelivery, lost: number): Outcome {
    const attempts = delivery.attempts + lost;
    return this.warned(outcomeOf(delivery, { state: 'dead', reason: 'no-outcome', attempts }));
  }

  private warned(outcome: Outcome, trace = {}): Outcome {
    const { id, eventType, state, attempts, reason } = outcome;
    const facts = { delivery: id, eventType, state, attempts, reason };
    this.log.warn({ msg: 'a webhook delivery was not processed', ...facts, ...trace });
    return outcome;
  }
}

const UNDO = 'ROLLBACK TO SAVEPOINT delivery; RELEASE SAVEPOINT delivery';

function outcomeOf(
  { id, takenUntil, attempts }: TakenDelivery,
  what: Pick<Outcome, 'state'> & Partial<Outcome>,
): Outcome {
  return { id, takenUntil, attempts, eventType: null, subject: null, reason: null, retryInMs: null, ...what };
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** What follows from this many failed attempts. @param fraction a random number in [0, 1) */
export function afterFailure(attempts: number, fraction: number): Pick<Outcome, 'state' | 'retryInMs'> {
  if (attempts >= MAX_ATTEMPTS) return { state: 'dead', retryInMs: null };
  return { state: 'failed', retryInMs: backoffMs(attempts, fraction, BACKOFF) };
}
