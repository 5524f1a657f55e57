import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { GroupCommit } from '../../database/group-commit.js';
import { isDatabaseUnavailable } from '../../http/problem/fault.js';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { Metrics } from '../../http/server/metrics.js';
import { WEBHOOK_INBOX_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { InboxWriterRepository, type IncomingRow } from './inbox-writer.repository.js';
import { ThrottledNotifier } from './throttled-notifier.js';

const NO_COMMIT =
  'The inbox cannot commit: PostgreSQL is unavailable, refuses writes, or another session locks its tables (see pg_stat_activity).';

/** The platform gives up after five seconds; 503 must leave within two. */
const LIMITS = {
  inFlight: 2, // while one waits for the disk, the next is being gathered and sent
  batch: { rows: 500, bytes: 8 * 1024 ** 2 },
  waiting: { rows: 10_000, bytes: 64 * 1024 ** 2 },
  deadlineMs: 1_800,
};

/** Appends deliveries to the inbox by group commit, and notifies its workers. */
@Injectable()
export class InboxAppender implements OnModuleDestroy {
  private readonly commits: GroupCommit<IncomingRow>;
  private readonly notifier: ThrottledNotifier;
  private readonly committed;
  private readonly notCommitted;

  constructor(
    private readonly writer: InboxWriterRepository,
    clock: Clock,
    notifier: QueueNotifier,
    metrics: Metrics,
  ) {
    this.notifier = new ThrottledNotifier(() => notifier.notify(WEBHOOK_INBOX_QUEUE, 'received'));
    const sizes = [1, 2, 5, 10, 20, 50, 100, 200, LIMITS.batch.rows];
    const groups = metrics.histogram('webhook_commit_rows', 'Deliveries in one commit', [], sizes);
    this.committed = metrics.counter('webhook_kept_total', 'Deliveries that were committed and acknowledged');
    this.notCommitted = metrics.counter('webhook_not_kept_total', 'Genuine deliveries that were answered 503');
    this.commits = new GroupCommit(LIMITS, {
      commit: async (rows) => {
        await writer.insert(rows);
        groups.observe(rows.length);
        this.committed.inc(rows.length);
        this.notifier.notify();
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

  @HealthIndicator({ name: 'inbox', vital: true })
  async health(): Promise<Health> {
    const facts = { waiting: this.commits.load.waiting };
    try {
      await this.writer.tryCommit();
      return { status: 'ok', facts };
    } catch {
      return { status: 'down', reason: NO_COMMIT, facts };
    }
  }

  /** From here on deliveries are answered 503, and the sender retries; accepted ones are still committed. */
  async onModuleDestroy(): Promise<void> {
    await this.commits.close();
    this.notifier.close();
  }
}
