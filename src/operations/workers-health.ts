import { Injectable } from '@nestjs/common';
import { Env } from '../config/env.js';
import { type Health, HealthIndicator } from '../http/server/health-indicator.js';
import { Metrics } from '../http/server/metrics.js';
import { WorkersRepository } from '../queue/due-rows/workers.repository.js';

/** Seconds without a beat after which no worker counts as alive; longer than a restart takes. */
const SILENT_SECONDS = 30;

const HELP = `Seconds since any process of the role was last alive; beyond ${SILENT_SECONDS} none is, and what is asked for waits: alert on that and on its absence`;

const NO_WORKER: Health = {
  status: 'degraded',
  reason: `No worker was alive within ${SILENT_SECONDS} seconds: what is asked for is kept and waits; start a process with the role worker.`,
};

/** Whether any worker is alive, as a process that is none says it. */
@Injectable()
export class WorkersHealth {
  constructor(
    private readonly env: Env,
    private readonly workers: WorkersRepository,
    metrics: Metrics,
  ) {
    // A gauge without a label would be 0 when there is no value.
    metrics.gauge('heartbeat_age_seconds', HELP, ['role'], async (gauge) => {
      const age = await this.workers.secondsSinceAny();
      gauge.reset();
      if (age !== null) gauge.set({ role: 'worker' }, age);
    });
  }

  @HealthIndicator('worker')
  async health(): Promise<Health> {
    if (this.env.hasRole('worker')) return { status: 'ok' };
    const age = await this.workers.secondsSinceAny();
    return age !== null && age < SILENT_SECONDS ? { status: 'ok' } : NO_WORKER;
  }
}
