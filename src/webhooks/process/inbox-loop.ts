import { randomUUID } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import type pg from 'pg';
import { Clock } from '../../config/clock.js';
import { Random } from '../../config/random.js';
import { errorTrace, failureCode } from '../../http/problem/error-trace.js';
import { Metrics } from '../../http/server/metrics.js';
import { SpellingsRepository } from '../../platform/http/spellings.repository.js';
import { backoffMs } from '../../queue/backend/backoff.js';
import { WEBHOOK_INBOX_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { annotate, inSpan, markFailed } from '../../tracing/trace.js';
import { MissingDataKey } from '../../vault/unreadable-value.js';
import { Vault } from '../../vault/vault.js';
import { bodyPlace } from '../receive/inbox-writer.repository.js';
import { type EventHandler, EventHandlers } from './event-handlers.js';
import { type DueDelivery, InboxRepository, type Outcome } from './inbox.repository.js';
import { parseEvent, type UnderstoodEvent } from './parse-event.js';

/** Deliveries of one transaction, and their bytes: a body's JSON may take twenty times as many in memory. */
const BATCH = { rows: 100, bytes: 1024 ** 2 };

/** Milliseconds after which a batch commits what it has done: others, such as a fetch, wait for what it has locked. */
const BATCH_MS = 1_000;

/** Milliseconds until a delivery is taken up again about whose subject another worker had deliveries just now. */
const PUT_BACK_MS = 250;

/** Failed attempts after which a delivery is dead; with the delays below that is after about an hour. */
export const MOST_ATTEMPTS = 12;
const BACKOFF = { baseMs: 1_000, maxMs: 30 * 60_000 };

/** Milliseconds until a delivery is tried again whose data key is missing: an operator has to bring it. */
const KEY_WAIT_MS = 30_000;

/** What came of a batch. */
interface Handling {
  readonly outcomes: readonly Outcome[];
  /** Deliveries whose subject another worker has. */
  readonly busy: readonly DueDelivery[];
  /** It ended before everything was tried. */
  readonly isLate: boolean;
}

/**
 * Empties the inbox: a batch of due deliveries in each transaction, each delivery in a savepoint of its own. What is
 * about one subject is worked on by one worker at a time, for others would only wait for its row.
 */
@Injectable()
export class InboxLoop {
  private readonly log = new Logger(InboxLoop.name);
  private readonly settled;
  private running: Promise<void> | undefined;
  private again = false;
  private stopped = false;
  /** Deliveries of the next batch: fewer where a batch takes long. */
  private rows = BATCH.rows;

  constructor(
    private readonly inbox: InboxRepository,
    private readonly handlers: EventHandlers,
    private readonly vault: Vault,
    private readonly spellings: SpellingsRepository,
    private readonly notifier: QueueNotifier,
    private readonly clock: Clock,
    private readonly random: Random,
    metrics: Metrics,
  ) {
    this.settled = metrics.counter('webhook_settled_total', 'Deliveries that a worker looked at', ['state']);
    metrics.gauge('webhook_inbox_open', 'Deliveries that still want work', [], async (gauge) =>
      gauge.set(await inbox.count('due_at IS NOT NULL')),
    );
    metrics.gauge('webhook_inbox_dead', 'Dead letters: deliveries that wait for a replay', [], async (gauge) =>
      gauge.set(await inbox.count(`state = 'dead'`)),
    );
  }

  readonly name = 'webhook inbox';

  /** For the poller: when the next delivery is due. */
  nextDue(): string {
    return this.inbox.nextDue();
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
      while (!this.stopped && (await this.processBatch(this.rows)) > 0);
    }
  }

  /** What is taken and not tried was taken in vain: as many as the last batch had time for, and twice as many as that. */
  private fitRows(done: number, isLate: boolean): void {
    this.rows = isLate ? Math.max(2, done) : Math.min(BATCH.rows, 2 * this.rows);
  }

  /** @returns how many deliveries were worked on */
  private async processBatch(rows: number): Promise<number> {
    const batch = randomUUID();
    let taken: DueDelivery[] = [];
    const used = new Set<EventHandler>();
    try {
      const { outcomes, busy, isLate } = await this.inbox.transaction(async (tx) => {
        // A transaction that lost a deadlock is run again: what it took before is no longer locked.
        if (taken.length > 0) await this.inbox.release(batch);
        used.clear();
        taken = await this.inbox.take(tx, { ...BATCH, rows });
        await this.inbox.claim(batch, taken);
        return this.handleAll(tx, taken, used);
      });
      // A batch may end early: what is left of it was not tried.
      if (outcomes.length < taken.length) await this.inbox.release(batch).catch(() => undefined);
      for (const { state } of outcomes) this.settled.inc({ state });
      for (const handler of used) await this.afterCommit(handler);
      if (rows > 1) this.fitRows(outcomes.length, isLate);
      if (busy.length > 0) this.notifier.notify(WEBHOOK_INBOX_QUEUE, 'put-back', PUT_BACK_MS);
      return outcomes.length;
    } catch (error) {
      // Claims that stay have their deliveries taken alone once more, which does no harm.
      await this.inbox.release(batch).catch(() => undefined);
      const [delivery] = taken;
      if (!delivery) throw error;
      if (rows > 1) return this.processOneByOne(error);
      await this.inbox.recordOutcomes([this.failure(delivery, null, error)]);
      return 1;
    }
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
  ): Promise<Handling> {
    const begunMs = this.clock.monotonicMs();
    const opened = deliveries.map((delivery) => ({ delivery, found: this.open(delivery) }));
    // Every worker handles subjects in one order, so that two of them can't lock each other out.
    opened.sort((a, b) => compare(subjectOf(a.found), subjectOf(b.found)));
    const ours = await this.inbox.lockSubjects(tx, new Set(opened.map(({ found }) => subjectOf(found))));
    const isOurs = ({ found }: (typeof opened)[number]) => ours.has(subjectOf(found));
    const outcomes: Outcome[] = [];
    for (const { delivery, found } of opened.filter(isOurs)) {
      const isLate = outcomes.length > 0 && this.clock.monotonicMs() - begunMs > BATCH_MS;
      if (this.stopped || isLate) break;
      outcomes.push('body' in found ? await this.handleTraced(tx, delivery, found, used) : found);
    }
    await this.inbox.recordOutcomes(outcomes, tx);
    const busy = opened.filter((each) => !isOurs(each)).map(({ delivery }) => delivery);
    await this.inbox.putBack(tx, busy, PUT_BACK_MS);
    return { outcomes, busy, isLate: outcomes.length + busy.length < deliveries.length };
  }

  /** The event of a delivery, or what becomes of the delivery without one. */
  private open(delivery: DueDelivery): UnderstoodEvent | Outcome {
    if (delivery.isCulprit) return this.failure(delivery, null, 'no-outcome');
    try {
      const event = parseEvent(this.vault.openBytes(bodyPlace(delivery.signature.toString('hex')), delivery.body));
      if (!('body' in event)) return outcomeOf(delivery, { ...event, state: 'not-understood' });
      const subject = event.subject || (this.handlers.of(event.eventType).subjectOf?.(event.body) ?? '');
      return { ...event, subject };
    } catch (error) {
      if (!(error instanceof MissingDataKey)) return this.failure(delivery, null, 'sealed');
      // No fault of the delivery's: it waits for the key however long that takes, and no attempt is counted.
      return outcomeOf(delivery, { state: 'failed', eventType: null, reason: 'sealed', retryInMs: KEY_WAIT_MS });
    }
  }

  private handleTraced(
    tx: pg.PoolClient,
    delivery: DueDelivery,
    found: UnderstoodEvent,
    used: Set<EventHandler>,
  ): Promise<Outcome> {
    const { id, traceparent, attempts } = delivery;
    const attributes = {
      'notebridge.delivery': id,
      'notebridge.event_type': found.eventType,
      'notebridge.attempt': attempts + 1,
    };
    const causes = traceparent === null ? [] : [traceparent];
    return inSpan('process webhook', { kind: 'CONSUMER', causes, attributes }, async () => {
      const outcome = await this.handle(tx, delivery, found, used);
      annotate({ 'notebridge.outcome': outcome.state });
      if (outcome.state === 'failed' || outcome.state === 'dead') markFailed(outcome.reason ?? outcome.state);
      return outcome;
    });
  }

  private async handle(
    tx: pg.PoolClient,
    delivery: DueDelivery,
    { eventType, subject: named, spelling, body }: UnderstoodEvent,
    used: Set<EventHandler>,
  ): Promise<Outcome> {
    const handler = this.handlers.of(eventType);
    const subject = named || null;
    await tx.query('SAVEPOINT delivery');
    try {
      const { id: deliveryId, receivedAt, waitingSince } = delivery;
      await this.spellings.learnIfNew(tx, spelling);
      const state = await handler.handle({ deliveryId, eventType, receivedAt, waitingSince, body }, tx);
      if (state === 'waiting') {
        await tx.query('ROLLBACK TO SAVEPOINT delivery; RELEASE SAVEPOINT delivery');
        this.notifier.notify(WEBHOOK_INBOX_QUEUE, 'waiting', 1_000);
        return outcomeOf(delivery, { state: 'received', eventType, subject, reason: 'waiting', retryInMs: 1_000 });
      }
      await tx.query('RELEASE SAVEPOINT delivery');
      used.add(handler);
      return outcomeOf(delivery, { state, eventType, subject, reason: state === 'ignored' ? 'not-ours' : null });
    } catch (error) {
      await tx.query('ROLLBACK TO SAVEPOINT delivery; RELEASE SAVEPOINT delivery').catch(() => {
        throw error; // the transaction itself is lost, and this is why
      });
      return { ...this.failure(delivery, eventType, error), subject };
    }
  }

  /** What becomes of a delivery whose attempt failed. @param cause a code, or what was thrown */
  private failure({ id, attempts: before }: DueDelivery, eventType: string | null, cause: unknown): Outcome {
    const attempts = before + 1;
    const next = afterFailure(attempts, this.random.fraction());
    const [reason, trace] = typeof cause === 'string' ? [cause, {}] : [failureCode(cause), errorTrace(cause)];
    const facts = { delivery: id, eventType, state: next.state, attempts, reason };
    this.log.warn({ msg: 'a webhook delivery was not processed', ...facts, ...trace });
    return { id, eventType, subject: null, reason, attempts, ...next };
  }
}

function outcomeOf(
  { id, attempts }: DueDelivery,
  what: Pick<Outcome, 'state' | 'eventType' | 'reason'> & Partial<Outcome>,
): Outcome {
  return { id, attempts, subject: null, retryInMs: null, ...what };
}

const subjectOf = (found: UnderstoodEvent | Outcome): string => ('body' in found ? found.subject : '');

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** What follows from so many failed attempts. @param fraction a random number in [0, 1) */
export function afterFailure(attempts: number, fraction: number): Pick<Outcome, 'state' | 'retryInMs'> {
  if (attempts >= MOST_ATTEMPTS) return { state: 'dead', retryInMs: null };
  return { state: 'failed', retryInMs: backoffMs(attempts, fraction, BACKOFF) };
}
