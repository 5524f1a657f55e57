import { randomUUID } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import type pg from 'pg';
import { Random } from '../../config/random.js';
import { errorTrace } from '../../http/problem/error-trace.js';
import { Metrics } from '../../http/server/metrics.js';
import { backoffMs } from '../../queue/backend/backoff.js';
import { MissingDataKey } from '../../vault/unreadable-value.js';
import { Vault } from '../../vault/vault.js';
import { bodyPlace } from '../receive/inbox-writer.repository.js';
import { type EventHandler, EventHandlers } from './event-handlers.js';
import { type DueDelivery, InboxRepository, type Outcome } from './inbox.repository.js';
import { parseEvent, type UnderstoodEvent } from './parse-event.js';

/** Deliveries of one transaction, and their bytes: a body's JSON may take twenty times as many in memory. */
const BATCH = { rows: 100, bytes: 1024 ** 2 };

/** Failed attempts after which a delivery is dead; with the delays below that is after about an hour. */
export const MOST_ATTEMPTS = 12;
const BACKOFF = { baseMs: 1_000, maxMs: 30 * 60_000 };

/** Milliseconds until a delivery is tried again whose data key is missing: an operator has to bring it. */
const KEY_WAIT_MS = 30_000;

/** Empties the inbox: a batch of due deliveries in each transaction, each delivery in a savepoint of its own. */
@Injectable()
export class InboxLoop {
  private readonly log = new Logger(InboxLoop.name);
  private readonly settled;
  private running: Promise<void> | undefined;
  private again = false;
  private stopped = false;

  constructor(
    private readonly inbox: InboxRepository,
    private readonly handlers: EventHandlers,
    private readonly vault: Vault,
    private readonly random: Random,
    metrics: Metrics,
  ) {
    this.settled = metrics.counter('webhook_settled_total', 'Deliveries that a worker looked at', ['state']);
  }

  /** Works until nothing is due. A call while it runs makes it look once more. */
  trigger(): void {
    this.again = true;
    this.running ??= this.processAll()
      .catch((error: unknown) => this.log.warn({ msg: 'the inbox could not be processed', ...errorTrace(error) }))
      .finally(() => {
        this.running = undefined;
      });
  }

  /** Takes nothing more. */
  stop(): void {
    this.stopped = true;
  }

  /** Resolves when what `trigger` began has ended. */
  async finished(): Promise<void> {
    await this.running;
  }

  private async processAll(): Promise<void> {
    while (this.again && !this.stopped) {
      this.again = false;
      while (!this.stopped && (await this.inbox.foldRepeats()) > 0);
      while (!this.stopped && (await this.processBatch(BATCH.rows)) > 0);
    }
  }

  /** @returns how many deliveries were taken */
  private async processBatch(rows: number): Promise<number> {
    const batch = randomUUID();
    let taken: DueDelivery[] = [];
    const used = new Set<EventHandler>();
    try {
      const outcomes = await this.inbox.transaction(async (tx) => {
        // A transaction that lost a deadlock is run again: what it took before is no longer locked.
        if (taken.length > 0) await this.inbox.release(batch);
        used.clear();
        taken = await this.inbox.take(tx, { ...BATCH, rows });
        await this.inbox.claim(batch, taken);
        return this.handleAll(tx, taken, used);
      });
      for (const { state } of outcomes) this.settled.inc({ state });
    } catch (error) {
      // Claims that stay have their deliveries taken alone once more, which does no harm.
      await this.inbox.release(batch).catch(() => undefined);
      const [delivery] = taken;
      if (!delivery) throw error;
      if (rows > 1) return this.processOneByOne(error);
      await this.inbox.recordOutcomes([this.failure(delivery, null, error)]);
    }
    for (const handler of used) await this.afterCommit(handler);
    return taken.length;
  }

  /** A delivery may spoil the transaction itself, e.g. by a constraint that is checked at COMMIT. */
  private async processOneByOne(error: unknown): Promise<number> {
    this.log.warn({ msg: 'a batch of the inbox failed; its deliveries are tried one by one', ...errorTrace(error) });
    let count = 0;
    while (count < BATCH.rows && !this.stopped && (await this.processBatch(1)) > 0) count += 1;
    return count;
  }

  private async afterCommit(handler: EventHandler): Promise<void> {
    try {
      await handler.afterCommit?.();
    } catch (error) {
      this.log.warn({ msg: 'a webhook handler failed after its commit', ...errorTrace(error) });
    }
  }

  /** @param used is filled with the handlers that processed something */
  private async handleAll(
    tx: pg.PoolClient,
    deliveries: readonly DueDelivery[],
    used: Set<EventHandler>,
  ): Promise<readonly Outcome[]> {
    const opened = deliveries.map((delivery) => ({ delivery, found: this.open(delivery) }));
    // Every worker handles subjects in one order, so that two of them can't lock each other out.
    opened.sort((a, b) => compare(subjectOf(a.found), subjectOf(b.found)));
    const outcomes: Outcome[] = [];
    for (const { delivery, found } of opened)
      outcomes.push('subject' in found ? await this.handle(tx, delivery, found, used) : found);
    await this.inbox.recordOutcomes(outcomes, tx);
    return outcomes;
  }

  /** The event of a delivery, or what becomes of the delivery without one. */
  private open(delivery: DueDelivery): UnderstoodEvent | Outcome {
    if (delivery.isCulprit) return this.failure(delivery, null, 'no-outcome');
    try {
      const event = parseEvent(this.vault.openBytes(bodyPlace(delivery.signature.toString('hex')), delivery.body));
      return 'subject' in event ? event : outcomeOf(delivery, { ...event, state: 'not-understood' });
    } catch (error) {
      if (!(error instanceof MissingDataKey)) return this.failure(delivery, null, 'sealed');
      // No fault of the delivery's: it waits for the key however long that takes, and no attempt is counted.
      return outcomeOf(delivery, { state: 'failed', eventType: null, reason: 'sealed', retryInMs: KEY_WAIT_MS });
    }
  }

  private async handle(
    tx: pg.PoolClient,
    delivery: DueDelivery,
    { eventType, body }: UnderstoodEvent,
    used: Set<EventHandler>,
  ): Promise<Outcome> {
    const handler = this.handlers.of(eventType);
    await tx.query('SAVEPOINT delivery');
    try {
      const { id: deliveryId, receivedAt } = delivery;
      const state = await handler.handle({ deliveryId, eventType, receivedAt, body }, tx);
      await tx.query('RELEASE SAVEPOINT delivery');
      used.add(handler);
      return outcomeOf(delivery, { state, eventType, reason: state === 'ignored' ? 'not-ours' : null });
    } catch (error) {
      await tx.query('ROLLBACK TO SAVEPOINT delivery; RELEASE SAVEPOINT delivery').catch(() => {
        throw error; // the transaction itself is lost, and this is why
      });
      return this.failure(delivery, eventType, error);
    }
  }

  /** What becomes of a delivery whose attempt failed. @param cause a code, or what was thrown */
  private failure({ id, attempts: before }: DueDelivery, eventType: string | null, cause: unknown): Outcome {
    const attempts = before + 1;
    const next = afterFailure(attempts, this.random.fraction());
    const [reason, trace] = typeof cause === 'string' ? [cause, {}] : [failureCode(cause), errorTrace(cause)];
    const facts = { delivery: id, eventType, state: next.state, attempts, reason };
    this.log.warn({ msg: 'a webhook delivery was not processed', ...facts, ...trace });
    return { id, eventType, reason, attempts, ...next };
  }
}

function outcomeOf(
  { id, attempts }: DueDelivery,
  what: Pick<Outcome, 'state' | 'eventType' | 'reason'> & Partial<Outcome>,
): Outcome {
  return { id, attempts, retryInMs: null, ...what };
}

const subjectOf = (found: UnderstoodEvent | Outcome): string => ('subject' in found ? found.subject : '');

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** What follows from so many failed attempts. @param fraction a random number in [0, 1) */
export function afterFailure(attempts: number, fraction: number): Pick<Outcome, 'state' | 'retryInMs'> {
  if (attempts >= MOST_ATTEMPTS) return { state: 'dead', retryInMs: null };
  return { state: 'failed', retryInMs: backoffMs(attempts, fraction, BACKOFF) };
}

/** A code for why a handler failed: SQLSTATE, problem type or kind of error; never a message, which may quote a value. */
export function failureCode(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  if ('code' in error && typeof error.code === 'string' && /^[A-Z0-9_]{2,40}$/.test(error.code)) {
    return /^[0-9A-Z]{5}$/.test(error.code) ? `database-${error.code}` : error.code;
  }
  return /^[A-Za-z]{1,60}$/.test(error.name) ? error.name : 'unknown';
}
