import { randomUUID } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import type pg from 'pg';
import { Random } from '../../config/random.js';
import { errorTrace } from '../../http/problem/error-trace.js';
import { backoffMs } from '../../queue/backend/backoff.js';
import { MissingDataKey, Vault } from '../../vault/vault.js';
import { bodyPlace } from '../receive/inbox-writer.repository.js';
import { type EventHandler, EventHandlers } from './event-handlers.js';
import { type DueDelivery, InboxRepository, NO_OUTCOME, type Outcome, type TakeLimit } from './inbox.repository.js';
import { parseEvent, type UnderstoodEvent } from './parse-event.js';

/** Failed attempts after which a delivery is dead; with the delays below that is after about an hour. */
export const MOST_ATTEMPTS = 12;
const BACKOFF = { baseMs: 1_000, maxMs: 30 * 60_000 };

/** Milliseconds until a delivery is tried again whose data key is missing: an operator has to bring it. */
const KEY_WAIT_MS = 30_000;

/** What one batch came to. */
interface BatchResult {
  outcomes: readonly Outcome[];
  /** Handlers that processed something. */
  used: ReadonlySet<EventHandler>;
}

/** A due delivery and its event, or what becomes of it without one. */
type Opened = { delivery: DueDelivery } & ({ event: UnderstoodEvent } | { outcome: Outcome });

/** Takes, opens, handles and settles a batch of deliveries in one transaction, each in a savepoint of its own. */
@Injectable()
export class InboxBatch {
  private readonly log = new Logger(InboxBatch.name);

  constructor(
    private readonly inbox: InboxRepository,
    private readonly handlers: EventHandlers,
    private readonly vault: Vault,
    private readonly random: Random,
  ) {}

  /**
   * @param taken is filled with what was taken, also when the work throws
   * @throws what spoilt the transaction; nothing of the batch is settled then
   */
  async run(limit: TakeLimit, taken: DueDelivery[] = []): Promise<BatchResult> {
    const batch = randomUUID();
    try {
      return await this.inbox.transaction(async (tx) => {
        // A transaction that lost a deadlock is run again: what it took before is no longer locked.
        if (taken.length > 0) await this.inbox.release(batch);
        taken.splice(0, taken.length, ...(await this.inbox.take(tx, limit)));
        const ids = taken.map(({ id }) => id);
        if (ids.length > 0) await this.inbox.claim(batch, ids);
        return this.handleAll(tx, taken);
      });
    } catch (error) {
      // Claims that stay have their deliveries taken alone once more, which does no harm.
      await this.inbox.release(batch).catch(() => undefined);
      throw error;
    }
  }

  /** What becomes of a delivery whose attempt failed. @param cause a code, or what was thrown */
  failure({ id, attempts: before }: DueDelivery, eventType: string | null, cause: unknown): Outcome {
    const attempts = before + 1;
    const next = afterFailure(attempts, this.random.fraction());
    const [reason, trace] = typeof cause === 'string' ? [cause, {}] : [failureCode(cause), errorTrace(cause)];
    const facts = { delivery: id, eventType, state: next.state, attempts, reason };
    this.log.warn({ msg: 'a webhook delivery was not processed', ...facts, ...trace });
    return { id, eventType, reason, attempts, ...next };
  }

  private async handleAll(tx: pg.PoolClient, deliveries: readonly DueDelivery[]): Promise<BatchResult> {
    const opened = deliveries.map((delivery) => this.open(delivery));
    // Every worker handles subjects in one order, so that two of them can't lock each other out.
    opened.sort((a, b) => compare(subjectOf(a), subjectOf(b)));
    const outcomes: Outcome[] = [];
    const used = new Set<EventHandler>();
    for (const each of opened) {
      outcomes.push('outcome' in each ? each.outcome : await this.handle(tx, each.delivery, each.event, used));
    }
    await this.inbox.recordOutcomes(outcomes, tx);
    return { outcomes, used };
  }

  private open(delivery: DueDelivery): Opened {
    if (delivery.isCulprit) return { delivery, outcome: this.failure(delivery, null, NO_OUTCOME) };
    try {
      const place = bodyPlace(delivery.signature.toString('hex'));
      const event = parseEvent(this.vault.openBytes(place, delivery.body));
      if (!('reason' in event)) return { delivery, event };
      return { delivery, outcome: outcomeOf(delivery, 'not-understood', event.eventType, event.reason) };
    } catch (error) {
      if (!(error instanceof MissingDataKey)) return { delivery, outcome: this.failure(delivery, null, 'sealed') };
      // No fault of the delivery's: it waits for the key however long that takes, and no attempt is counted.
      const outcome = { ...outcomeOf(delivery, 'failed', null, 'sealed'), retryInMs: KEY_WAIT_MS };
      return { delivery, outcome };
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
      const handled = await handler.handle({ deliveryId, eventType, receivedAt, body }, tx);
      await tx.query('RELEASE SAVEPOINT delivery');
      used.add(handler);
      return outcomeOf(delivery, handled, eventType, handled === 'ignored' ? 'not-ours' : null);
    } catch (error) {
      await tx.query('ROLLBACK TO SAVEPOINT delivery; RELEASE SAVEPOINT delivery').catch(() => {
        throw error; // the transaction itself is lost, and this is why
      });
      return this.failure(delivery, eventType, error);
    }
  }
}

function outcomeOf(
  { id, attempts }: DueDelivery,
  state: Outcome['state'],
  eventType: string | null,
  reason: string | null,
): Outcome {
  return { id, state, eventType, reason, attempts, retryInMs: null };
}

const subjectOf = (opened: Opened): string => ('event' in opened ? opened.event.subject : '');

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/**
 * What follows from a failed attempt.
 *
 * @param attempts failed ones, this one included
 * @param fraction a random number in [0, 1)
 */
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
