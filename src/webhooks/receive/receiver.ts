import { Injectable, type OnApplicationShutdown, type OnModuleDestroy } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { isDatabaseUnavailable } from '../../http/problem/fault.js';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { Metrics } from '../../http/server/metrics.js';
import { WEBHOOK_INBOX_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { Vault } from '../../vault/vault.js';
import { GroupCommit, type GroupCommitLimits } from './group-commit.js';
import { bodyPlace, COMMITS_IN_FLIGHT, InboxWriterRepository, type IncomingRow } from './inbox-writer.repository.js';
import { Rejections } from './rejections.js';
import { type DeliveryHeaders, type DeliveryRules, headerFault, verifyDelivery } from './verify-delivery.js';

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

/** What became of a request: in the inbox, not genuine, or not known to be in the inbox. */
export type Receipt = 'kept' | 'not-genuine' | 'unavailable';

/** Verifies deliveries, seals them and answers only when they are committed. */
@Injectable()
export class Receiver implements OnModuleDestroy, OnApplicationShutdown {
  private readonly rules: DeliveryRules;
  private readonly commits: GroupCommit<IncomingRow>;
  private readonly notifier: ThrottledNotifier;
  private readonly committed;
  private readonly notCommitted;

  constructor(
    env: Env,
    private readonly clock: Clock,
    private readonly vault: Vault,
    private readonly writer: InboxWriterRepository,
    private readonly rejections: Rejections,
    notifier: QueueNotifier,
    metrics: Metrics,
  ) {
    this.rules = { secrets: env.PLATFORM_WEBHOOK_SECRET, maxAgeSeconds: env.WEBHOOK_MAX_AGE_SECONDS };
    this.notifier = new ThrottledNotifier(() => notifier.notify(WEBHOOK_INBOX_QUEUE, 'received'));
    const help = 'Deliveries in one commit of the receiver';
    const groups = metrics.histogram('webhook_commit_rows', help, [], GROUP_SIZES);
    this.commits = new GroupCommit(LIMITS, {
      commit: async (rows) => {
        await writer.insert(rows);
        groups.observe(rows.length);
        this.notifier.notify();
      },
      isUnavailable: isDatabaseUnavailable,
      now: () => clock.monotonicMs(),
    });
    this.committed = metrics.counter('webhook_kept_total', 'Deliveries that were committed and acknowledged');
    this.notCommitted = metrics.counter('webhook_not_kept_total', 'Genuine deliveries that were answered 503');
    metrics.gauge('webhook_waiting_room', 'Deliveries that wait for a commit', [], (gauge) =>
      gauge.set(this.commits.load.waiting),
    );
  }

  /** Whether the headers could be those of a delivery, so that the body is worth reading. A refusal is counted. */
  admits(headers: DeliveryHeaders): boolean {
    const fault = headerFault(headers);
    if (fault !== undefined) this.rejections.count(fault);
    return fault === undefined;
  }

  /** Takes one request. @param body the raw bytes */
  receive(headers: DeliveryHeaders, body: Buffer): Promise<Receipt> | Receipt {
    const verified = verifyDelivery(headers, body, this.rules, this.clock.now().getTime());
    if (typeof verified === 'string') {
      this.rejections.count(verified);
      return 'not-genuine';
    }
    const { signature, timestamp: sentAt, secretIndex } = verified;
    const sealed = this.vault.seal(bodyPlace(signature), body);
    const row = { signature: Buffer.from(signature, 'hex'), body: sealed, sentAt, secretIndex };
    return this.commits.add(row, sealed.length).then(this.acknowledge, this.refuse);
  }

  private readonly acknowledge = (): Receipt => {
    this.committed.inc();
    return 'kept';
  };

  private readonly refuse = (): Receipt => {
    this.notCommitted.inc();
    return 'unavailable';
  };

  @HealthIndicator('inbox', { vital: true })
  async health(): Promise<Health> {
    const facts = { waiting: this.commits.load.waiting };
    try {
      await this.writer.tryCommit();
      return { status: 'ok', facts };
    } catch {
      return { status: 'down', reason: 'The inbox can not commit: PostgreSQL is away or refuses writes.', facts };
    }
  }

  /** From here on deliveries are answered 503, and the sender retries; what was accepted is still committed. */
  async onModuleDestroy(): Promise<void> {
    await this.commits.close();
    this.notifier.close();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.writer.close();
  }
}

/** Milliseconds between two notifications at most: under load one activates a worker for many commits. */
export const NOTIFY_EVERY_MS = 250;

/** Notifies at once after a pause, and otherwise once at the end of the interval, however often it is called. */
export class ThrottledNotifier {
  private timer: NodeJS.Timeout | undefined;
  private pending = false;

  constructor(private readonly send: () => void) {}

  notify(): void {
    if (this.timer) {
      this.pending = true;
      return;
    }
    this.send();
    this.timer = setTimeout(() => {
      this.timer = undefined;
      if (!this.pending) return;
      this.pending = false;
      this.notify();
    }, NOTIFY_EVERY_MS);
  }

  /** Sends what is pending, and nothing after it. */
  close(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.pending) this.send();
    this.pending = false;
  }
}
