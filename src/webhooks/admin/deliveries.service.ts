import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Audit } from '../../access/audit/audit.js';
import { Database } from '../../database/database.js';
import { PrismaService } from '../../database/prisma.service.js';
import { Problem } from '../../http/problem/problem.js';
import { BIGINT, decodeCursor, pageOf } from '../../http/request/page.js';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { WEBHOOK_INBOX_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import {
  type DeliveriesQuery,
  type DeliveryPageResponse,
  type DeliveryResponse,
  type RejectionPageResponse,
  type ReplayRequest,
  type ReplayResponse,
} from './deliveries.dto.js';

/** Maximum count, because health is read often. */
const MAX_COUNTED = 1_000;

/** Wrong signatures since the last genuine delivery that degrade health. Strangers may send a few. */
const MIN_SUSPICIOUS = 3;

/** A delivery without its body. */
type DeliveryRow = Omit<DeliveryResponse, 'error' | 'sentAt'> & { reason: string | null; sentAt: number };

/** SQL, because Prisma casts enum values from text, so that the planner could not use the partial index by state. */
const COLUMNS = `id::text AS id, event_type AS "eventType", state::text AS state, reason, attempts, repeats,
  sent_at::float8 AS "sentAt", secret_index AS "secretIndex", received_at AS "receivedAt",
  processed_at AS "processedAt", due_at AS "dueAt"`;

const SELECTED = `state = $1::delivery_state AND ($2::text IS NULL OR event_type = $2)
  AND ($3::timestamptz IS NULL OR received_at < $3) AND ($4::timestamptz IS NULL OR received_at >= $4)`;

const REOPEN = `UPDATE webhook_deliveries SET state = 'received', reason = NULL, attempts = 0, takes = 0, due_at = now()`;

/** The inbox for operators: list, replay and dismiss. */
@Injectable()
export class DeliveriesService {
  constructor(
    private readonly database: Database,
    private readonly prisma: PrismaService,
    private readonly notifier: QueueNotifier,
    private readonly audit: Audit,
  ) {}

  /** Newest first. Received and failed deliveries have a due date; the condition allows the index of those. */
  async list({ state, limit, cursor }: DeliveriesQuery): Promise<DeliveryPageResponse> {
    const [before] = decodeCursor<[string]>(cursor, 'bigint') ?? [];
    const rows = await this.rows(
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
    return this.one(id, `SELECT ${COLUMNS} FROM webhook_deliveries WHERE id = $1`);
  }

  /** Replays a delivery in any state. @throws {Problem} 404 `unknown-delivery` */
  async replay(id: string): Promise<DeliveryResponse> {
    const reopened = await this.database.transaction(async (tx) => {
      const delivery = await this.one(id, `${REOPEN} WHERE id = $1 RETURNING ${COLUMNS}`, tx);
      await this.audit.store(tx);
      return delivery;
    });
    this.notifier.notify(WEBHOOK_INBOX_QUEUE, 'replay');
    return reopened;
  }

  /** Ignores a delivery that was not understood. @throws {Problem} 404 `unknown-delivery`, 409 `not-waiting` */
  async dismiss(id: string): Promise<DeliveryResponse> {
    const where = { id: BIGINT.test(id) ? BigInt(id) : -1n, state: 'not_understood' } as const;
    await this.database.transaction(async (tx) => {
      const { webhookDelivery } = await this.prisma.in(tx);
      const { count } = await webhookDelivery.updateMany({ where, data: { state: 'ignored' } });
      if (count === 0) return;
      this.audit.about('delivery', id);
      await this.audit.store(tx);
    });
    const delivery = await this.find(id);
    if (delivery.state === 'ignored') return delivery;
    throw new Problem(409, 'not-waiting', 'Only a delivery in the state not-understood can be dismissed.');
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
      if (count === plan.count) return this.audit.store(tx);
      const detail = 'The selection changed since it was counted; count it again with dryRun.';
      throw new Problem(409, 'plan-changed', detail, { extensions: { planned: plan.count, count } });
    }, 'bulk');
    this.notifier.notify(WEBHOOK_INBOX_QUEUE, 'replay');
    return { dryRun: false, count: plan.count, plan };
  }

  /** Numbers of refused requests by minute and cause, newest minute first. */
  async rejections(limit: number, cursor: string | undefined): Promise<RejectionPageResponse> {
    const [time = '', cause] = decodeCursor<[string, string]>(cursor, 'time', 'string') ?? [];
    const minute = new Date(time);
    const rows = await this.prisma.webhookRejection.findMany({
      where: cause === undefined ? {} : { OR: [{ minute: { lt: minute } }, { minute, cause: { lt: cause } }] },
      orderBy: [{ minute: 'desc' }, { cause: 'desc' }],
      take: limit + 1,
    });
    return pageOf(rows, limit, (row) => [row.minute.toISOString(), row.cause]);
  }

  /** Degraded while genuine events that this version does not understand wait for an operator. */
  @HealthIndicator('webhook-events')
  async health(): Promise<Health> {
    const { rows } = await this.database.pool.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM
         (SELECT FROM webhook_deliveries WHERE state = 'not-understood' LIMIT ${MAX_COUNTED}) AS waiting`,
    );
    const notUnderstood = rows[0]?.count ?? 0;
    if (notUnderstood === 0) return { status: 'ok' };
    const count = notUnderstood === MAX_COUNTED ? `${MAX_COUNTED} or more` : String(notUnderstood);
    const reason = `Genuine webhooks that were not understood: ${count}. GET /v1/webhook-deliveries?state=not-understood says why; replay them after an upgrade, or dismiss them.`;
    return { status: 'degraded', reason, facts: { notUnderstood } };
  }

  /** Degraded if a secret may have been rotated on one side only: within an hour, and since the last genuine delivery. */
  @HealthIndicator('webhooks')
  async secretHealth(): Promise<Health> {
    const { rows } = await this.database.pool.query<{ wrong: number }>(
      `SELECT coalesce(sum(count), 0)::float8 AS wrong FROM webhook_rejections
       WHERE cause = 'wrong-signature' AND minute > now() - interval '1 hour'
         AND minute > coalesce((SELECT received_at FROM webhook_deliveries ORDER BY id DESC LIMIT 1), '-infinity')`,
    );
    const wrongSignatures = rows[0]?.wrong ?? 0;
    const facts = { wrongSignatures };
    if (wrongSignatures < MIN_SUSPICIOUS) return { status: 'ok', facts };
    const reason = `${wrongSignatures} requests with a wrong signature within an hour, and no genuine delivery since: if the platform sent them, add the secret that it signs with to PLATFORM_WEBHOOK_SECRET.`;
    return { status: 'degraded', reason, facts };
  }

  private async one(id: string, statement: string, tx?: PoolClient): Promise<DeliveryResponse> {
    const [row] = BIGINT.test(id) ? await this.rows(statement, [id], tx) : [];
    if (row) return this.shown(row);
    const detail = 'There is no webhook delivery of this id; GET /v1/webhook-deliveries lists them.';
    throw new Problem(404, 'unknown-delivery', detail);
  }

  private async rows(statement: string, values: unknown[], tx?: PoolClient): Promise<DeliveryRow[]> {
    return (await (tx ?? this.database.pool).query<DeliveryRow>(statement, values)).rows;
  }

  private shown({ reason, sentAt, ...row }: DeliveryRow): DeliveryResponse {
    this.audit.about('delivery', row.id);
    const error = reason === null ? null : { code: reason.split(' ', 1)[0] ?? '', message: reasonMessage(reason) };
    return { ...row, sentAt: new Date(sentAt), error };
  }
}

const MESSAGES: Record<string, string> = {
  'not-json': 'The body is not JSON in UTF-8; sending it again would not help.',
  'too-deep': 'The body nests too many levels, or has too many objects; sending it again would not help.',
  'not-an-object': 'The body is JSON but no object, so it names no event.',
  'no-event-type': 'The body has no eventType, so what happened is unknown.',
  'unknown-event-type': 'This eventType is not known here; replay the delivery after an upgrade that knows it.',
  'not-ours': 'The event is understood but concerns nothing that this service keeps.',
  'no-outcome':
    'The process ended during each of three attempts to process this delivery; find the cause, then replay it.',
  waiting: 'The event may belong to a request that has no answer yet; it is looked at again each second.',
  sealed: 'The stored body does not open; DATA_KEYS lacks the key that sealed it, or it is damaged.',
};

/** One sentence about a reason of the inbox: what is wrong and what to do. */
function reasonMessage(reason: string): string {
  const [code = '', pointer] = reason.split(' ');
  if (code === 'bad-field')
    return `The event lacks ${pointer}, or it is not what the platform states for this event type.`;
  return MESSAGES[code] ?? 'Its handler failed; the log says where, and POST …/replay tries again.';
}
