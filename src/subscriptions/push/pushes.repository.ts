import { Injectable } from '@nestjs/common';
import { PrismaService } from '../../database/prisma.service.js';
import { Feed } from '../../feed/feed.js';
import type { DueRow } from '../../queue/work/feeder.js';
import { Sending } from '../../sending/sending.js';
import { Attempts, type Outcome } from './attempts.repository.js';
import { PUSH_TIMEOUT_MS } from './endpoint.js';
import { applyOutcome, type PushOutcome } from './push-outcome.js';
import { placeOf, rowOf, type SubscriptionRow } from './subscription-row.js';

/** How late an attempt may begin after it was marked. */
export const BEGIN_WITHIN_MS = 5_000;

/** How long an attempt may take effect after it was marked. */
const EFFECT_MS = BEGIN_WITHIN_MS + PUSH_TIMEOUT_MS;

/** SQL of `due_at` while an attempt is in progress. */
const MARK = `clock_timestamp() + interval '${EFFECT_MS} ms'`;

/** SQL of `due_at` after an event was delivered: the next one is in progress, there are more, or they are to come. */
const NEXT = { marked: MARK, more: `date_trunc('milliseconds', clock_timestamp())`, none: 'NULL' };

/** SQL condition: the feed has events after the place of a subscription. Each part reads one row. */
const IS_BEHIND = `(position < (SELECT coalesce(max(cursor), 0) FROM feed_events)
  OR epoch <> coalesce((SELECT epoch FROM feed_state), 1))`;

/**
 * The rows of the pushes. `due_at` is the time of the next attempt: while one is in progress, the time when it surely has
 * ended; null while every event is delivered, until the feed has more. `version` is raised by everyone who writes the row, so
 * a worker that lost its row to a caller or to another worker stores nothing that it decided for the row as it was.
 */
@Injectable()
export class PushesRepository {
  constructor(
    private readonly prisma: PrismaService,
    private readonly sending: Sending,
    private readonly feed: Feed,
    private readonly attempts: Attempts,
  ) {}

  /** The subscriptions that are due, or one of them. There are at most 20. */
  due(id: string | null = null): Promise<DueRow[]> {
    return this.prisma.$queryRawUnsafe<DueRow[]>(
      `SELECT id FROM subscriptions
       WHERE paused IS NULL AND (due_at <= clock_timestamp() OR (due_at IS NULL AND ${IS_BEHIND}))
         AND NOT ${this.sending.heldSql} AND ($1::uuid IS NULL OR id = $1::uuid) ORDER BY due_at NULLS FIRST`,
      id,
    );
  }

  /** Marks an attempt. @returns undefined if there must be none now: paused, held, not due, or in progress elsewhere */
  async take(id: string): Promise<SubscriptionRow | undefined> {
    const marked = await this.prisma.$executeRawUnsafe(
      `UPDATE subscriptions SET version = version + 1, due_at = ${MARK}
       WHERE id = $1::uuid AND paused IS NULL AND (due_at IS NULL OR due_at <= clock_timestamp())
         AND NOT ${this.sending.heldSql}`,
      id,
    );
    const row = marked === 1 ? await this.prisma.subscription.findUnique({ where: { id } }) : null;
    return row && row.paused === null ? rowOf(row) : undefined;
  }

  /** Marks an attempt that begins late anew. @returns undefined if the row has changed or sending is held */
  async mark(taken: SubscriptionRow): Promise<SubscriptionRow | undefined> {
    const count = await this.prisma.$executeRawUnsafe(
      `UPDATE subscriptions SET version = version + 1, due_at = ${MARK}
       WHERE id = $1::uuid AND version = $2::bigint AND NOT ${this.sending.heldSql}`,
      ...[taken.id, taken.version],
    );
    return count === 1 ? { ...taken, version: taken.version + 1n } : undefined;
  }

  /**
   * Applies an outcome to the row, and publishes its pause.
   *
   * @param taken the row as the worker took it, or stored it last; undefined if it could not take it
   * @param attempt undefined if the endpoint was not asked
   */
  settle(id: string, taken: SubscriptionRow | undefined, outcome: PushOutcome, attempt?: Outcome): Promise<void> {
    return this.prisma.transaction(async (tx) => {
      const [locked] = await tx.$queryRaw<{ now: Date }[]>`
        SELECT clock_timestamp() AS now FROM subscriptions WHERE id = ${id}::uuid FOR UPDATE`;
      if (!locked) return;
      const row = rowOf(await tx.subscription.findUniqueOrThrow({ where: { id } }));
      if (attempt) await this.attempts.record(tx, id, attempt);
      const changes = applyOutcome(row, taken ?? row, outcome, locked.now);
      if (changes.paused) {
        const event = { subject: `subscriptions/${id}`, data: { reason: changes.paused } };
        await this.feed.append(tx, { type: 'subscription.paused', ...event });
      }
      await tx.subscription.update({ where: { id }, data: { ...changes, version: row.version + 1n } });
    });
  }

  /**
   * Stores a delivered event. Only one statement, because it runs for each event.
   *
   * @param cursor up to which every event was delivered, or excluded by its types
   * @returns undefined if nothing was stored, because the row has changed or sending is held
   */
  async delivered(
    taken: SubscriptionRow,
    attempt: Outcome,
    cursor: string,
    next: keyof typeof NEXT,
  ): Promise<SubscriptionRow | undefined> {
    const moved = { ...taken, ...placeOf(cursor) };
    const isStored = await this.attempts.recordDelivered(moved, attempt, {
      ...{ name: `push-delivered-${next}`, due: NEXT[next], held: this.sending.heldSql },
    });
    return isStored ? { ...moved, version: taken.version + 1n, failures: 0, failingSince: null } : undefined;
  }
}
