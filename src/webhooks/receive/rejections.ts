import { Injectable, Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { PrismaService } from '../../database/prisma.service.js';
import { failureCode } from '../../errors/error-trace.js';
import { decodeCursor, type Page, type PageQuery, pageOf } from '../../http/request/page.js';
import { type Health, HealthIndicator, healthOf } from '../../monitoring/health-indicator.js';
import { Metrics } from '../../monitoring/metrics.js';
import type { RejectionCause } from './verify-delivery.js';

/** Time between two writes. A killed process loses the counts of one interval. */
const FLUSH_MS = 1_000;

/** Wrong signatures since the last genuine delivery that degrade health. Strangers may send a few. */
const MIN_SUSPICIOUS = 3;

/** Counts rejected requests by cause and minute: in memory first, so that a flood costs one write per second. */
@Injectable()
export class Rejections implements OnModuleInit, OnModuleDestroy {
  private readonly log = new Logger(Rejections.name);
  private readonly total;
  /** Counts that are not written yet, by cause. */
  private buffer = new Map<string, number>();
  private timer: NodeJS.Timeout | undefined;
  private flushing: Promise<void> = Promise.resolve();

  constructor(
    private readonly database: Database,
    private readonly prisma: PrismaService,
    metrics: Metrics,
  ) {
    this.total = metrics.counter('webhook_rejections_total', 'Requests that the receiver rejected', ['cause']);
  }

  onModuleInit(): void {
    this.timer = setInterval(() => void this.flush(), FLUSH_MS);
  }

  async onModuleDestroy(): Promise<void> {
    clearInterval(this.timer);
    await this.flush();
  }

  /** Counts one request. A genuine sender may send one that is too large, so an operator must see it. */
  count(cause: RejectionCause | 'body-too-large'): void {
    this.total.inc({ cause });
    this.add(cause, 1);
  }

  /** Writes the counts since the last write. If that fails, they stay in the buffer. */
  flush(): Promise<void> {
    this.flushing = this.flushing.then(() => this.write());
    return this.flushing;
  }

  /** Counts by minute and cause, newest minute first. */
  async list({ limit, cursor }: PageQuery): Promise<Page<{ minute: Date; cause: string; count: number }>> {
    const [time = '', cause] = decodeCursor<[string, string]>(cursor, 'time', 'string') ?? [];
    const minute = new Date(time);
    const rows = await this.prisma.webhookRejection.findMany({
      where: cause === undefined ? {} : { OR: [{ minute: { lt: minute } }, { minute, cause: { lt: cause } }] },
      orderBy: [{ minute: 'desc' }, { cause: 'desc' }],
      take: limit + 1,
    });
    return pageOf(rows, limit, (row) => [row.minute.toISOString(), row.cause]);
  }

  /** Degraded if a secret may have been rotated on one side only: within an hour, and since the last genuine delivery. */
  @HealthIndicator({ name: 'webhooks', needs: ['database'] })
  async health(): Promise<Health> {
    const { rows } = await this.database.pool.query<{ wrong: number }>(
      `SELECT coalesce(sum(count), 0)::float8 AS wrong FROM webhook_rejections
       WHERE cause = 'wrong-signature' AND minute > now() - interval '1 hour'
         AND minute > coalesce((SELECT received_at FROM webhook_deliveries ORDER BY id DESC LIMIT 1), '-infinity')`,
    );
    const wrongSignatures = rows[0]?.wrong ?? 0;
    const isSuspicious = wrongSignatures >= MIN_SUSPICIOUS;
    return healthOf([isSuspicious && { code: 'wrong-signatures', values: { count: wrongSignatures } }], {
      wrongSignatures,
    });
  }

  private async write(): Promise<void> {
    const counts = this.buffer;
    if (counts.size === 0) return;
    this.buffer = new Map();
    try {
      await this.database.pool.query(
        `INSERT INTO webhook_rejections AS ledger (minute, cause, count)
         SELECT date_trunc('minute', now()), * FROM unnest($1::text[], $2::int[]) ORDER BY 2
         ON CONFLICT (minute, cause) DO UPDATE SET count = ledger.count + excluded.count`,
        [[...counts.keys()], [...counts.values()]],
      );
    } catch (error) {
      for (const [cause, count] of counts) this.add(cause, count);
      this.log.warn(`rejected requests could not be counted yet: ${failureCode(error)}`);
    }
  }

  private add(cause: string, count: number): void {
    this.buffer.set(cause, (this.buffer.get(cause) ?? 0) + count);
  }
}
