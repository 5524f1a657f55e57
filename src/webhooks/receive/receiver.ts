import { Injectable, type OnApplicationShutdown, type OnModuleDestroy } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { isDatabaseUnavailable } from '../../http/problem/database-fault.js';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { Metrics } from '../../http/server/metrics.js';
import { WEBHOOK_INBOX_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { Vault } from '../../vault/vault.js';
import { GroupCommit, type GroupCommitLimits } from './group-commit.js';
import { COMMITS_IN_FLIGHT, InboxWriterRepository, type IncomingRow } from './inbox-writer.repository.js';
import { Rejections } from './rejections.js';
import { bodyPlace } from './sealed-body.js';
import { ThrottledNotifier } from './throttled-notifier.js';
import { type DeliveryRules, headerFault, verifyDelivery } from './verify-delivery.js';

const MIB = 1024 ** 2;

/** The platform gives up after 5 seconds; 503 must leave within 2 of arrival. */
const LIMITS: GroupCommitLimits = {
  inFlight: COMMITS_IN_FLIGHT,
  batch: { rows: 500, bytes: 8 * MIB },
  waiting: { rows: 10_000, bytes: 64 * MIB },
  deadlineMs: 1_800,
};

/** Upper bounds of the sizes of groups. */
const GROUP_SIZES = [1, 2, 5, 10, 20, 50, 100, 200, 500];

/** What became of a request: in the inbox, not genuine, or not known to be kept. */
export type Receipt = 'kept' | 'not-genuine' | 'unavailable';

/** Judges deliveries, seals them and answers only when they are committed. */
@Injectable()
export class Receiver implements OnModuleDestroy, OnApplicationShutdown {
  private readonly rules: DeliveryRules;
  private readonly commits: GroupCommit<IncomingRow>;
  private readonly notifier: ThrottledNotifier;
  private readonly kept;
  private readonly unavailable;

  constructor(
    env: Env,
    private readonly clock: Clock,
    private readonly vault: Vault,
    private readonly intake: InboxWriterRepository,
    private readonly rejections: Rejections,
    notifier: QueueNotifier,
    metrics: Metrics,
  ) {
    this.rules = { secrets: env.PLATFORM_WEBHOOK_SECRET, maxAgeSeconds: env.WEBHOOK_MAX_AGE_SECONDS };
    this.notifier = new ThrottledNotifier(() => notifier.notify(WEBHOOK_INBOX_QUEUE, 'received'));
    const groups = metrics.histogram(
      'webhook_commit_rows',
      'Deliveries in one commit of the receiver',
      [],
      GROUP_SIZES,
    );
    this.commits = new GroupCommit(LIMITS, {
      commit: async (rows) => {
        await this.intake.keep(rows);
        groups.observe(rows.length);
        this.notifier.notify();
      },
      isUnavailable: isDatabaseUnavailable,
      now: () => clock.monotonicMs(),
    });
    this.kept = metrics.counter('webhook_kept_total', 'Deliveries that were committed and acknowledged');
    this.unavailable = metrics.counter('webhook_not_kept_total', 'Genuine deliveries that were answered 503');
    metrics.gauge('webhook_waiting_room', 'Deliveries that wait for a commit', [], (gauge) =>
      gauge.set(this.commits.load.waiting),
    );
  }

  /** Whether a request is worth reading: its headers could be those of a delivery. What is not is counted. */
  admits(headers: Record<string, string | string[] | undefined>): boolean {
    const fault = headerFault(headers);
    if (fault !== undefined) this.rejections.count(fault);
    return fault === undefined;
  }

  /**
   * Takes one request.
   *
   * @param headers as Node gives them
   * @param body the raw bytes
   */
  receive(headers: Record<string, string | string[] | undefined>, body: Buffer): Promise<Receipt> | Receipt {
    const verdict = verifyDelivery(headers, body, this.rules, this.clock.now().getTime());
    if (typeof verdict === 'string') {
      this.rejections.count(verdict);
      return 'not-genuine';
    }
    const { signature, timestamp: sentAt, secretIndex } = verdict;
    const sealed = this.vault.seal(bodyPlace(signature), body);
    const row = { signature: Buffer.from(signature, 'hex'), body: sealed, sentAt, secretIndex };
    return this.commits.add(row, sealed.length).then(this.committed, this.notCommitted);
  }

  private readonly committed = (): Receipt => {
    this.kept.inc();
    return 'kept';
  };

  private readonly notCommitted = (): Receipt => {
    this.unavailable.inc();
    return 'unavailable';
  };

  @HealthIndicator('inbox', { vital: true })
  async health(): Promise<Health> {
    const { waiting } = this.commits.load;
    try {
      await this.intake.tryCommit();
      return { status: 'ok', facts: { waiting } };
    } catch {
      return {
        status: 'down',
        reason: 'The inbox can not commit: PostgreSQL is away or refuses writes.',
        facts: { waiting },
      };
    }
  }

  /** From here on deliveries are answered 503, and the sender comes again; what was accepted is still committed. */
  async onModuleDestroy(): Promise<void> {
    await this.commits.close();
    this.notifier.close();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.intake.close();
  }
}
