import { randomUUID } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import type pg from 'pg';
import { Random } from '../../config/random.js';
import { errorTrace } from '../../http/problem/error-trace.js';
import { MissingDataKey } from '../../vault/missing-data-key.js';
import { Vault } from '../../vault/vault.js';
import { bodyPlace } from '../receive/sealed-body.js';
import { afterFailure, failureCode, KEY_WAIT_MS } from './attempt-rules.js';
import { type EventHandler, EventHandlers } from './event-handlers.js';
import { type DueDelivery, InboxRepository, NO_OUTCOME, type Outcome, type TakeLimit } from './inbox.repository.js';
import { parseEvent, type UnderstoodEvent } from './parse-event.js';

/** What one batch came to. */
export interface BatchResult {
  outcomes: readonly Outcome[];
  /** Handlers that processed something. */
  used: ReadonlySet<EventHandler>;
}

const NOTHING: BatchResult = { outcomes: [], used: new Set() };

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
    const take = randomUUID();
    try {
      return await this.inbox.transaction(async (tx) => {
        // A transaction that lost a deadlock is run again: what it took before is free again.
        if (taken.length > 0) await this.inbox.unmark(take);
        taken.splice(0, taken.length, ...(await this.inbox.take(tx, limit)));
        if (taken.length === 0) return NOTHING;
        await this.inbox.mark(
          take,
          taken.map(({ id }) => id),
        );
        return this.handleAll(tx, taken);
      });
    } catch (error) {
      // Marks that stay have their deliveries taken alone once more, which does no harm.
      await this.inbox.unmark(take).catch(() => undefined);
      throw error;
    }
  }

  /** What becomes of a delivery whose attempt failed. @param cause a code, or what was thrown */
  failure({ id, attempts: before }: DueDelivery, eventType: string | null, cause: unknown): Outcome {
    const attempts = before + 1;
    const { state, retryInMs } = afterFailure(attempts, this.random.fraction());
    const [reason, trace] = typeof cause === 'string' ? [cause, {}] : [failureCode(cause), errorTrace(cause)];
    const facts = { delivery: id, eventType, state, attempts, reason };
    this.log.warn({ msg: 'a webhook delivery was not processed', ...facts, ...trace });
    return { id, state, eventType, reason, attempts, retryInMs };
  }

  private async handleAll(tx: pg.PoolClient, deliveries: readonly DueDelivery[]): Promise<BatchResult> {
    const opened = deliveries.map((delivery) => this.open(delivery));
    // Every worker meets subjects in one order, so that two of them can't lock each other out.
    opened.sort((a, b) => compare(subjectOf(a), subjectOf(b)));
    const outcomes: Outcome[] = [];
    const used = new Set<EventHandler>();
    for (const each of opened) {
      outcomes.push('outcome' in each ? each.outcome : await this.handle(tx, each.delivery, each.event, used));
    }
    await this.inbox.settle(outcomes, tx);
    return { outcomes, used };
  }

  private open(delivery: DueDelivery): Opened {
    if (delivery.isCulprit) return { delivery, outcome: this.failure(delivery, null, NO_OUTCOME) };
    try {
      const place = bodyPlace(delivery.signature.toString('hex'));
      const event = parseEvent(this.vault.openBytes(place, delivery.body));
      if (!('reason' in event)) return { delivery, event };
      return { delivery, outcome: done(delivery, 'not-understood', event.eventType, event.reason) };
    } catch (error) {
      const isKept = error instanceof MissingDataKey;
      return { delivery, outcome: isKept ? waiting(delivery) : this.failure(delivery, null, 'sealed') };
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
}

function done(
  { id, attempts }: DueDelivery,
  state: 'processed' | 'ignored' | 'not-understood',
  eventType: string | null,
  reason: string | null,
): Outcome {
  return { id, state, eventType, reason, attempts, retryInMs: null };
}

/** A data key is missing, which is no fault of the delivery's: it waits for the key however long that takes. */
function waiting({ id, attempts }: DueDelivery): Outcome {
  return { id, state: 'failed', eventType: null, reason: 'sealed', attempts, retryInMs: KEY_WAIT_MS };
}

const subjectOf = (opened: Opened): string => ('event' in opened ? opened.event.subject : '');

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
