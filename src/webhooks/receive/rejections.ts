import { Injectable, Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Database } from '../../database/database.js';
import { PrismaService } from '../../database/prisma.service.js';
import { failureCode } from '../../http/problem/error-trace.js';
import { decodeCursor, type Page, type PageQuery, pageOf } from '../../http/request/page.js';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { Metrics } from '../../http/server/metrics.js';
import type { RefusalCause } from './verify-delivery.js';

/** Time between two writes. A killed process loses the counts of one interval. */
const FLUSH_MS = 1_000;

const MINUTE_MS = 60_000;

/** Wrong signatures since the last genuine delivery that degrade health. Strangers may send a few. */
const MIN_SUSPICIOUS = 3;

interface Count {
  minute: Date;
  cause: string;
  count: number;
}

/** Counts rejected requests by cause and minute: in memory first, so that a flood costs one write per second. */
@Injectable()
export class Rejections implements OnModuleInit, OnModuleDestroy {
  private readonly log = new Logger(Rejections.name);
  private readonly total;
  /** Counts that are not written yet, by cause and minute. They stay few while the database is unavailable. */
  private buffer = new Map<string, Count>();
  private timer: NodeJS.Timeout | undefined;
  private flushing: Promise<void> = Promise.resolve();

  constructor(
    private readonly database: Database,
    private readonly prisma: PrismaService,
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
    this.add({ minute: new Date(now - (now % MINUTE_MS)), cause, count: 1 });
  }

  /** Writes the counts since the last write. If that fails, they stay in the buffer. */
  flush(): Promise<void> {
    this.flushing = this.flushing.then(() => this.write());
    return this.flushing;
  }

  /** Counts by minute and cause, newest minute first. */
  async list({ limit, cursor }: PageQuery): Promise<Page<Count>> {
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
  @HealthIndicator('webhooks')
  async health(): Promise<Health> {
    const { rows } = await this.database.pool.query<{ wrong: number }>(
      `SELECT coalesce(sum(count), 0)::float8 AS wrong FROM webhook_rejections
       WHERE cause = 'wrong-signature' AND minute > now() - interval '1 hour'
         AND minute > coalesce((SELECT received_at FROM webhook_deliveries ORDER BY id DESC LIMIT 1), '-infinity')`,
    );
    const wrongSignatures = rows[0]?.wrong ?? 0;
    const facts = { wrongSignatures };
    if (wrongSignatures < MIN_SUSPICIOUS) return { status: 'ok', facts };
    const reason = `${wrongSignatures} requests with a wrong signature within an hour, and no genuine delivery since. If the platform sent them, add its current secret to PLATFORM_WEBHOOK_SECRET.`;
    return { status: 'degraded', reason, facts };
  }

  private async write(): Promise<void> {
    const counts = [...this.buffer.values()];
    if (counts.length === 0) return;
    this.buffer = new Map();
    try {
      await this.database.pool.query(
        `INSERT INTO webhook_rejections AS ledger (minute, cause, count)
         SELECT minute, cause, count FROM json_to_recordset($1) AS c (minute timestamptz, cause text, count int)
         ORDER BY 1, 2
         ON CONFLICT (minute, cause) DO UPDATE SET count = ledger.count + excluded.count`,
        [JSON.stringify(counts)],
      );
    } catch (error) {
      for (const count of counts) this.add(count);
      this.log.warn(`rejected requests could not be counted yet: ${failureCode(error)}`);
    }
  }

  private add(added: Count): void {
    const key = `${added.minute.getTime()} ${added.cause}`;
    const count = (this.buffer.get(key)?.count ?? 0) + added.count;
    this.buffer.set(key, { ...added, count });
  }
}
