import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { type Health, HealthIndicator, healthOf, namesOf } from '../monitoring/health-indicator.js';
import { inSentence, labelOf } from '../words/words.js';
import { SUBSCRIPTION_COLUMNS, type SubscriptionRow, SubscriptionSeal } from './push/subscription-row.js';

/** How long an endpoint must fail to be reported. Shorter faults, such as a restart of the EHR, end on their own. */
const FAILING_AFTER_MS = 10 * 60_000;

/** Reports endpoints that take no events. */
@Injectable()
export class SubscriptionsHealth {
  constructor(
    private readonly database: Database,
    private readonly seal: SubscriptionSeal,
  ) {}

  @HealthIndicator({ name: 'subscriptions', needs: ['database', 'worker'] })
  async health(): Promise<Health> {
    const { rows } = await this.database.pool.query<SubscriptionRow>(
      `SELECT ${SUBSCRIPTION_COLUMNS} FROM subscriptions ORDER BY created_at, id`,
    );
    const isAltered = (row: SubscriptionRow) => !this.seal.secretsOf(row);
    const altered = rows.filter(isAltered);
    // The URL of a row that was changed outside this service may be anything.
    const intact = rows.filter((row) => !isAltered(row));
    const paused = intact.filter((row) => row.paused !== null && row.paused !== 'requested');
    const failing = intact.filter(
      ({ paused: pause, failingSince, now }) =>
        pause === null && failingSince !== null && now.getTime() - failingSince.getTime() > FAILING_AFTER_MS,
    );
    return healthOf([
      altered.length > 0 && {
        code: 'grants-altered',
        values: { rows: namesOf(altered.map(({ id }) => `subscriptions ${id}`)) },
      },
      paused.length > 0 && {
        code: 'subscriptions-paused',
        values: {
          subscriptions: namesOf(
            paused.map(({ url, paused: reason }) => because(url, labelOf('pauseReason', reason ?? ''))),
          ),
        },
        ...sinceOf(paused.map(({ pausedAt }) => pausedAt)),
      },
      failing.length > 0 && {
        code: 'pushes-fail',
        values: {
          subscriptions: namesOf(
            failing.map(({ url, answerFault }) => because(url, labelOf('pushFault', answerFault ?? ''))),
          ),
        },
        ...sinceOf(failing.map(({ failingSince }) => failingSince)),
      },
    ]);
  }
}

/** The host of an endpoint, because the rest of its URL may hold a token, and what is wrong there. */
const because = (url: string, reason: string): string => `${new URL(url).host} (${inSentence(reason)})`;

/** The earliest of these times. */
function sinceOf(times: readonly (Date | null)[]): { since?: Date } {
  const known = times.flatMap((time) => time?.getTime() ?? []);
  return known.length === 0 ? {} : { since: new Date(Math.min(...known)) };
}
