import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { DiscoveryService, MetadataScanner, Reflector } from '@nestjs/core';
import { Stopping } from '../config/stopping.js';
import { within } from '../config/within.js';
import { errorTrace } from '../http/problem/error-trace.js';
import { isDatabaseUnavailable } from '../http/problem/fault.js';
import { type Health, HealthIndicator } from '../http/server/health-indicator.js';
import { Metrics } from '../http/server/metrics.js';

/** Milliseconds after which a part that has not said how it is counts as down. */
const PATIENCE_MS = 2_000;

const LEVELS: Record<Health['status'], number> = { ok: 0, degraded: 1, down: 2 };

interface Indicator {
  name: string;
  vital: boolean;
  ask: () => Health | Promise<Health>;
}

/** What `/health/ready` answers. */
export interface HealthReport {
  /** `down` and `stopping` mean: send no requests. */
  status: 'ok' | 'degraded' | 'down' | 'stopping';
  checks: Record<string, Health>;
}

/** Asks every part of the service that declared a `@HealthIndicator()` how it is. */
@Injectable()
export class HealthChecks implements OnApplicationBootstrap {
  private readonly log = new Logger(HealthChecks.name);
  private indicators: Indicator[] = [];
  private readonly known = new Map<string, Health['status']>();
  private underWay: Promise<HealthReport> | undefined;

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
    private readonly reflector: Reflector,
    private readonly stopping: Stopping,
    metrics: Metrics,
  ) {
    const help = 'How each part of the service is, as in /health/ready: 0 ok, 1 degraded, 2 down';
    metrics.gauge('health_status', help, ['check'], async (gauge) => {
      const { checks } = await this.report();
      for (const [check, { status }] of Object.entries(checks)) gauge.set({ check }, LEVELS[status]);
    });
  }

  onApplicationBootstrap(): void {
    this.indicators = this.discovery.getProviders().flatMap(({ instance }) => this.indicatorsOf(instance));
    const names = this.indicators.map((indicator) => indicator.name);
    const doubled = names.find((name, at) => names.indexOf(name) !== at);
    if (doubled) throw new Error(`Two health indicators are called ${doubled}; rename one.`);
  }

  /** How the service is now. Those who ask at the same time get one answer; that it stops is told at once. */
  async report(): Promise<HealthReport> {
    if (this.stopping.announced) return { status: 'stopping', checks: {} };
    this.underWay ??= this.askAll().finally(() => {
      this.underWay = undefined;
    });
    const report = await this.underWay;
    return this.stopping.announced ? { ...report, status: 'stopping' } : report;
  }

  private async askAll(): Promise<HealthReport> {
    const answers = await Promise.all(
      this.indicators.map(async ({ name, vital, ask }) => ({ name, vital, health: await this.answerOf(name, ask) })),
    );
    for (const { name, health } of answers) this.logChange(name, health);
    return reportOf(answers);
  }

  /** A part that fails or recovers is a line in the log, once, whoever asked; `ok` is what everybody begins with. */
  private logChange(check: string, { status, reason }: Health): void {
    if (status === (this.known.get(check) ?? 'ok')) return;
    this.known.set(check, status);
    if (status === 'ok') this.log.log({ msg: 'a part of the service is well again', check });
    else this.log.warn({ msg: 'a part of the service is not well', check, status, reason });
  }

  private async answerOf(check: string, ask: Indicator['ask']): Promise<Health> {
    const silent = (): Health => ({ status: 'down', reason: `No answer within ${PATIENCE_MS / 1000} seconds.` });
    try {
      return await within(PATIENCE_MS, ask(), silent);
    } catch (error) {
      if (isDatabaseUnavailable(error)) return { status: 'down', reason: 'It stands in PostgreSQL, which is away.' };
      this.log.warn({ msg: 'a health check failed', check, ...errorTrace(error) });
      return { status: 'down', reason: 'The check itself failed; the log says where.' };
    }
  }

  private indicatorsOf(instance: unknown): Indicator[] {
    const prototype: unknown = typeof instance === 'object' && instance !== null && Object.getPrototypeOf(instance);
    if (!prototype) return [];
    const methods = instance as Record<string, Indicator['ask']>;
    return this.scanner.getAllMethodNames(prototype).flatMap((method) => {
      const ask = methods[method] as Indicator['ask'];
      const place = this.reflector.get(HealthIndicator, ask) as Pick<Indicator, 'name' | 'vital'> | undefined;
      return place ? [{ ...place, ask: () => ask.call(instance) }] : [];
    });
  }
}

/** The service is down when a vital part is, degraded when anything else is not well. */
export function reportOf(answers: readonly { name: string; vital: boolean; health: Health }[]): HealthReport {
  const isDown = answers.some(({ vital, health }) => vital && health.status === 'down');
  const isWell = answers.every(({ health }) => health.status === 'ok');
  const checks = Object.fromEntries(answers.map(({ name, health }) => [name, health]));
  return { status: isDown ? 'down' : isWell ? 'ok' : 'degraded', checks };
}
