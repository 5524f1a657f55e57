import { Injectable } from '@nestjs/common';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { DeliveriesRepository } from './deliveries.repository.js';

/** More than these are not counted: health is asked often. */
const MOST = 1_000;

/** Genuine events that this version can't act on wait for somebody to look: nothing else tells of them. */
@Injectable()
export class NotUnderstoodHealth {
  constructor(private readonly deliveries: DeliveriesRepository) {}

  @HealthIndicator('webhook-events')
  async health(): Promise<Health> {
    const notUnderstood = await this.deliveries.countNotUnderstood(MOST);
    if (notUnderstood === 0) return { status: 'ok' };
    const count = notUnderstood === MOST ? `${MOST} or more` : String(notUnderstood);
    const reason = `Genuine webhooks that were not understood: ${count}. GET /v1/webhook-deliveries?state=not-understood says why; replay them after an upgrade, or dismiss them.`;
    return { status: 'degraded', reason, facts: { notUnderstood } };
  }
}
