import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { type Health, HealthIndicator, healthOf, namesOf } from '../http/server/health-indicator.js';
import { Macs } from '../vault/macs.js';
import { SUBSCRIPTION_COLUMNS, type SubscriptionRow, stateOf } from './push/subscription-row.js';

/** Shorter faults, such as a restart of the EHR, resolve themselves. */
const WORTH_A_LOOK_MS = 10 * 60_000;

/** Reports endpoints that take no events. */
@Injectable()
export class SubscriptionsHealth {
  constructor(
    private readonly database: Database,
    private readonly macs: Macs,
  ) {}

  @HealthIndicator({ name: 'subscriptions', needs: ['database', 'worker'] })
  async health(): Promise<Health> {
    const { rows } = await this.database.pool.query<SubscriptionRow>(
      `SELECT ${SUBSCRIPTION_COLUMNS} FROM subscriptions ORDER BY created_at, id`,
    );
    const altered = rows.filter((row) => stateOf(this.macs, row) === 'altered');
    const paused = rows.filter((row) => row.paused !== null && row.paused !== 'requested');
    const failing = rows.filter(
      ({ paused: pause, failingSince, now }) =>
        pause === null && failingSince !== null && now.getTime() - failingSince.getTime() > WORTH_A_LOOK_MS,
    );
    return healthOf([
      altered.length > 0 && {
        code: 'grants-altered',
        values: { rows: namesOf(altered.map(({ id }) => `subscriptions ${id}`)) },
      },
      paused.length > 0 && {
        code: 'subscriptions-paused',
        values: { subscriptions: namesOf(paused.map(({ id, paused: reason }) => `${id} (${reason})`)) },
        ...sinceOf(paused.map(({ pausedAt }) => pausedAt)),
      },
      failing.length > 0 && {
        code: 'pushes-fail',
        values: { subscriptions: namesOf(failing.map(({ id, answerFault }) => `${id} (${answerFault})`)) },
        ...sinceOf(failing.map(({ failingSince }) => failingSince)),
      },
    ]);
  }
}

/** The earliest of these times. */
function sinceOf(times: readonly (Date | null)[]): { since?: Date } {
  const known = times.flatMap((time) => time?.getTime() ?? []);
  return known.length === 0 ? {} : { since: new Date(Math.min(...known)) };
}
