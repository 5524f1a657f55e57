import { Injectable } from '@nestjs/common';
import { Audit } from '../../audit/audit.js';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import { Problem } from '../../http/problem/problem.js';
import { BIGINT, decodeCursor, pageOf } from '../../http/request/page.js';
import { WorkQueues } from '../../queue/work/work-queues.js';
import { shownTime } from '../receive/verify-delivery.js';
import {
  type DeliveriesQuery,
  type DeliveryPageResponse,
  type DeliveryResponse,
  type DeliveryState,
  type ReplayRequest,
  type ReplayResponse,
} from './deliveries.dto.js';
import { describeReason } from './reasons.js';

const WITHOUT_BODY = { body: true } as const;

/** A delivery as it is stored, without its body. */
type Row = Omit<DeliveryResponse, 'id' | 'subject' | 'state' | 'sentAt' | 'error'> & {
  id: bigint;
  signature: Uint8Array;
  subject: string;
  state: string;
  sentAt: bigint;
  starts: number;
  handled: number;
  reason: string | null;
};

/** The states of pending deliveries. */
const PENDING: readonly DeliveryState[] = ['received', 'failed'];

/** The inbox for operators: list, replay and dismiss. */
@Injectable()
export class DeliveriesService {
  constructor(
    private readonly prisma: PrismaService,
    private readonly queues: WorkQueues,
    private readonly audit: Audit,
  ) {}

  /** Newest first. A pending delivery has a due date; the condition allows the index of those. */
  async list({ state, limit, cursor }: DeliveriesQuery): Promise<DeliveryPageResponse> {
    const [before] = decodeCursor<[string]>(cursor, 'bigint') ?? [];
    const rows = await this.prisma.webhookDelivery.findMany({
      omit: WITHOUT_BODY,
      where: {
        ...(state && { state }),
        ...(before && { id: { lt: BigInt(before) } }),
        ...(state && PENDING.includes(state) && { dueAt: { not: null } }),
      },
      orderBy: { id: 'desc' },
      take: limit + 1,
    });
    return pageOf(
      rows,
      limit,
      ({ id }) => [String(id)],
      (row) => this.shown(row),
    );
  }

  /** @throws {Problem} 404 `unknown-delivery` */
  async find(id: string): Promise<DeliveryResponse> {
    return this.shown(await this.known(id));
  }

  /** Replays a delivery in any state, and lets go those that it held back. @throws {Problem} 404 `unknown-delivery` */
  async replay(id: string): Promise<DeliveryResponse> {
    const replayed = await this.prisma.transaction(async (tx) => {
      const row = await this.known(id, tx);
      const data = await reopening(tx);
      const pending = { subject: row.subject, dueAt: { not: null } };
      await tx.webhookDelivery.updateMany({ where: pending, data: { dueAt: data.dueAt } });
      await this.audit.store(tx);
      return tx.webhookDelivery.update({ omit: WITHOUT_BODY, where: { id: row.id }, data });
    });
    await this.queues.of('webhooks').add(replayed.subject);
    return this.shown(replayed);
  }

  /** Ignores a delivery that was not understood. @throws {Problem} 404 `unknown-delivery`, 409 `not-waiting` */
  dismiss(id: string): Promise<DeliveryResponse> {
    return this.prisma.transaction(async (tx) => {
      const known = await this.known(id, tx);
      const where = { id: known.id, state: { in: ['not-understood', 'ignored'] } };
      const data = { state: 'ignored' };
      const [row] = await tx.webhookDelivery.updateManyAndReturn({ omit: WITHOUT_BODY, where, data });
      if (!row) throw new Problem('not-waiting', 'Only a delivery in the state not-understood can be dismissed.');
      await this.audit.store(tx);
      return this.shown(row);
    });
  }

  /**
   * Counts a selection (`dryRun`), or replays it if their number is still the same; later arrivals have higher ids. A
   * selection may span years, so its transaction may take minutes.
   *
   * @throws {Problem} 409 `plan-changed` if the number differs; then nothing is replayed
   */
  replayAll({ dryRun, plan, ...selection }: ReplayRequest): Promise<ReplayResponse> {
    const { state, eventType, receivedBefore: lt, receivedSince: gte } = selection;
    const where = { state, ...(eventType && { eventType }), receivedAt: { ...(lt && { lt }), ...(gte && { gte }) } };
    return this.prisma.transaction(async (tx) => {
      if (dryRun || !plan) {
        const { _count: count, _max: newest } = await tx.webhookDelivery.aggregate({
          where,
          _count: true,
          _max: { id: true },
        });
        return { dryRun: true, count, plan: { count, upToId: String(newest.id ?? 0) } };
      }
      const counted = { ...where, id: { lte: BigInt(plan.upToId) } };
      const { count } = await tx.webhookDelivery.updateMany({ where: counted, data: await reopening(tx) });
      if (count !== plan.count) {
        const detail = 'The selection has changed since the dry run. Repeat the dry run.';
        throw new Problem('plan-changed', detail, { extensions: { planned: plan.count, count } });
      }
      await this.audit.store(tx);
      return { dryRun: false, count, plan };
    }, 'bulk');
  }

  private async known(id: string, tx: Tx = this.prisma): Promise<Row> {
    const where = BIGINT.test(id) && { id: BigInt(id) };
    const row = where && (await tx.webhookDelivery.findUnique({ omit: WITHOUT_BODY, where }));
    if (row) {
      this.audit.about('delivery', id);
      return row;
    }
    throw new Problem('unknown-delivery', 'No webhook delivery has this id. GET /v1/webhook-deliveries lists them.');
  }

  private shown({ signature, starts: _, handled: __, reason, ...row }: Row): DeliveryResponse {
    const id = String(row.id);
    this.audit.about('delivery', id);
    const isAboutNothing = row.subject === Buffer.from(signature).toString('hex');
    return {
      ...row,
      id,
      state: row.state as DeliveryState,
      subject: isAboutNothing ? null : row.subject,
      sentAt: shownTime(row.sentAt),
      error: reason === null ? null : describeReason(reason),
    };
  }
}

/** Makes deliveries due, as if they had just been received. */
async function reopening(tx: Tx) {
  const [{ now }] = await tx.$queryRaw<[{ now: Date }]>`SELECT now()`;
  return { state: 'received', reason: null, attempts: 0, starts: 0, dueAt: now };
}
