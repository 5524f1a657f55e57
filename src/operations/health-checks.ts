import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { DiscoveryService, MetadataScanner, Reflector } from '@nestjs/core';
import { Clock } from '../config/clock.js';
import { Stopping } from '../config/stopping.js';
import { withTimeout } from '../config/with-timeout.js';
import { isDatabaseUnavailable } from '../errors/database-fault.js';
import { errorTrace } from '../errors/error-trace.js';
import { type Health, HealthIndicator, type HealthPart } from '../monitoring/health-indicator.js';
import type { ReasonCode } from '../monitoring/health-texts.js';
import { Metrics } from '../monitoring/metrics.js';
import { type Answer, type HealthReport, reportOf } from './overview/health-report.js';

/** Timeout for the check of a part. */
const TIMEOUT_MS = 2_000;

const LEVELS: Record<Health['status'], number> = { ok: 0, degraded: 1, down: 2 };

interface Indicator extends HealthPart {
  ask: () => Health | Promise<Health>;
}

const NOTHING_KNOWN = { causes: [], checks: {} };

/** Asks every part of the service that declared a `@HealthIndicator()`, and groups the answers by cause. */
@Injectable()
export class HealthChecks implements OnApplicationBootstrap {
  private readonly log = new Logger(HealthChecks.name);
  private indicators: Indicator[] = [];
  /** Since when this process has known each present cause. */
  private readonly known = new Map<ReasonCode, Date>();
  private asking: Promise<HealthReport> | undefined;

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
    private readonly reflector: Reflector,
    private readonly stopping: Stopping,
    private readonly clock: Clock,
    metrics: Metrics,
  ) {
    const help =
      'Health of each part as in /health/ready: 0 ok, 1 degraded, 2 down; caused_by names the part that causes it, or is empty';
    metrics.gauge('health_status', help, ['check', 'caused_by'], async (gauge) => {
      const { checks } = await this.report();
      gauge.reset();
      for (const [check, { status, causedBy = '' }] of Object.entries(checks))
        gauge.set({ check, caused_by: causedBy }, LEVELS[status]);
    });
  }

  onApplicationBootstrap(): void {
    this.indicators = this.discovery.getProviders().flatMap(({ instance }) => this.indicatorsOf(instance));
    const names = this.indicators.map(({ name }) => name);
    const repeated = names.find((name, at) => names.indexOf(name) !== at);
    if (repeated) throw new Error(`Two health indicators are called ${repeated}; rename one.`);
    const unknown = this.indicators.flatMap(({ needs = [] }) => needs).find((need) => !names.includes(need));
    if (unknown) throw new Error(`A health indicator needs ${unknown}, which none is called.`);
  }

  /** The health now. Callers at the same time share one answer; a shutdown is reported immediately. */
  async report(): Promise<HealthReport> {
    if (this.stopping.isDraining) return { status: 'stopping', ...NOTHING_KNOWN };
    this.asking ??= this.askAll().finally(() => {
      this.asking = undefined;
    });
    const report = await this.asking;
    return this.stopping.isDraining ? { ...report, status: 'stopping' } : report;
  }

  private async askAll(): Promise<HealthReport> {
    const answers = await Promise.all(
      this.indicators.map(
        async ({ ask, ...part }): Promise<Answer> => ({ ...part, health: await this.ask(part, ask) }),
      ),
    );
    const now = this.clock.now();
    const report = reportOf(answers, (code) => this.known.get(code) ?? now);
    this.logChanges(report);
    return report;
  }

  /** Logs each cause once when it appears, and once when it ends. */
  private logChanges({ causes }: HealthReport): void {
    for (const { cause: msg, since, hasKnownStart: _, ...facts } of causes) {
      if (this.known.has(facts.code)) continue;
      this.known.set(facts.code, since);
      this.log.warn({ msg, ...facts });
    }
    // Without the database, the other causes are unknown.
    if (causes.some(({ code }) => code === 'database-unavailable')) return;
    for (const code of this.known.keys()) {
      if (causes.some((cause) => cause.code === code)) continue;
      this.known.delete(code);
      this.log.log({ msg: 'a health problem has ended', code });
    }
  }

  private async ask({ name }: HealthPart, ask: Indicator['ask']): Promise<Health> {
    const failed = (code: ReasonCode): Health => ({
      status: 'down',
      reasons: [{ code, values: { parts: name }, follows: true }],
    });
    try {
      return await withTimeout(ask(), TIMEOUT_MS, () => failed('no-answer'), this.clock);
    } catch (error) {
      if (isDatabaseUnavailable(error)) return failed('database-unavailable');
      this.log.warn({ msg: 'a health check failed', check: name, ...errorTrace(error) });
      return failed('check-failed');
    }
  }

  private indicatorsOf(instance: unknown): Indicator[] {
    const prototype: unknown = typeof instance === 'object' && instance !== null && Object.getPrototypeOf(instance);
    if (!prototype) return [];
    const methods = instance as Record<string, Indicator['ask']>;
    return this.scanner.getAllMethodNames(prototype).flatMap((method) => {
      const ask = methods[method] as Indicator['ask'];
      const part = this.reflector.get(HealthIndicator, ask) as HealthPart | undefined;
      return part ? [{ ...part, ask: () => ask.call(instance) }] : [];
    });
  }
}
