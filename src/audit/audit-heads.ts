import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { Clock } from '../config/clock.js';
import { Env } from '../config/env.js';
import { type Health, HealthIndicator, healthOf } from '../monitoring/health-indicator.js';
import { Intervals } from '../queue/work/intervals.js';
import { AuditLinker } from './audit-linker.js';

const EVERY_MS = 60_000;

/** Timeout for a request to AUDIT_HEADS_URL. */
const TIMEOUT_MS = 10_000;

/** Failures in a row that degrade the health. */
const MAX_FAILURES = 5;

/**
 * Publishes the newest link of the audit log each minute: to the log if it changed, and to AUDIT_HEADS_URL. Kept outside the
 * database, it shows later that no entries were removed from the end.
 */
@Injectable()
export class AuditHeads implements OnModuleInit {
  private readonly log = new Logger(AuditHeads.name);
  private logged: string | undefined;
  private failures = 0;

  constructor(
    private readonly linker: AuditLinker,
    private readonly env: Env,
    private readonly clock: Clock,
    private readonly intervals: Intervals,
  ) {}

  onModuleInit(): void {
    this.intervals.every(EVERY_MS, 'audit-heads', () => this.publish());
  }

  async publish(): Promise<void> {
    const head = await this.linker.head();
    if (head === undefined) return;
    if (head !== this.logged) this.log.log({ msg: 'the newest link of the audit log', head });
    this.logged = head;
    const { AUDIT_HEADS_URL: url } = this.env;
    if (url !== undefined) await this.send(url, JSON.stringify({ head, at: this.clock.now().toISOString() }));
  }

  private async send(url: string, body: string): Promise<void> {
    const headers = { 'content-type': 'application/json' };
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const answer = await fetch(url, { method: 'POST', headers, body, redirect: 'error', signal }).catch(
      () => undefined,
    );
    await answer?.body?.cancel();
    this.failures = answer?.ok ? 0 : this.failures + 1;
    if (this.failures === 0) return;
    const status = answer?.status ?? null;
    this.log.warn({ msg: 'AUDIT_HEADS_URL did not accept the newest link', failures: this.failures, status });
  }

  @HealthIndicator({ name: 'audit-heads', needs: ['worker'] })
  health(): Health {
    const { failures } = this;
    return healthOf([failures >= MAX_FAILURES && { code: 'audit-heads-refused', values: { minutes: failures } }]);
  }
}
