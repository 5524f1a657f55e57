import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { Env } from '../config/env.js';
import { errorTrace } from '../http/error-trace.js';
import { type Health, HealthIndicator } from '../http/health-indicator.js';
import { Metrics } from '../http/metrics.js';
import { Sweep } from '../queue/sweep.js';
import { HeartbeatRepository } from './heartbeat.repository.js';

/** Milliseconds between two beats of a worker. */
const BEAT_MS = 10_000;

/** Seconds without a beat after which no worker counts as alive: two beats may be lost. */
const SILENT_SECONDS = 30;

const HELP = `Seconds since any process of the role was last alive; beyond ${SILENT_SECONDS} none is, and what is asked for waits: alert on that and on its absence`;

const NO_WORKER: Health = {
  status: 'degraded',
  reason: `No worker was alive within ${SILENT_SECONDS} seconds: what is asked for is kept and waits; start a process with the role worker.`,
};

/** Workers say that they live, and a process that is none says whether any does. */
@Injectable()
export class WorkerHeartbeat implements OnModuleInit, OnApplicationBootstrap {
  private readonly log = new Logger(WorkerHeartbeat.name);

  constructor(
    private readonly env: Env,
    private readonly heartbeat: HeartbeatRepository,
    private readonly sweep: Sweep,
    metrics: Metrics,
  ) {
    // A gauge without a label would be 0 when there is no value.
    metrics.gauge('heartbeat_age_seconds', HELP, ['role'], async (gauge) => {
      const age = await this.heartbeat.age();
      gauge.reset();
      if (age !== null) gauge.set({ role: 'worker' }, age);
    });
  }

  onModuleInit(): void {
    this.sweep.every(BEAT_MS, 'heartbeat', () => this.heartbeat.beat());
  }

  async onApplicationBootstrap(): Promise<void> {
    if (!this.env.hasRole('worker')) return;
    await this.heartbeat.beat().catch((error: unknown) => {
      this.log.warn({ msg: 'the first heartbeat failed; the next one comes', ...errorTrace(error) });
    });
  }

  @HealthIndicator('worker')
  async health(): Promise<Health> {
    if (this.env.hasRole('worker')) return { status: 'ok' };
    const age = await this.heartbeat.age();
    return age !== null && age < SILENT_SECONDS ? { status: 'ok' } : NO_WORKER;
  }
}
