import { Injectable, Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { decodeCursor, type Page, pageOf } from '../../http/request/page.js';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { Metrics } from '../../http/server/metrics.js';
import { Poller } from '../../queue/notifier/poller.js';
import { type RejectionCount, RejectionsRepository } from './rejections.repository.js';
import type { RefusalCause } from './verify-delivery.js';

/** Milliseconds between two writes to the ledger; a killed process loses the counts of one interval. */
const FLUSH_MS = 1_000;

/** Milliseconds between two deletions of counts that are too old. */
const RETENTION_CHECK_MS = 3_600_000;

const MINUTE_MS = 60_000;

/** Counts that are buffered while the database is away; the oldest are dropped first. */
const MOST_BUFFERED = 5_000;

/** Wrong signatures since the last genuine delivery before it is worth a look: anybody can send a few. */
const WORTH_A_LOOK = 3;

/** Counts refused requests by cause and minute: in memory first, so that a flood costs one write a second. */
@Injectable()
export class Rejections implements OnModuleInit, OnModuleDestroy {
  private readonly log = new Logger(Rejections.name);
  private readonly total;
  private buffer = new Map<string, RejectionCount>();
  private timer: NodeJS.Timeout | undefined;
  private flushing: Promise<void> = Promise.resolve();

  constructor(
    private readonly repository: RejectionsRepository,
    private readonly poller: Poller,
    private readonly clock: Clock,
    metrics: Metrics,
  ) {
    this.total = metrics.counter('webhook_rejections_total', 'Requests at the receiver that were refused', ['cause']);
  }

  onModuleInit(): void {
    this.timer = setInterval(() => void this.flush(), FLUSH_MS);
    this.poller.every(RETENTION_CHECK_MS, 'webhook-rejections', () => this.repository.deleteExpired());
  }

  async onModuleDestroy(): Promise<void> {
    clearInterval(this.timer);
    await this.flush();
  }

  /** Counts one request. A genuine sender may send one that is too large, so an operator must see it. */
  count(cause: RefusalCause | 'body-too-large'): void {
    this.total.inc({ cause });
    const minute = Math.floor(this.clock.now().getTime() / MINUTE_MS) * MINUTE_MS;
    this.add({ minute: new Date(minute), cause, count: 1 });
  }

  /** Writes what was counted since the last time; when that fails it is buffered for the next. */
  flush(): Promise<void> {
    this.flushing = this.flushing.then(() => this.write());
    return this.flushing;
  }

  /** The ledger, the newest minute first. */
  async list(limit: number, cursor: string | undefined): Promise<Page<RejectionCount>> {
    const rows = await this.repository.list(limit + 1, decodeCursor<[string, string]>(cursor, 'time', 'string'));
    return pageOf(rows, limit, (row) => [row.minute.toISOString(), row.cause]);
  }

  /** A webhook secret that was rotated at one side only shows here: all that comes is signed with another one. */
  @HealthIndicator('webhooks')
  async health(): Promise<Health> {
    const wrongSignatures = await this.repository.wrongSinceGenuine();
    const facts = { wrongSignatures };
    if (wrongSignatures < WORTH_A_LOOK) return { status: 'ok', facts };
    const reason = `${wrongSignatures} requests with a wrong signature within an hour, and no genuine delivery since: if the platform sent them, add the secret that it signs with to PLATFORM_WEBHOOK_SECRET.`;
    return { status: 'degraded', reason, facts };
  }

  private async write(): Promise<void> {
    if (this.buffer.size === 0) return;
    const counts = this.buffer;
    this.buffer = new Map();
    try {
      await this.repository.add([...counts.values()]);
    } catch (error) {
      for (const row of counts.values()) this.add(row);
      this.log.warn(`refused requests could not be counted yet: ${error instanceof Error ? error.name : 'unknown'}`);
    }
  }

  private add(row: RejectionCount): void {
    const key = `${row.minute.getTime()} ${row.cause}`;
    const known = this.buffer.get(key);
    if (known) known.count += row.count;
    else this.buffer.set(key, row);
    const [oldest] = this.buffer.keys();
    if (this.buffer.size > MOST_BUFFERED && oldest !== undefined) this.buffer.delete(oldest);
  }
}
