import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';

export const DELIVERY_STATES = ['received', 'processed', 'ignored', 'not-understood', 'failed', 'dead'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** A delivery without its body. */
export interface DeliveryRow {
  id: string;
  eventType: string | null;
  state: DeliveryState;
  reason: string | null;
  attempts: number;
  repeats: number;
  /** The timestamp header, milliseconds since the Unix epoch. */
  sentAt: string;
  secretIndex: number;
  receivedAt: Date;
  processedAt: Date | null;
  dueAt: Date | null;
}

/** Which deliveries to replay. */
export interface Selection {
  state: DeliveryState;
  eventType?: string;
  /** Exclusive. */
  receivedBefore?: Date;
  /** Inclusive. */
  receivedSince?: Date;
}

/** What a selection held when it was counted; later arrivals have higher ids. */
export interface ReplayPlan {
  count: number;
  /** The highest id that was counted; `0` when there was none. */
  upToId: string;
}

const COLUMNS = `id::text AS id, event_type AS "eventType", state::text AS state, reason, attempts, repeats,
  sent_at::text AS "sentAt", secret_index AS "secretIndex", received_at AS "receivedAt",
  processed_at AS "processedAt", due_at AS "dueAt"`;

const REOPEN = "state = 'received', reason = NULL, attempts = 0, due_at = now()";

const SELECTED = `state = $1::delivery_state AND ($2::text IS NULL OR event_type = $2)
  AND ($3::timestamptz IS NULL OR received_at < $3) AND ($4::timestamptz IS NULL OR received_at >= $4)`;

const selected = (selection: Selection): unknown[] => [
  selection.state,
  selection.eventType ?? null,
  selection.receivedBefore ?? null,
  selection.receivedSince ?? null,
];

/** The inbox as an operator sees it. */
@Injectable()
export class DeliveriesRepository {
  constructor(private readonly database: Database) {}

  /**
   * The newest first. What is received or failed has a due date: saying so lets the index of those be used.
   *
   * @param beforeId the id where the page before ended
   */
  async list(state: DeliveryState | undefined, limit: number, beforeId: string | undefined): Promise<DeliveryRow[]> {
    const { rows } = await this.database.pool.query<DeliveryRow>(
      `SELECT ${COLUMNS} FROM webhook_deliveries
       WHERE ($1::delivery_state IS NULL OR state = $1) AND ($2::bigint IS NULL OR id < $2)
         AND ($1 IS NULL OR $1 NOT IN ('received', 'failed') OR due_at IS NOT NULL)
       ORDER BY webhook_deliveries.id DESC LIMIT $3`,
      [state ?? null, beforeId ?? null, limit],
    );
    return rows;
  }

  async find(id: string): Promise<DeliveryRow | undefined> {
    const sql = `SELECT ${COLUMNS} FROM webhook_deliveries WHERE id = $1`;
    return (await this.database.pool.query<DeliveryRow>(sql, [id])).rows[0];
  }

  /** Makes a delivery due again, whatever became of it. @returns undefined when there is none of this id */
  async replay(id: string): Promise<DeliveryRow | undefined> {
    const sql = `UPDATE webhook_deliveries SET ${REOPEN} WHERE id = $1 RETURNING ${COLUMNS}`;
    return (await this.database.pool.query<DeliveryRow>(sql, [id])).rows[0];
  }

  /** Ends the wait of a delivery that was not understood. @returns undefined when there is none of this id that waits */
  async dismiss(id: string): Promise<DeliveryRow | undefined> {
    const sql = `UPDATE webhook_deliveries SET state = 'ignored' WHERE id = $1 AND state = 'not-understood' RETURNING ${COLUMNS}`;
    return (await this.database.pool.query<DeliveryRow>(sql, [id])).rows[0];
  }

  /** @param most more are not counted */
  async countNotUnderstood(most: number): Promise<number> {
    const { rows } = await this.database.pool.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM
         (SELECT FROM webhook_deliveries WHERE state = 'not-understood' LIMIT $1) AS waiting`,
      [most],
    );
    return rows[0]?.count ?? 0;
  }

  /** Counts a selection. */
  async plan(selection: Selection): Promise<ReplayPlan> {
    const { rows } = await this.database.pool.query<ReplayPlan>(
      `SELECT count(*)::int AS count, coalesce(max(id), 0)::text AS "upToId" FROM webhook_deliveries WHERE ${SELECTED}`,
      selected(selection),
    );
    return rows[0] ?? { count: 0, upToId: '0' };
  }

  /**
   * Makes the deliveries of a selection due again if they are still exactly as many as were counted.
   *
   * @returns how many there are now; they were replayed only when that is the planned count
   */
  replayAll(selection: Selection, plan: ReplayPlan): Promise<number> {
    return this.database.transaction(async (tx) => {
      const { rows } = await tx.query<{ id: string }>(
        `SELECT id FROM webhook_deliveries WHERE ${SELECTED} AND id <= $5 ORDER BY id FOR UPDATE`,
        [...selected(selection), plan.upToId],
      );
      const ids = rows.map(({ id }) => id);
      const isSame = ids.length === plan.count;
      if (isSame) await tx.query(`UPDATE webhook_deliveries SET ${REOPEN} WHERE id = ANY($1::bigint[])`, [ids]);
      return ids.length;
    });
  }
}

const MESSAGES: Record<string, string> = {
  'not-json': 'The body is not JSON in UTF-8; sending it again would not help.',
  'not-an-object': 'The body is JSON but no object, so it names no event.',
  'no-event-type': 'The body has no eventType, so what happened is unknown.',
  'unknown-event-type': 'This eventType is not known here; replay the delivery after an upgrade that knows it.',
  'not-ours': 'The event is understood but concerns nothing that this service keeps.',
  'no-outcome': 'The process ended while it worked on this delivery; it is tried again by itself, alone.',
  sealed: 'The stored body does not open; DATA_KEYS lacks the key that sealed it, or it is damaged.',
};

/** One sentence about a reason of the inbox: what is wrong and what to do. */
export function reasonMessage(reason: string): string {
  const [code = '', pointer] = reason.split(' ');
  if (code === 'bad-field')
    return `The event lacks ${pointer}, or it is not what the platform states for this event type.`;
  return MESSAGES[code] ?? 'Its handler failed; the log says where, and POST …/replay tries again.';
}
