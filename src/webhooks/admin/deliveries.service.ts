import { Injectable, type PipeTransform } from '@nestjs/common';
import { Problem } from '../../http/problem/problem.js';
import { decodeCursor, type Page, pageOf } from '../../http/request/page.js';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { WEBHOOK_INBOX_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import {
  DeliveriesRepository,
  type DeliveryRow,
  type DeliveryState,
  type ReplayPlan,
  type Selection,
} from './deliveries.repository.js';

/** More than these are not counted: health is asked often. */
const MOST_COUNTED = 1_000;

/** What operators do with the inbox: look, replay and dismiss. */
@Injectable()
export class DeliveriesService {
  constructor(
    private readonly repository: DeliveriesRepository,
    private readonly notifier: QueueNotifier,
  ) {}

  /** The newest first. @throws {Problem} 400 `bad-cursor` */
  async list(state: DeliveryState | undefined, limit: number, cursor: string | undefined): Promise<Page<DeliveryRow>> {
    const [before] = decodeCursor<[string]>(cursor, 'bigint') ?? [];
    const rows = await this.repository.list(state, limit + 1, before);
    return pageOf(rows, limit, (row) => [row.id]);
  }

  /** @throws {Problem} 404 `unknown-delivery` */
  async find(id: string): Promise<DeliveryRow> {
    const row = await this.repository.find(id);
    if (!row) throw unknownDelivery();
    return row;
  }

  /** Has a delivery processed again. @throws {Problem} 404 `unknown-delivery` */
  async replay(id: string): Promise<DeliveryRow> {
    const row = await this.repository.replay(id);
    if (!row) throw unknownDelivery();
    this.notifier.notify(WEBHOOK_INBOX_QUEUE, 'replay');
    return row;
  }

  /**
   * Ends the wait of a delivery that was not understood.
   *
   * @throws {Problem} 404 `unknown-delivery`, or 409 `not-waiting` when it was not among those
   */
  async dismiss(id: string): Promise<DeliveryRow> {
    const dismissed = await this.repository.dismiss(id);
    if (dismissed) return dismissed;
    const row = await this.find(id);
    if (row.state === 'ignored') return row;
    throw new Problem(409, 'not-waiting', 'Only a delivery in the state not-understood can be dismissed.');
  }

  /** Counts what a replay would touch. */
  plan(selection: Selection): Promise<ReplayPlan> {
    return this.repository.plan(selection);
  }

  /**
   * Has exactly the counted deliveries processed again.
   *
   * @param plan of the same selection
   * @throws {Problem} 409 `plan-changed` when they are no longer as many; nothing is replayed then
   */
  async replayAll(selection: Selection, plan: ReplayPlan): Promise<void> {
    const count = await this.repository.replayAll(selection, plan);
    if (count !== plan.count) {
      const detail = 'The selection changed since it was counted; count it again with dryRun.';
      throw new Problem(409, 'plan-changed', detail, { extensions: { planned: plan.count, count } });
    }
    this.notifier.notify(WEBHOOK_INBOX_QUEUE, 'replay');
  }

  /** Genuine events that this version can't act on wait for an operator: nothing else shows them. */
  @HealthIndicator('webhook-events')
  async health(): Promise<Health> {
    const notUnderstood = await this.repository.countNotUnderstood(MOST_COUNTED);
    if (notUnderstood === 0) return { status: 'ok' };
    const count = notUnderstood === MOST_COUNTED ? `${MOST_COUNTED} or more` : String(notUnderstood);
    const reason = `Genuine webhooks that were not understood: ${count}. GET /v1/webhook-deliveries?state=not-understood says why; replay them after an upgrade, or dismiss them.`;
    return { status: 'degraded', reason, facts: { notUnderstood } };
  }
}

/** An id of the inbox; what can't be one is not found. */
@Injectable()
export class DeliveryIdPipe implements PipeTransform<string, string> {
  transform(value: string): string {
    if (!/^\d{1,18}$/.test(value)) throw unknownDelivery();
    return value;
  }
}

function unknownDelivery(): Problem {
  const detail = 'There is no webhook delivery of this id; GET /v1/webhook-deliveries lists them.';
  return new Problem(404, 'unknown-delivery', detail);
}
