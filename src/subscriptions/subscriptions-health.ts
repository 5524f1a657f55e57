import { Injectable } from '@nestjs/common';
import { Clock } from '../config/clock.js';
import { PrismaService } from '../database/prisma.service.js';
import { type Health, HealthIndicator, healthOf, namesOf } from '../monitoring/health-indicator.js';
import { inSentence, labelOf } from '../words/words.js';
import { Attempts } from './push/attempts.repository.js';
import { rowOf } from './push/subscription-row.js';

/** How long an endpoint must fail to be reported. Shorter faults, such as a restart of the EHR, end on their own. */
const FAILING_AFTER_MS = 10 * 60_000;

/** After so many failures of notebridge itself, about six minutes after the first, they are reported. */
const BROKEN_FAILURES = 4;

/** Reports endpoints that take no events. */
@Injectable()
export class SubscriptionsHealth {
  constructor(
    private readonly prisma: PrismaService,
    private readonly clock: Clock,
    private readonly attempts: Attempts,
  ) {}

  @HealthIndicator({ name: 'subscriptions', needs: ['database', 'worker'] })
  async health(): Promise<Health> {
    const stored = await this.prisma.subscription.findMany({ orderBy: [{ createdAt: 'asc' }, { id: 'asc' }] });
    const failsSinceBefore = new Date(this.clock.now().getTime() - FAILING_AFTER_MS);
    const paused: Fault[] = [];
    const failing: Fault[] = [];
    const broken: Fault[] = [];
    for (const row of stored.map(rowOf)) {
      const { url, paused: why, pausedAt, failingSince } = row;
      if (why !== null && why !== 'requested')
        paused.push({ url, reason: labelOf('pauseReason', why), since: pausedAt as Date });
      else if (why === null && failingSince !== null && failingSince < failsSinceBefore)
        failing.push({
          url,
          reason: labelOf('pushFault', (await this.attempts.newestOf(row))?.fault ?? ''),
          since: failingSince,
        });
      else if (why === null && failingSince === null && row.failures >= BROKEN_FAILURES)
        broken.push({ url, reason: labelOf('pushFault', 'internal') });
    }
    return healthOf([
      causeOf('subscriptions-paused', paused),
      causeOf('pushes-fail', failing),
      causeOf('pushes-break', broken),
    ]);
  }
}

/** An endpoint that takes no events. */
interface Fault {
  url: string;
  reason: string;
  since?: Date;
}

/** Names endpoints by their hosts, because the rest of a URL may hold a token. */
function causeOf(code: 'subscriptions-paused' | 'pushes-fail' | 'pushes-break', faults: readonly Fault[]) {
  if (faults.length === 0) return false;
  const subscriptions = namesOf(faults.map(({ url, reason }) => `${new URL(url).host} (${inSentence(reason)})`));
  const times = faults.flatMap(({ since }) => since?.getTime() ?? []);
  return { code, values: { subscriptions }, ...(times.length > 0 && { since: new Date(Math.min(...times)) }) };
}
