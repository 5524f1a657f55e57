import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { PrismaService } from '../../database/prisma.service.js';
import { type Health, HealthIndicator, healthOf } from '../../monitoring/health-indicator.js';
import { Metrics } from '../../monitoring/metrics.js';
import { Contract } from '../../platform/contract/contract.js';
import { PERSON_KINDS, PERSON_STATES } from '../rules/person.js';

/** How long a count stays in the gauge, because one of a million people takes a second. */
const COUNT_EVERY_MS = 60_000;

/** The health and the metrics of people. */
@Injectable()
export class PeopleMonitoring {
  constructor(
    metrics: Metrics,
    prisma: PrismaService,
    clock: Clock,
    private readonly contract: Contract,
  ) {
    let countAtMs = 0;
    metrics.gauge('people', 'People by kind and state', ['kind', 'state'], async (gauge) => {
      const nowMs = clock.monotonicMs();
      if (nowMs < countAtMs) return;
      const counts = await prisma.person.groupBy({ by: ['kind', 'state'], _count: true });
      // States without people report 0, so that later values can be compared with it.
      for (const kind of PERSON_KINDS) for (const state of PERSON_STATES) gauge.set({ kind, state }, 0);
      for (const { kind, state, _count } of counts) gauge.set({ kind, state }, _count);
      countAtMs = nowMs + COUNT_EVERY_MS;
    });
  }

  /** Degraded while the contract lacks the API key's header. */
  @HealthIndicator({ name: 'people', needs: ['worker'] })
  async check(): Promise<Health> {
    return healthOf([this.contract.apiKey === undefined && { code: 'not-configured' }]);
  }
}
