import { Injectable } from '@nestjs/common';
import { Problem } from '../../http/problem/problem.js';
import { decodeCursor, type Page, pageOf } from '../../http/request/page.js';
import { WEBHOOK_INBOX_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import {
  DeliveriesRepository,
  type DeliveryRow,
  type DeliveryState,
  type ReplayPlan,
  type Selection,
} from './deliveries.repository.js';

/** What operators do with the inbox: look, and replay. */
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
    return pageOf(
      rows,
      limit,
      (row) => [row.id],
      (row) => row,
    );
  }

  /** @throws {Problem} 404 */
  async find(id: string): Promise<DeliveryRow> {
    const row = await this.repository.find(id);
    if (!row) throw unknownDelivery();
    return row;
  }

  /** Has a delivery processed again. @throws {Problem} 404 */
  async replay(id: string): Promise<DeliveryRow> {
    const row = await this.repository.replay(id);
    if (!row) throw unknownDelivery();
    this.notifier.notify(WEBHOOK_INBOX_QUEUE, 'replay');
    return row;
  }

  /**
   * Somebody looked at a delivery that was not understood, and nothing is to become of it.
   *
   * @throws {Problem} 404, or 409 `not-waiting` when it was not among those
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
  async replayAll(selection: Selection, plan: ReplayPlan): Promise<number> {
    const count = await this.repository.replayAll(selection, plan);
    if (count !== plan.count) {
      throw new Problem(
        409,
        'plan-changed',
        'The selection changed since it was counted; count it again with dryRun.',
        {
          extensions: { planned: plan.count, count },
        },
      );
    }
    this.notifier.notify(WEBHOOK_INBOX_QUEUE, 'replay');
    return count;
  }
}

/** No delivery has this id. */
export function unknownDelivery(): Problem {
  return new Problem(
    404,
    'unknown-delivery',
    'There is no webhook delivery of this id; GET /v1/webhook-deliveries lists them.',
  );
}
