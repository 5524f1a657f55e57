import { Injectable, Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Database } from '../../database/database.js';
import { Metrics } from '../../http/server/metrics.js';
import type { RefusalCause } from './verify-delivery.js';

/** Time between two writes. A killed process loses the counts of one interval. */
const FLUSH_MS = 1_000;

const MINUTE_MS = 60_000;

/** Maximum counts in the buffer while the database is unavailable; the oldest are dropped first. */
const MAX_BUFFERED = 5_000;

/** Counts refused requests by cause and minute: in memory first, so that a flood costs one write per second. */
@Injectable()
export class Rejections implements OnModuleInit, OnModuleDestroy {
  private readonly log = new Logger(Rejections.name);
  private readonly total;
  /** Counts by the minute and the cause, separated by a blank. */
  private buffer = new Map<string, number>();
  private timer: NodeJS.Timeout | undefined;
  private flushing: Promise<void> = Promise.resolve();

  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    metrics: Metrics,
  ) {
    this.total = metrics.counter('webhook_rejections_total', 'Requests at the receiver that were refused', ['cause']);
  }

  onModuleInit(): void {
    this.timer = setInterval(() => void this.flush(), FLUSH_MS);
  }

  async onModuleDestroy(): Promise<void> {
    clearInterval(this.timer);
    await this.flush();
  }

  /** Counts one request. A genuine sender may send one that is too large, so an operator must see it. */
  count(cause: RefusalCause | 'body-too-large'): void {
    this.total.inc({ cause });
    const now = this.clock.now().getTime();
    this.add(`${new Date(now - (now % MINUTE_MS)).toISOString()} ${cause}`, 1);
  }

  /** Writes the counts since the last write. If that fails, they stay in the buffer. */
  flush(): Promise<void> {
    this.flushing = this.flushing.then(() => this.write());
    return this.flushing;
  }

  private async write(): Promise<void> {
    if (this.buffer.size === 0) return;
    const counts = this.buffer;
    this.buffer = new Map();
    const keys = [...counts.keys()].map((key) => key.split(' '));
    try {
      await this.database.pool.query(
        `INSERT INTO webhook_rejections AS ledger (minute, cause, count)
         SELECT * FROM unnest($1::timestamptz[], $2::text[], $3::int[]) ORDER BY 1, 2
         ON CONFLICT (minute, cause) DO UPDATE SET count = ledger.count + excluded.count`,
        [keys.map(([minute]) => minute), keys.map(([, cause]) => cause), [...counts.values()]],
      );
    } catch (error) {
      for (const [key, count] of counts) this.add(key, count);
      this.log.warn(`refused requests could not be counted yet: ${error instanceof Error ? error.name : 'unknown'}`);
    }
  }

  private add(key: string, count: number): void {
    this.buffer.set(key, (this.buffer.get(key) ?? 0) + count);
    const [oldest] = this.buffer.keys();
    if (this.buffer.size > MAX_BUFFERED && oldest !== undefined) this.buffer.delete(oldest);
  }
}
