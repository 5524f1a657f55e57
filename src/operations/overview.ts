import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { KEEP_ALIVE_MS, type SentTogether } from '../access/guard/event-streams.js';
import { Clock } from '../config/clock.js';
import { Env } from '../config/env.js';
import { version } from '../config/version.js';
import { capabilitiesOf } from '../platform/contract/capabilities.js';
import { Contract } from '../platform/contract/contract.js';
import { HealthChecks, type HealthReport } from './health-checks.js';
import type { OverviewResponse, PartResponse } from './overview/overview.dto.js';
import { OverviewRepository } from './overview/overview.repository.js';

/** Milliseconds between two looks for those who listen. */
const LOOK_MS = 2_000;

/** What is said of a part that is well. */
const WELL: Record<string, string> = {
  audit: 'Who did what is recorded.',
  'audit-chain': 'New audit entries are linked to the chain.',
  'audit-heads': 'The newest link of the audit log is published.',
  compliance: 'Compliance checks are submitted and looked up.',
  database: 'PostgreSQL answers and takes writes.',
  grants: 'API keys and browser sessions are as this service wrote them.',
  imports: 'Imports are planned and applied.',
  inbox: 'Webhooks are kept and acknowledged.',
  people: 'Providers and clients are mirrored.',
  platform: 'The platform answers calls to user management.',
  disk: 'The database has room.',
  queue: 'Workers are notified of what is due.',
  sending: 'Calls go to the platform.',
  'session-requests': 'Sessions are asked for.',
  sessions: 'Sessions and their notes are fetched.',
  vault: 'What is sealed opens.',
  'webhook-events': 'Every genuine webhook was understood.',
  webhooks: 'The signatures of webhooks are those expected.',
  worker: 'A worker is alive.',
};

/** What an operator has to see at a glance, once or whenever it changes. */
@Injectable()
export class Overview {
  private newest: Promise<OverviewResponse> | undefined;
  private readAtMs = Number.NEGATIVE_INFINITY;
  private readonly version = version();

  constructor(
    private readonly checks: HealthChecks,
    private readonly contract: Contract,
    private readonly env: Env,
    private readonly figures: OverviewRepository,
    private readonly clock: Clock,
  ) {}

  /** As it is now, or was less than two seconds ago: one look for all of this process, however many ask. */
  read(): Promise<OverviewResponse> {
    const nowMs = this.clock.monotonicMs();
    if (this.newest && nowMs - this.readAtMs < LOOK_MS) return this.newest;
    this.readAtMs = Number.POSITIVE_INFINITY; // one look at a time
    this.newest = this.look().finally(() => {
      this.readAtMs = nowMs;
    });
    return this.newest;
  }

  /** The overview at once, and then whenever it changed, until the signal aborts. */
  async *stream(signal: AbortSignal): AsyncGenerator<SentTogether> {
    let sent = '';
    let sentAtMs = 0;
    while (!signal.aborted) {
      const data = await this.read();
      const text = JSON.stringify(data);
      const isIdle = this.clock.monotonicMs() - sentAtMs > KEEP_ALIVE_MS;
      if (text !== sent || isIdle) {
        yield text === sent ? [] : [{ event: 'overview', data }];
        sentAtMs = this.clock.monotonicMs();
      }
      sent = text;
      await delay(LOOK_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  private async look(): Promise<OverviewResponse> {
    const [report, figures] = await Promise.all([this.checks.report(), this.figures.read()]);
    const capabilities = capabilitiesOf(this.contract, this.env);
    return { version: this.version, status: report.status, parts: partsOf(report), capabilities, ...figures };
  }
}

function partsOf({ checks }: HealthReport): PartResponse[] {
  return Object.entries(checks).map(([name, { status, reason }]) => ({
    name,
    status,
    sentence: reason ?? WELL[name] ?? 'It works.',
  }));
}
