import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { GroupCommit } from '../../audit/group-commit.js';
import { Clock } from '../../config/clock.js';
import { isDatabaseUnavailable } from '../../errors/database-fault.js';
import { type Health, HealthIndicator, type Reason } from '../../monitoring/health-indicator.js';
import { Metrics } from '../../monitoring/metrics.js';
import { WEBHOOK_INBOX_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { InboxWriterRepository, type IncomingRow } from './inbox-writer.repository.js';

const UNREACHABLE: Reason = { code: 'inbox-not-writable', follows: true };

/** The platform gives up after five seconds; 503 must leave within two. */
const LIMITS = {
  inFlight: 2, // while one waits for the disk, the next is being gathered and sent
  batch: { rows: 500, bytes: 8 * 1024 ** 2 },
  waiting: { rows: 10_000, bytes: 64 * 1024 ** 2 },
  deadlineMs: 1_800,
};

/** Minimum time between two notifications. Under load, one activates a worker for many commits. */
export const NOTIFY_INTERVAL_MS = 50;

/** Appends deliveries to the inbox by group commit, and notifies its workers. */
@Injectable()
export class InboxAppender implements OnModuleDestroy {
  private readonly commits: GroupCommit<IncomingRow>;
  private readonly committed;
  private readonly notCommitted;
  /** Runs until the next notification may be sent. */
  private quiet: NodeJS.Timeout | undefined;
  private isNotifyPending = false;

  constructor(
    private readonly writer: InboxWriterRepository,
    clock: Clock,
    private readonly notifier: QueueNotifier,
    metrics: Metrics,
  ) {
    const sizes = [1, 2, 5, 10, 20, 50, 100, 200, LIMITS.batch.rows];
    const groups = metrics.histogram('webhook_commit_rows', 'Deliveries in one commit', [], sizes);
    this.committed = metrics.counter('webhook_kept_total', 'Deliveries committed and acknowledged');
    this.notCommitted = metrics.counter(
      'webhook_not_kept_total',
      'Correctly signed deliveries that were answered with 503',
    );
    this.commits = new GroupCommit(LIMITS, {
      commit: async (rows) => {
        await writer.insert(rows);
        groups.observe(rows.length);
        this.committed.inc(rows.length);
        this.isNotifyPending = true;
        if (!this.quiet) this.notifyPending();
      },
      isUnavailable: isDatabaseUnavailable,
      now: () => clock.monotonicMs(),
    });
    metrics.gauge('webhook_waiting_room', 'Deliveries that wait for a commit', [], (gauge) =>
      gauge.set(this.commits.load.waiting),
    );
  }

  /** Resolves once the delivery is committed. @throws {Error} if it is not known to be */
  append(row: IncomingRow): Promise<void> {
    return this.commits.add(row, row.body.length);
  }

  /** Counts a delivery that was answered 503. */
  countNotKept(): void {
    this.notCommitted.inc();
  }

  @HealthIndicator({ name: 'inbox', vital: true, needs: ['database'] })
  async health(): Promise<Health> {
    const facts = { waiting: this.commits.load.waiting };
    try {
      await this.writer.checkConnection();
      return { status: 'ok', facts };
    } catch {
      return { status: 'down', reasons: [UNREACHABLE], facts };
    }
  }

  /** Commits the accepted deliveries. Later ones are answered 503, so that the sender repeats them. */
  async onModuleDestroy(): Promise<void> {
    await this.commits.close();
    clearTimeout(this.quiet);
    this.notifyPending();
  }

  /** Notifies immediately after a first commit, and once for all that follow within the interval. */
  private notifyPending(): void {
    this.quiet = undefined;
    if (!this.isNotifyPending) return;
    this.isNotifyPending = false;
    this.notifier.notify(WEBHOOK_INBOX_QUEUE);
    this.quiet = setTimeout(() => this.notifyPending(), NOTIFY_INTERVAL_MS).unref();
  }
}
