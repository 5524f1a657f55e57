import { Injectable, Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { decodeCursor, type Page, pageOf } from '../../http/request/page.js';
import { Metrics } from '../../http/server/metrics.js';
import { Poller } from '../../queue/notifier/poller.js';
import { type RejectionCount, RejectionsRepository } from './rejections.repository.js';
import type { RefusalCause } from './verify-delivery.js';

/** Milliseconds between two writes to the ledger; a killed process loses the counts of one interval. */
const FLUSH_MS = 1_000;

/** Milliseconds between two looks for counts that are too old. */
const FORGET_MS = 3_600_000;

const MINUTE_MS = 60_000;

/** Minutes that are held while the database is away; the oldest go first. */
const MOST_HELD = 5_000;

/** Causes beside those of a verdict: a genuine sender may send them, so an operator must see them. */
export type RejectionCause = RefusalCause | 'body-too-large';

/** Counts refused requests by cause and minute: in memory first, so that a flood costs one write a second. */
@Injectable()
export class Rejections implements OnModuleInit, OnModuleDestroy {
  private readonly log = new Logger(Rejections.name);
  private readonly total;
  private held = new Map<string, RejectionCount>();
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
    this.poller.every(FORGET_MS, 'webhook-rejections', () => this.repository.forgetOld());
  }

  async onModuleDestroy(): Promise<void> {
    clearInterval(this.timer);
    await this.flush();
  }

  /** Counts one request. */
  count(cause: RejectionCause): void {
    this.total.inc({ cause });
    const minute = Math.floor(this.clock.now().getTime() / MINUTE_MS) * MINUTE_MS;
    this.hold({ minute: new Date(minute), cause, count: 1 });
  }

  /** Writes what was counted since the last time; when that fails it is held for the next. */
  flush(): Promise<void> {
    this.flushing = this.flushing.then(() => this.write());
    return this.flushing;
  }

  /** The ledger, the newest minute first. */
  async list(limit: number, cursor: string | undefined): Promise<Page<RejectionCount>> {
    const rows = await this.repository.list(limit + 1, decodeCursor<[string, string]>(cursor, 'time', 'string'));
    return pageOf(
      rows,
      limit,
      (row) => [row.minute.toISOString(), row.cause],
      (row) => row,
    );
  }

  private async write(): Promise<void> {
    if (this.held.size === 0) return;
    const counts = this.held;
    this.held = new Map();
    try {
      await this.repository.add([...counts.values()]);
    } catch (error) {
      for (const row of counts.values()) this.hold(row);
      this.log.warn(`refused requests could not be counted yet: ${error instanceof Error ? error.name : 'unknown'}`);
    }
  }

  private hold(row: RejectionCount): void {
    const key = `${row.minute.getTime()} ${row.cause}`;
    const known = this.held.get(key);
    if (known) {
      known.count += row.count;
      return;
    }
    this.held.set(key, row);
    if (this.held.size <= MOST_HELD) return;
    const [oldest] = this.held.keys();
    if (oldest !== undefined) this.held.delete(oldest);
  }
}
