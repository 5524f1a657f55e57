import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { DueLoop, DueLoopDeps } from '../../due-rows/due-loop.js';
import { DueRows, type DueTable, type Leased } from '../../due-rows/due-rows.js';
import { isHeld } from '../../due-rows/lease.js';
import type { FeedPageResponse } from '../../feed/feed.dto.js';
import { Feed } from '../../feed/feed.js';
import { isCursorGone, positionOf } from '../../feed/feed-cursor.js';
import { FeedReader } from '../../feed/feed-reader.js';
import type { Metrics } from '../../monitoring/metrics.js';
import { Sending } from '../../sending/sending.js';
import { Endpoint, PUSH_FAULTS, PUSH_TIMEOUT_MS, type PushAnswer } from './endpoint.js';
import { messageOf } from './message.js';
import { afterFailure, MAX_SUBSCRIPTIONS, type PauseReason } from './push-rules.js';
import { cursorOfRow, SUBSCRIPTION_COLUMNS, type SubscriptionRow, SubscriptionSeal } from './subscription-row.js';

/** Maximum events that one claim pushes. */
const PAGE = 100;

/** SQL of the time when a row without valid secrets is checked again, because a missing key may be set. */
const IN_FIVE_MINUTES = `clock_timestamp() + interval '5 minutes'`;

const NOW = 'clock_timestamp()';

/** Maximum time from the extension of a lease to the attempt that it covers. */
const BEGIN_WITHIN_MS = 5_000;

/** How long an attempt may take effect after its lease was extended. */
const EFFECT_MS = PUSH_TIMEOUT_MS + BEGIN_WITHIN_MS;

/** SQL assignment of a lease that covers the next attempt. */
const EXTEND = `lease_safe_at = clock_timestamp() + ${EFFECT_MS} * interval '1 millisecond'`;

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

/** Pushes the events of the feed to the endpoints of the EHR: to each one after the other, in their order. */
@Injectable()
export class PushLoop extends DueLoop<SubscriptionRow> {
  private readonly pushes: ReturnType<Metrics['counter']>;

  constructor(
    deps: DueLoopDeps,
    private readonly feed: Feed,
    private readonly reader: FeedReader,
    private readonly sending: Sending,
    private readonly endpoint: Endpoint,
    private readonly seal: SubscriptionSeal,
  ) {
    const table: DueTable = {
      name: 'subscriptions',
      columns: SUBSCRIPTION_COLUMNS,
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
      new DueRows<SubscriptionRow>(table, deps.database, deps.worker),
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
    const { rowCount } = await this.deps.database.pool.query(
      `UPDATE subscriptions SET due_at = now() WHERE ${IS_BEHIND}`,
    );
    if (rowCount) this.trigger();
  };

  protected override async work(claim: Leased<SubscriptionRow>): Promise<void> {
    const { row } = claim;
    // A caller may have resumed it since the claim.
    if (row.paused !== null) return this.settle(claim, dueUnlessPaused(NOW));
    const secrets = this.seal.secretsOf(row);
    if (!secrets) return this.settle(claim, dueUnlessPaused(IN_FIVE_MINUTES));
    const page = await this.read(row);
    if (!page) return this.expire(claim);
    // After the events are read, so that none of a restored database is pushed.
    if (page.items.length > 0 && !(await this.mayBegin(claim))) return this.settle(claim, dueUnlessPaused(NOW));
    let reached = cursorOfRow(row);
    for (const event of page.items) {
      if (!this.deps.worker.hasFreshHeartbeat()) return this.settle(claim, dueUnlessPaused(NOW));
      const answer = await this.endpoint.deliver({ url: row.url, secrets }, messageOf(event), this.shutdown.signal);
      if (!answer) return this.settle(claim, dueUnlessPaused(NOW));
      this.pushes.inc({ outcome: answer.fault ?? 'delivered' });
      if (answer.fault) return this.failed(claim, answer);
      if (event === page.items.at(-1)) return this.rest(claim, reached, page, answer);
      if (!(await this.deliver(claim, reached, event.cursor, answer))) return;
      reached = event.cursor;
    }
    await this.rest(claim, reached, page);
  }

  /** Extends the lease for the first attempt, unless sending is held or a caller changed the subscription. */
  private async mayBegin({ row, lease }: Leased<SubscriptionRow>): Promise<boolean> {
    if (!(await this.sending.isAllowed())) return false;
    const extendingMs = this.deps.clock.monotonicMs();
    const { rowCount } = await this.deps.database.pool.query(
      `UPDATE subscriptions SET ${EXTEND} WHERE id = $1 AND ${isHeld('$2', '$3')} AND version = $4`,
      [lease.key, lease.owner, lease.no, row.version],
    );
    return rowCount === 1 && !this.isLate(extendingMs);
  }

  /** The next events; undefined if the feed no longer has all of them. */
  private async read(row: SubscriptionRow): Promise<FeedPageResponse | undefined> {
    try {
      return await this.reader.read(cursorOfRow(row), PAGE, { types: row.types ?? undefined });
    } catch (error) {
      if (isCursorGone(error)) return undefined;
      throw error;
    }
  }

  /**
   * Stores that the endpoint took an event, and extends the lease for the next one.
   *
   * @param from the cursor that this process stored last
   * @returns false if the work ends: a caller changed the subscription, sending is held, or the lease is lost or short
   */
  private async deliver(
    claim: Leased<SubscriptionRow>,
    from: string,
    to: string,
    { status }: PushAnswer,
  ): Promise<boolean> {
    const { row, lease } = claim;
    const extendingMs = this.deps.clock.monotonicMs();
    const { rows } = await this.deps.database.pool.query<{ isOver: boolean }>(
      `UPDATE subscriptions SET ${MOVE}, ${delivered('$8')}, ${EXTEND} WHERE id = $9 AND ${isHeld('$10', '$11')}
       RETURNING version <> $5 OR (epoch, position) <> ($3::bigint, $4::bigint) OR ${this.sending.heldSql} AS "isOver"`,
      [...moved(row, from, to), status, lease.key, lease.owner, lease.no],
    );
    const [stored] = rows;
    if (!stored) return false;
    const mayContinue = !stored.isOver && !this.isLate(extendingMs);
    if (!mayContinue) await this.settle(claim, dueUnlessPaused(NOW));
    return mayContinue;
  }

  /** True if the lease no longer covers a whole attempt, because the database took long. */
  private isLate(extendingMs: number): boolean {
    return this.deps.clock.monotonicMs() - extendingMs > BEGIN_WITHIN_MS;
  }

  /**
   * Stores that every event of a page is considered, and releases the lease. The subscription is due again if there are
   * more, or if a caller changed it.
   *
   * @param answer to the last event of the page, which is stored, too
   */
  private async rest(
    claim: Leased<SubscriptionRow>,
    from: string,
    page: FeedPageResponse,
    answer?: PushAnswer,
  ): Promise<void> {
    const due = dueUnlessPaused('CASE WHEN version <> $5 OR $8 THEN clock_timestamp() END');
    const values = [...moved(claim.row, from, page.cursor), page.nextCursor !== null];
    if (answer) await this.settle(claim, `${MOVE}, ${due}, ${delivered('$9')}`, [...values, answer.status]);
    else await this.settle(claim, `${MOVE}, ${due}`, values);
    // An event may have come after the page was read, when the subscription did not rest yet.
    this.deps.poller.runNow(NEW_EVENTS);
  }

  /** Stores a failed attempt, unless a caller has changed the subscription since its claim. */
  private async failed(claim: Leased<SubscriptionRow>, answer: PushAnswer): Promise<void> {
    await this.deps.database.transaction(async (tx) => {
      const row = await this.due.lock(tx, claim.lease);
      if (!row) return;
      const set = `answered_at = clock_timestamp(), answer_status = $1, answer_fault = $2`;
      const values = [answer.status, answer.fault];
      if (row.version !== claim.row.version) {
        await this.due.settle(tx, claim.lease, { set: `${set}, ${dueUnlessPaused(NOW)}`, values });
        return;
      }
      const { failures, failingSince, now } = row;
      const next = afterFailure({
        failures,
        failingSince,
        now,
        status: answer.status,
        retryAfterMs: answer.retryAfterMs,
      });
      const counted = `${set}, failures = failures + 1, failing_since = coalesce(failing_since, clock_timestamp())`;
      if (next.paused !== null) return this.storePause(tx, claim, next.paused, counted, values);
      const due = `due_at = clock_timestamp() + $3 * interval '1 millisecond'`;
      await this.due.settle(tx, claim.lease, { set: `${counted}, ${due}`, values: [...values, next.waitMs] });
    });
  }

  /** Stores that the feed no longer has the next event, unless a caller has changed the subscription since its claim. */
  private async expire(claim: Leased<SubscriptionRow>): Promise<void> {
    await this.deps.database.transaction(async (tx) => {
      const row = await this.due.lock(tx, claim.lease);
      if (!row) return;
      if (row.version === claim.row.version)
        return this.storePause(tx, claim, 'cursor-expired', 'failures = 0, failing_since = NULL', []);
      await this.due.settle(tx, claim.lease, { set: dueUnlessPaused(NOW), values: [] });
    });
  }

  /** @param set SQL assignments with `values` as their parameters */
  private async storePause(
    tx: PoolClient,
    { lease }: Leased<SubscriptionRow>,
    reason: PauseReason,
    set: string,
    values: readonly unknown[],
  ): Promise<void> {
    const paused = `paused = $${values.length + 1}, paused_at = clock_timestamp(), due_at = NULL`;
    await this.due.settle(tx, lease, { set: `${set}, ${paused}`, values: [...values, reason] });
    await this.feed.append(tx, {
      type: 'subscription.paused',
      subject: `subscriptions/${lease.key}`,
      data: { reason },
    });
  }

  private async settle(
    { lease }: Leased<SubscriptionRow>,
    set: string,
    values: readonly unknown[] = [],
  ): Promise<void> {
    await this.due.settle(this.deps.database.pool, lease, { set, values });
  }
}

/**
 * SQL condition: what was pushed or passed over counts. It does not if a caller has chosen another position, or another
 * address or types, which get the events again.
 */
const COUNTS = `(epoch, position) = ($1::bigint, $2::bigint) AND url = $6 AND types IS NOT DISTINCT FROM $7::text[]`;

/** SQL assignments of the position. Their values are `moved`. */
const MOVE = `epoch = CASE WHEN ${COUNTS} THEN $3::bigint ELSE epoch END,
  position = CASE WHEN ${COUNTS} THEN $4::bigint ELSE position END`;

/** The first seven values of a statement that moves a subscription: two positions, and its row at the claim. */
function moved({ version, url, types }: SubscriptionRow, from: string, to: string): unknown[] {
  const [before, after] = [positionOf(from), positionOf(to)];
  return [before?.epoch, before?.number, after?.epoch, after?.number, version, url, types];
}

/** SQL assignments after a 2xx. @param status parameter with it */
const delivered = (status: string): string =>
  `failures = 0, failing_since = NULL, answered_at = clock_timestamp(), answer_status = ${status}, answer_fault = NULL,
   delivered_at = clock_timestamp()`;

/** SQL assignment of the next due time. @param due SQL */
const dueUnlessPaused = (due: string): string => `due_at = CASE WHEN paused IS NULL THEN ${due} END`;
