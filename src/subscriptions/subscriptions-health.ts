import { Injectable } from '@nestjs/common';
import { Clock } from '../config/clock.js';
import { PrismaService } from '../database/prisma.service.js';
import { type Health, HealthIndicator, healthOf, namesOf } from '../monitoring/health-indicator.js';
import { inSentence, labelOf } from '../words/words.js';
import { rowOf, type SubscriptionRow, SubscriptionSeal } from './push/subscription-row.js';

/** How long an endpoint must fail to be reported. Shorter faults, such as a restart of the EHR, end on their own. */
const FAILING_AFTER_MS = 10 * 60_000;

/** Reports endpoints that take no events. */
@Injectable()
export class SubscriptionsHealth {
  constructor(
    private readonly prisma: PrismaService,
    private readonly clock: Clock,
    private readonly seal: SubscriptionSeal,
  ) {}

  @HealthIndicator({ name: 'subscriptions', needs: ['database', 'worker'] })
  async health(): Promise<Health> {
    const stored = await this.prisma.subscription.findMany({ orderBy: [{ createdAt: 'asc' }, { id: 'asc' }] });
    const rows = stored.map(rowOf);
    const failsSinceBefore = new Date(this.clock.now().getTime() - FAILING_AFTER_MS);
    const isAltered = (row: SubscriptionRow) => !this.seal.secretsOf(row);
    const altered = rows.filter(isAltered);
    // The URL of a row that was changed outside this service may be anything.
    const intact = rows.filter((row) => !isAltered(row));
    const paused = intact.filter((row) => row.paused !== null && row.paused !== 'requested');
    const failing = intact.filter(
      (row) => row.paused === null && row.failingSince !== null && row.failingSince < failsSinceBefore,
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
