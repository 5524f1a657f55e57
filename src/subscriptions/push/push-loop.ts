import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { PrismaService } from '../../database/prisma.service.js';
import { type DueColumns, DueLoop, DueLoopDeps } from '../../due-rows/due-loop.js';
import { DueRows, type DueTable, type Leased } from '../../due-rows/due-rows.js';
import { RELEASED, safeAtOf } from '../../due-rows/lease.js';
import type { FeedPageResponse } from '../../feed/feed.dto.js';
import { Feed } from '../../feed/feed.js';
import { isCursorGone } from '../../feed/feed-cursor.js';
import { FeedReader } from '../../feed/feed-reader.js';
import type { Metrics } from '../../monitoring/metrics.js';
import { Sending } from '../../sending/sending.js';
import { Endpoint, PUSH_FAULTS, PUSH_TIMEOUT_MS, type PushAnswer } from './endpoint.js';
import { messageOf } from './message.js';
import { afterFailure, MAX_SUBSCRIPTIONS, type PauseReason } from './push-rules.js';
import { cursorOfRow, placeOf, rowOf, type SubscriptionRow, SubscriptionSeal, typesOf } from './subscription-row.js';

/** Maximum events that one claim pushes. */
const PAGE = 100;

/** Time until a row without valid secrets is checked again, because a missing key may be set. */
const RECHECK_MS = 5 * 60_000;

/** Maximum time from the extension of a lease to the attempt that it covers. */
const BEGIN_WITHIN_MS = 5_000;

/** How long an attempt may take effect after its lease was extended. */
const EFFECT_MS = PUSH_TIMEOUT_MS + BEGIN_WITHIN_MS;

/** The name of the loop. */
export const PUSHES = 'subscriptions';

/** The name of the poll that makes a subscription due for new events. */
export const NEW_EVENTS = 'events to push';

/** SQL condition: a resting subscription is behind the feed. Each part reads one row of an index (no EXISTS: it drops ORDER BY). */
const IS_BEHIND = `paused IS NULL AND due_at IS NULL
  AND (position < (SELECT coalesce(max(cursor), 0) FROM feed_events)
    OR epoch <> (SELECT coalesce(max(epoch), 1) FROM feed_epochs)
    OR (SELECT id FROM feed_events WHERE cursor IS NULL ORDER BY id LIMIT 1) IS NOT NULL)`;

const OUTCOMES = ['delivered', ...PUSH_FAULTS] as const;

/** A leased subscription, as it was read or stored last. */
type Claim = Leased<SubscriptionRow>;

type Changes = Partial<SubscriptionRow>;

/** Decides what to change. It may run twice. */
type Change = (old: SubscriptionRow, now: Date, isHeld: boolean) => Changes;

/** Pushes the events of the feed to the endpoints of the EHR: to each one after the other, in their order. */
@Injectable()
export class PushLoop extends DueLoop<DueColumns> {
  private readonly pushes: ReturnType<Metrics['counter']>;

  constructor(
    private readonly prisma: PrismaService,
    deps: DueLoopDeps,
    private readonly feed: Feed,
    private readonly reader: FeedReader,
    private readonly sending: Sending,
    private readonly endpoint: Endpoint,
    private readonly seal: SubscriptionSeal,
  ) {
    const table: DueTable = {
      name: 'subscriptions',
      columns: 'failures, due_at AS "dueAt"',
      key: 'id',
      lanes: [{ lane: 0 }],
      effectMs: EFFECT_MS,
      held: sending.heldSql,
    };
    super(
      {
        name: PUSHES,
        concurrency: MAX_SUBSCRIPTIONS,
        isConfigured: () => true,
      },
      new DueRows<DueColumns>(table, deps.database, deps.worker),
      deps,
    );
    const help = 'Attempts to push an event to an endpoint of the EHR by outcome';
    const known = OUTCOMES.map((outcome) => ({ outcome }));
    this.pushes = deps.metrics.counter('subscription_pushes_total', help, ['outcome'], known);
  }

  /** For the poller: due while a subscription rests that has events to consider. */
  readonly newEventsSince = (): string => `(SELECT clock_timestamp() FROM subscriptions WHERE ${IS_BEHIND} LIMIT 1)`;

  /** Makes resting subscriptions due that have events to consider. */
  readonly noticeEvents = async (): Promise<void> => {
    // Truncated, because the column rounds to milliseconds, and a row that is due in half a one is not claimed.
    const set = `UPDATE subscriptions SET due_at = date_trunc('milliseconds', clock_timestamp()) WHERE ${IS_BEHIND}`;
    if ((await this.prisma.$executeRawUnsafe(set)) > 0) this.trigger();
  };

  protected override async work({ lease }: Leased<DueColumns>): Promise<void> {
    const stored = await this.prisma.subscription.findUnique({ where: { id: lease.key } });
    if (!stored) return;
    const row = rowOf(stored);
    let claim: Claim | undefined = { row, lease };
    // A caller may have resumed it since it was read.
    if (row.paused !== null) return this.settle(claim, dueAt);
    const secrets = this.seal.secretsOf(row);
    if (!secrets) return this.settle(claim, (old, now) => dueAt(old, later(now, RECHECK_MS)));
    const page = await this.read(row);
    if (!page) return this.expire(claim);
    if (page.items.length > 0) {
      // After the events are read, so that none of a restored database is pushed.
      if (!(await this.sending.isAllowed())) return this.settle(claim, dueAt);
      claim = await this.extend(claim);
    }
    for (const event of page.items) {
      if (!claim) return;
      if (!this.deps.worker.hasFreshHeartbeat()) return this.settle(claim, dueAt);
      const answer = await this.endpoint.deliver({ url: row.url, secrets }, messageOf(event), this.shutdown.signal);
      if (!answer) return this.settle(claim, dueAt);
      this.pushes.inc({ outcome: answer.fault ?? 'delivered' });
      if (answer.fault) return this.failed(claim, answer);
      if (event === page.items.at(-1)) return this.rest(claim, page, answer);
      claim = await this.extend(claim, event.cursor, answer);
    }
    if (claim) await this.rest(claim, page);
  }

  /** The next events; undefined if the feed no longer has all of them. */
  private async read(row: SubscriptionRow): Promise<FeedPageResponse | undefined> {
    try {
      return await this.reader.read(cursorOfRow(row), PAGE, { types: typesOf(row) });
    } catch (error) {
      if (isCursorGone(error)) return undefined;
      throw error;
    }
  }

  /**
   * Extends the lease for the next attempt, and stores that the endpoint took an event.
   *
   * @returns undefined if the work ends: a caller changed the subscription, sending is held, or the lease is lost, or too
   *   short for an attempt because the database took long
   */
  private async extend(claim: Claim, cursor = cursorOfRow(claim.row), answer?: PushAnswer): Promise<Claim | undefined> {
    const extendingMs = this.deps.clock.monotonicMs();
    const stored = answer && (await this.storeDelivered(claim, cursor, answer));
    const row =
      stored ??
      (await this.store(claim, (old, now, isHeld) => ({
        ...moved(old, claim.row, cursor),
        ...(answer && delivered(now, answer)),
        ...(isHeld || old.version !== claim.row.version
          ? { ...dueAt(old, now), ...RELEASED }
          : { leaseSafeAt: safeAtOf(now, EFFECT_MS) }),
      })));
    if (!row?.leaseOwner) return undefined;
    const extended = { ...claim, row };
    if (this.deps.clock.monotonicMs() - extendingMs <= BEGIN_WITHIN_MS) return extended;
    await this.settle(extended, dueAt);
    return undefined;
  }

  /**
   * Stores a delivered event and extends the lease, in one statement, because it runs for each event.
   *
   * @returns undefined if nothing was stored, because the row is not as it was stored last, or sending is held
   */
  private async storeDelivered({ row, lease }: Claim, cursor: string, { status }: PushAnswer) {
    const place = placeOf(cursor);
    const count = await this.prisma.$executeRawUnsafe(
      `UPDATE subscriptions SET epoch = $1::bigint, position = $2::bigint, failures = 0, failing_since = NULL, answer_fault = NULL,
         answer_status = $3::int, answered_at = now(), delivered_at = now(), lease_safe_at = now() + $4::int * interval '1 ms'
       WHERE id = $5::uuid AND lease_owner = $6::uuid AND lease_no = $7::int AND version = $8::int AND NOT ${this.sending.heldSql}`,
      ...[place.epoch, place.position, status, EFFECT_MS, lease.key, lease.owner, lease.no, row.version],
    );
    return count === 1 ? { ...row, ...place, failures: 0, failingSince: null } : undefined;
  }

  /**
   * Stores that every event of a page is considered. The subscription is due again if there are more, or if a caller changed it.
   *
   * @param answer to the last event of the page, which is stored, too
   */
  private async rest(claim: Claim, page: FeedPageResponse, answer?: PushAnswer): Promise<void> {
    await this.settle(claim, (old, now) => ({
      ...moved(old, claim.row, page.cursor),
      ...(answer && delivered(now, answer)),
      ...dueAt(old, old.version !== claim.row.version || page.nextCursor !== null ? now : null),
    }));
    // An event may have come after the page was read, when the subscription did not rest yet.
    this.deps.poller.runNow(NEW_EVENTS);
  }

  /** Stores a failed attempt, unless a caller has changed the subscription since its claim. */
  private failed(claim: Claim, { status, fault, retryAfterMs }: PushAnswer): Promise<void> {
    return this.settle(claim, (old, now) => {
      const answered = { answeredAt: now, answerStatus: status, answerFault: fault };
      if (old.version !== claim.row.version) return { ...answered, ...dueAt(old, now) };
      const { failures, failingSince } = old;
      const next = afterFailure({ failures, failingSince, status, retryAfterMs, now });
      return {
        ...answered,
        failures: failures + 1,
        failingSince: failingSince ?? now,
        ...(next.paused === null ? { dueAt: later(now, next.waitMs) } : pausedAt(now, next.paused)),
      };
    });
  }

  /** Stores that the feed no longer has the next event, unless a caller has changed the subscription since its claim. */
  private expire(claim: Claim): Promise<void> {
    return this.settle(claim, (old, now) =>
      old.version === claim.row.version
        ? { failures: 0, failingSince: null, ...pausedAt(now, 'cursor-expired') }
        : dueAt(old, now),
    );
  }

  /** Changes the row and releases its lease. */
  private async settle(claim: Claim, change: Change): Promise<void> {
    await this.store(claim, (...args) => ({ ...change(...args), ...RELEASED }));
  }

  /** Changes the row, and publishes its pause. @returns undefined if the lease is lost, so that nothing was stored */
  private async store({ row, lease }: Claim, change: Change): Promise<SubscriptionRow | undefined> {
    const where = { id: lease.key };
    const read = `SELECT clock_timestamp() AS now, ${this.sending.heldSql} AS "isHeld"`;
    const [{ now, isHeld }] = await this.prisma.$queryRawUnsafe<[{ now: Date; isHeld: boolean }]>(read);
    const changes = change(row, now, isHeld);
    if (!changes.paused) {
      // Without a lock, because it happens for each event. Every change of a caller raises the version.
      const unchanged = { ...where, leaseOwner: lease.owner, leaseNo: lease.no, version: row.version };
      const { count } = await this.prisma.subscription.updateMany({ where: unchanged, data: changes });
      if (count === 1) return { ...row, ...changes };
    }
    return this.prisma.transaction(async (tx) => {
      const locked = await this.due.lock(this.prisma.sql(tx), lease);
      if (!locked) return undefined;
      const data = change(rowOf(await tx.subscription.findUniqueOrThrow({ where })), locked.now, isHeld);
      if (data.paused) {
        const event = { subject: `subscriptions/${lease.key}`, data: { reason: data.paused } };
        await this.feed.append(tx, { type: 'subscription.paused', ...event });
      }
      return rowOf(await tx.subscription.update({ where, data }));
    });
  }
}

/**
 * Moves a row to a cursor, because the events up to it were pushed or passed over. They do not count if a caller has chosen
 * another position, or another address or types, which get the events again.
 */
function moved(old: SubscriptionRow, { url, types, epoch, position }: SubscriptionRow, cursor: string): Changes {
  const counts = isDeepStrictEqual([old.url, old.types, old.epoch, old.position], [url, types, epoch, position]);
  return counts ? placeOf(cursor) : {};
}

const delivered = (now: Date, { status }: PushAnswer): Changes => ({
  ...{ failures: 0, failingSince: null, deliveredAt: now },
  ...{ answeredAt: now, answerStatus: status, answerFault: null },
});

const pausedAt = (now: Date, paused: PauseReason): Changes => ({ paused, pausedAt: now, dueAt: null });

/** The next due time of a row, unless it is paused. */
const dueAt = ({ paused }: SubscriptionRow, time: Date | null): Changes => ({ dueAt: paused === null ? time : null });

const later = (now: Date, ms: number): Date => new Date(now.getTime() + ms);
