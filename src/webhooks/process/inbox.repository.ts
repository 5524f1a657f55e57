import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import type { WebhookDelivery } from '../../generated/prisma/client.js';
import type { CodeOf } from '../../words/words.js';

type Stored = 'id' | 'signature' | 'body' | 'sentAt' | 'receivedAt' | 'attempts' | 'starts' | 'repeats' | 'handled';

/** A delivery whose handler starts now. */
export interface StartedDelivery extends Pick<WebhookDelivery, Stored> {
  readonly dueAt: Date;
  /** When it was received or, if it was processed before, when it was sent or replayed again. */
  readonly waitingSince: Date;
  /** By the database's clock. */
  readonly startedAt: Date;
  /** True if a later one of its subject is pending. */
  readonly hasMore: boolean;
}

/** A place in the order of the deliveries of a subject. */
export type Place = Pick<StartedDelivery, 'sentAt' | 'id'>;

export const FIRST_PLACE: Place = { sentAt: -1n, id: -1n };

/** The result of a start. An event type or subject that is not given stays as stored. */
export interface Outcome {
  /** `received` if it was not an attempt after all. */
  readonly state: CodeOf<'deliveryState'>;
  readonly eventType?: string | null;
  readonly subject?: string;
  readonly reason?: string;
  /** The new number of failed attempts; unchanged by default. */
  readonly attempts?: number;
  /** Milliseconds until the next start; none by default. */
  readonly retryInMs?: number;
}

/** Another process has handled the receipts of a run meanwhile, so its effects must be rolled back. */
export class HandledElsewhere extends Error {}

/** How many subjects wait in the queue: about as many as a process handles in a second. Reading them costs up to 0.1 s. */
export const WAITING_SUBJECTS = 500;

/** The inbox as its workers read and write it. */
@Injectable()
export class InboxRepository {
  constructor(
    private readonly prisma: PrismaService,
    private readonly clock: Clock,
  ) {}

  /** The subjects with due deliveries, the longest due first. */
  dueSubjects(): Promise<{ id: string }[]> {
    return this.prisma.$queryRaw`
      SELECT subject AS id FROM (
        SELECT subject, due_at FROM webhook_deliveries WHERE due_at <= now() ORDER BY due_at LIMIT ${WAITING_SUBJECTS}
      ) AS due GROUP BY subject ORDER BY min(due_at)`;
  }

  /**
   * Starts the first pending delivery of a subject after a place, in the order of their timestamps. The start is committed
   * before the work, so that a process which is killed leaves a trace. The commit does not wait for the disk, because it
   * must survive this process only.
   *
   * @returns nothing if none is pending, or the first one is not due
   */
  async start(subject: string, { sentAt, id }: Place): Promise<StartedDelivery | undefined> {
    const [started] = await this.prisma.$queryRaw<StartedDelivery[]>`
      WITH no_wait AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)), first AS MATERIALIZED (
        SELECT id FROM webhook_deliveries
        WHERE subject = ${subject} AND due_at IS NOT NULL AND (sent_at, id) > (${sentAt}::bigint, ${id}::bigint)
        ORDER BY sent_at, id LIMIT 1)
      UPDATE webhook_deliveries AS d SET starts = d.starts + 1 FROM first, no_wait WHERE d.id = first.id AND d.due_at <= now()
      RETURNING d.id, d.signature, d.body, d.sent_at AS "sentAt", d.received_at AS "receivedAt", d.attempts, d.starts, d.repeats,
        d.handled, d.due_at AS "dueAt", CASE WHEN d.processed_at IS NULL THEN d.received_at ELSE d.due_at END AS "waitingSince",
        now() AS "startedAt", EXISTS (SELECT FROM webhook_deliveries AS o
          WHERE o.subject = d.subject AND o.due_at IS NOT NULL AND (o.sent_at, o.id) > (d.sent_at, d.id)) AS "hasMore"`;
    return started;
  }

  /**
   * Stores an outcome, unless the delivery was replayed since its start, or was repeated and would not be tried again: then it
   * stays due. The outcome of a process that was taken for dead replaces `no-outcome`. As the last statement of a transaction,
   * because a repeat waits for the row's lock. The receipts of a processed delivery count as handled in each case.
   *
   * @returns true if it stays due
   * @throws {HandledElsewhere} if receipts of the processed delivery were handled since its start
   */
  async end(delivery: StartedDelivery, { retryInMs, ...outcome }: Outcome, tx: Tx = this.prisma): Promise<boolean> {
    const { id, repeats, handled, dueAt, startedAt } = delivery;
    const isProcessed = outcome.state === 'processed';
    const isDone = retryInMs === undefined && outcome.state !== 'dead';
    const [receipts, unchanged] = isProcessed ? [{ handled: repeats + 1 }, { handled }] : [];
    const { count } = await tx.webhookDelivery.updateMany({
      where: { id, ...unchanged, ...(isDone && { repeats }), OR: [{ dueAt }, { state: 'dead', reason: 'no-outcome' }] },
      data: {
        reason: null,
        ...outcome,
        starts: 0,
        dueAt: retryInMs === undefined ? null : new Date(startedAt.getTime() + retryInMs),
        ...receipts,
        ...(isProcessed && { processedAt: this.clock.now() }),
      },
    });
    if (count > 0) return false;
    const where = { id, ...unchanged };
    const { count: kept } = await tx.webhookDelivery.updateMany({ where, data: { starts: 0, ...receipts } });
    if (isProcessed && kept === 0) throw new HandledElsewhere();
    return true;
  }

  /** Takes back the starts of a subject, because this process lives, and does not know whether its last one was committed. */
  async forgetStarts(subject: string): Promise<void> {
    await this.prisma.webhookDelivery.updateMany({ where: { subject, dueAt: { not: null } }, data: { starts: 0 } });
  }

  /** Lets the deliveries of a subject wait for its first one, so that the feeder does not add them until it is due. */
  async holdBack(subject: string): Promise<void> {
    // Again after a deadlock, because repeats lock them in another order.
    await this.prisma.transaction(
      (tx) => tx.$executeRaw`
        UPDATE webhook_deliveries AS d SET due_at = first.due_at FROM (
          SELECT due_at FROM webhook_deliveries WHERE subject = ${subject} AND due_at IS NOT NULL ORDER BY sent_at, id LIMIT 1
        ) AS first WHERE d.subject = ${subject} AND d.due_at < first.due_at`,
    );
  }

  countPending(): Promise<number> {
    return this.prisma.webhookDelivery.count({ where: { dueAt: { not: null } } });
  }

  countDead(): Promise<number> {
    return this.prisma.webhookDelivery.count({ where: { state: 'dead' } });
  }
}
