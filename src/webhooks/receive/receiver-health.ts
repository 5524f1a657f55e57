import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { PrismaService } from '../../database/prisma.service.js';
import { failureCode } from '../../errors/error-trace.js';
import { type Health, HealthIndicator, healthOf } from '../../monitoring/health-indicator.js';
import { Metrics } from '../../monitoring/metrics.js';
import type { Refusal } from '../../words/refusal-words.js';
import { added, NOTHING, type ReceiverState, reasonsOf } from './refusals.js';

/** How long news wait to be written together. A killed process loses them. */
const FLUSH_MS = 1_000;

/** The last genuine delivery and the refusals since then, of all processes: in memory first, so that a flood costs one write per second. */
@Injectable()
export class ReceiverHealth implements OnModuleDestroy {
  private readonly log = new Logger(ReceiverHealth.name);
  private readonly total;
  /** News that are not written yet. */
  private news = NOTHING;
  private cancelTimer: (() => void) | undefined;
  private flushing: Promise<void> = Promise.resolve();

  constructor(
    private readonly prisma: PrismaService,
    private readonly clock: Clock,
    metrics: Metrics,
  ) {
    this.total = metrics.counter('webhook_rejections_total', 'Requests that the receiver rejected', ['cause']);
  }

  /** A genuine delivery was committed. */
  genuine(): void {
    this.add({ genuineAt: this.clock.now(), refusals: {} });
  }

  /** A request was refused, or missed the receiver. */
  refused({ cause, ...seconds }: Refusal): void {
    this.total.inc({ cause });
    const lastAt = this.clock.now().getTime();
    this.add({ genuineAt: null, refusals: { [cause]: { count: 1, lastAt, ...seconds } } });
  }

  /** Writes the news. If that fails, they are kept for the next write. */
  flush(): Promise<void> {
    this.flushing = this.flushing.then(() => this.write());
    return this.flushing;
  }

  /** The state of all processes, including the news of this one. */
  async read(): Promise<ReceiverState> {
    await this.flush();
    const row = await this.prisma.webhookReceiver.findFirst();
    return { genuineAt: row?.genuineAt ?? null, refusals: (row?.refusals ?? {}) as ReceiverState['refusals'] };
  }

  @HealthIndicator({ name: 'webhooks', needs: ['database'] })
  async health(): Promise<Health> {
    const state = await this.read();
    const facts = { lastGenuineAt: state.genuineAt?.toISOString() ?? null };
    return healthOf(reasonsOf(state, this.clock.now().getTime()), facts);
  }

  async onModuleDestroy(): Promise<void> {
    await this.flush();
    this.cancelTimer?.();
  }

  private add(later: ReceiverState): void {
    this.news = added(this.news, later);
    this.cancelTimer ??= this.clock.after(FLUSH_MS, () => {
      this.cancelTimer = undefined;
      void this.flush();
    });
  }

  private async write(): Promise<void> {
    const { news } = this;
    if (news === NOTHING) return;
    this.news = NOTHING;
    try {
      await this.prisma.transaction(async (tx) => {
        const [stored = NOTHING] = await tx.$queryRaw<ReceiverState[]>`
          INSERT INTO webhook_receiver AS r DEFAULT VALUES ON CONFLICT (id) DO UPDATE SET id = r.id
          RETURNING genuine_at AS "genuineAt", refusals`; // locks the row
        await tx.webhookReceiver.updateMany({ data: added(stored, news) });
      });
    } catch (error) {
      const { news: later } = this;
      this.news = news;
      this.add(later);
      this.log.warn(`the state of the receiver could not be stored yet: ${failureCode(error)}`);
    }
  }
}
