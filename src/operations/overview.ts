import { Injectable } from '@nestjs/common';
import { Clock } from '../config/clock.js';
import { Env } from '../config/env.js';
import { version } from '../config/version.js';
import { capabilitiesOf } from '../platform/contract/capabilities.js';
import { Contract } from '../platform/contract/contract.js';
import { HealthChecks } from './health-checks.js';
import { shownDecisions } from './overview/decisions.js';
import type { HealthReport } from './overview/health-report.js';
import type { OverviewResponse, PartResponse } from './overview/overview.dto.js';
import { OverviewRepository } from './overview/overview.repository.js';

/** How long all callers share one overview, in milliseconds. */
const SHARED_MS = 2_000;

/** Sentences about healthy parts. */
const HEALTHY: Record<string, string> = {
  api: 'A process with the role api is running.',
  audit: 'The audit log is written.',
  'audit-chain': 'New audit entries are linked to the chain.',
  'audit-heads': 'The newest link of the audit log is published.',
  database: 'PostgreSQL answers and accepts writes.',
  decisions: 'Nothing awaits a decision.',
  grants: 'API keys and browser sessions have valid MACs, and no key expires soon.',
  inbox: 'Webhooks are stored and acknowledged.',
  people: 'Providers and clients are mirrored.',
  platform: 'The platform answers calls.',
  queue: 'The queues take jobs.',
  processes: 'All processes use the same queues and limits.',
  sending: 'Calls go to the platform.',
  'session-requests': 'Session requests are sent.',
  sessions: 'Sessions and their notes are fetched.',
  subscriptions: 'Events are pushed to the endpoints of the EHR.',
  vault: 'Encrypted data is readable.',
  webhooks: 'Webhooks are verified and accepted.',
  worker: 'A process with the role worker is running.',
};

/** Reads the overview for operators. */
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

  /** Returns an overview less than two seconds old; all callers of this process share one query. */
  read(): Promise<OverviewResponse> {
    const nowMs = this.clock.monotonicMs();
    if (this.newest && nowMs - this.readAtMs < SHARED_MS) return this.newest;
    this.readAtMs = Number.POSITIVE_INFINITY; // one read at a time
    this.newest = this.readNow().finally(() => {
      this.readAtMs = nowMs;
    });
    return this.newest;
  }

  private async readNow(): Promise<OverviewResponse> {
    const [report, figures] = await Promise.all([this.checks.report(), this.figures.read()]);
    const capabilities = capabilitiesOf(this.contract, this.env);
    const { status, causes, checks } = report;
    const decisions = checks.decisions?.facts ? shownDecisions(checks.decisions.facts) : null;
    return { version: this.version, status, causes, parts: partsOf(report), capabilities, decisions, ...figures };
  }
}

function partsOf({ checks }: HealthReport): PartResponse[] {
  return Object.entries(checks).map(([name, { status, reason, causedBy }]) => ({
    name,
    status,
    sentence: causedBy ? `Caused by ${causedBy}.` : (reason ?? HEALTHY[name] ?? 'Healthy.'),
    causedBy: causedBy ?? null,
  }));
}
