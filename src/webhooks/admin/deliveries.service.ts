import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Audit } from '../../audit/audit.js';
import { Database } from '../../database/database.js';
import { PrismaService } from '../../database/prisma.service.js';
import { Problem } from '../../http/problem/problem.js';
import { BIGINT, decodeCursor, pageOf } from '../../http/request/page.js';
import { WEBHOOK_INBOX_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { describeReason } from '../process/reasons.js';
import {
  type DeliveriesQuery,
  type DeliveryPageResponse,
  type DeliveryResponse,
  type ReplayRequest,
  type ReplayResponse,
} from './deliveries.dto.js';

/** A delivery without its body. */
type DeliveryRow = Omit<DeliveryResponse, 'error' | 'sentAt'> & { reason: string | null; sentAt: number };

/** SQL, because Prisma casts enum values from text, so that the planner could not use the partial index by state. */
const COLUMNS = `id::text AS id, event_type AS "eventType", subject, state::text AS state, reason, attempts, repeats,
  sent_at::float8 AS "sentAt", secret_index AS "secretIndex", received_at AS "receivedAt",
  processed_at AS "processedAt", due_at AS "dueAt"`;

const SELECTED = `state = $1::delivery_state AND ($2::text IS NULL OR event_type = $2)
  AND ($3::timestamptz IS NULL OR received_at < $3) AND ($4::timestamptz IS NULL OR received_at >= $4)`;

const REOPEN = `UPDATE webhook_deliveries SET state = 'received', reason = NULL, attempts = 0, takes = 0, due_at = now()`;

/** The inbox for operators: list, replay and dismiss. */
@Injectable()
export class DeliveriesService {
  constructor(
    private readonly prisma: PrismaService,
    private readonly database: Database,
    private readonly notifier: QueueNotifier,
    private readonly audit: Audit,
  ) {}

  /** Newest first. Received and failed deliveries have a due date; the condition allows the index of those. */
  async list({ state, limit, cursor }: DeliveriesQuery): Promise<DeliveryPageResponse> {
    const [before] = decodeCursor<[string]>(cursor, 'bigint') ?? [];
    const { rows } = await this.database.pool.query<DeliveryRow>(
      `SELECT ${COLUMNS} FROM webhook_deliveries
       WHERE ($1::delivery_state IS NULL OR state = $1) AND ($2::bigint IS NULL OR id < $2)
         AND ($1 IS NULL OR $1 NOT IN ('received', 'failed') OR due_at IS NOT NULL)
       ORDER BY webhook_deliveries.id DESC LIMIT $3`,
      [state ?? null, before ?? null, limit + 1],
    );
    return pageOf(
      rows,
      limit,
      ({ id }) => [id],
      (row) => this.shown(row),
    );
  }

  /** @throws {Problem} 404 `unknown-delivery` */
  async find(id: string): Promise<DeliveryResponse> {
    return known(await this.one(`SELECT ${COLUMNS} FROM webhook_deliveries WHERE id = $1`, id));
  }

  /** Replays a delivery in any state. @throws {Problem} 404 `unknown-delivery` */
  async replay(id: string): Promise<DeliveryResponse> {
    const reopened = known(await this.change(`${REOPEN} WHERE id = $1 RETURNING ${COLUMNS}`, id));
    this.notifier.notify(WEBHOOK_INBOX_QUEUE);
    return reopened;
  }

  /** Ignores a delivery that was not understood. @throws {Problem} 404 `unknown-delivery`, 409 `not-waiting` */
  async dismiss(id: string): Promise<DeliveryResponse> {
    const dismissed = await this.change(
      `UPDATE webhook_deliveries SET state = 'ignored'
       WHERE id = $1 AND state IN ('not-understood', 'ignored') RETURNING ${COLUMNS}`,
      id,
    );
    if (dismissed) return dismissed;
    await this.find(id);
    throw new Problem('not-waiting', 'Only a delivery in the state not-understood can be dismissed.');
  }

  /**
   * Counts a selection (`dryRun`), or replays exactly the counted deliveries: later arrivals have higher ids. A selection
   * may span years, so its transaction may take minutes.
   *
   * @throws {Problem} 409 `plan-changed` if the number differs; then nothing is replayed
   */
  async replayAll({ dryRun, plan, ...selection }: ReplayRequest): Promise<ReplayResponse> {
    const { state, eventType, receivedBefore, receivedSince } = selection;
    const values = [state, eventType ?? null, receivedBefore ?? null, receivedSince ?? null];
    if (dryRun || !plan) {
      const { rows } = await this.database.bulkPool.query<{ count: number; upToId: string }>(
        `SELECT count(*)::int AS count, coalesce(max(id), 0)::text AS "upToId" FROM webhook_deliveries WHERE ${SELECTED}`,
        values,
      );
      const counted = rows[0] ?? { count: 0, upToId: '0' };
      return { dryRun: true, count: counted.count, plan: counted };
    }
    await this.database.transaction(async (tx) => {
      const { rowCount: count } = await tx.query(`${REOPEN} WHERE ${SELECTED} AND id <= $5`, [...values, plan.upToId]);
      if (count === plan.count) return this.audit.store(await this.prisma.in(tx));
      const detail = 'The selection has changed since the dry run. Repeat the dry run.';
      throw new Problem('plan-changed', detail, { extensions: { planned: plan.count, count } });
    }, 'bulk');
    this.notifier.notify(WEBHOOK_INBOX_QUEUE);
    return { dryRun: false, count: plan.count, plan };
  }

  private change(statement: string, id: string): Promise<DeliveryResponse | undefined> {
    return this.database.transaction(async (tx) => {
      const changed = await this.one(statement, id, tx);
      if (changed) await this.audit.store(await this.prisma.in(tx));
      return changed;
    });
  }

  private async one(
    statement: string,
    id: string,
    sql: Pick<PoolClient, 'query'> = this.database.pool,
  ): Promise<DeliveryResponse | undefined> {
    const { rows } = await sql.query<DeliveryRow>(statement, [BIGINT.test(id) ? id : null]);
    return rows[0] && this.shown(rows[0]);
  }

  private shown({ reason, sentAt, ...row }: DeliveryRow): DeliveryResponse {
    this.audit.about('delivery', row.id);
    return { ...row, sentAt: new Date(sentAt), error: reason === null ? null : describeReason(reason) };
  }
}

function known(delivery: DeliveryResponse | undefined): DeliveryResponse {
  if (delivery) return delivery;
  throw new Problem('unknown-delivery', 'No webhook delivery has this id. GET /v1/webhook-deliveries lists them.');
}
