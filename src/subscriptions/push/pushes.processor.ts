import { Processor } from '@nestjs/bullmq';
import type { OnModuleInit } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import type { FeedEventResponse, FeedPageResponse } from '../../feed/feed.dto.js';
import { FeedBell } from '../../feed/feed-bell.js';
import { isCursorGone } from '../../feed/feed-cursor.js';
import { FeedReader } from '../../feed/feed-reader.js';
import { Metrics } from '../../monitoring/metrics.js';
import { Feeder } from '../../queue/work/feeder.js';
import { Host, WORKER } from '../../queue/work/host.js';
import { WorkQueues } from '../../queue/work/work-queues.js';
import { WorkStore } from '../../queue/work/work-store.js';
import type { Outcome } from './attempts.repository.js';
import { Endpoint, PUSH_FAULTS, type PushAnswer } from './endpoint.js';
import { messageOf } from './message.js';
import type { PushOutcome } from './push-outcome.js';
import { MAX_SUBSCRIPTIONS } from './push-rules.js';
import { BEGIN_WITHIN_MS, PushesRepository } from './pushes.repository.js';
import { cursorOfRow, type SubscriptionRow, SubscriptionSeal, typesOf } from './subscription-row.js';

/** Maximum events that one job pushes. */
const PAGE = 100;

const OUTCOMES = ['delivered', ...PUSH_FAULTS] as const;

/** Pushes the events of the feed to the endpoints of the EHR: to each one after the other, in their order. */
@Processor('pushes', WORKER)
export class PushesProcessor extends Host implements OnModuleInit {
  private readonly pushes: ReturnType<typeof counter>;
  /** The rows in progress, as they were marked last. */
  private readonly taken = new Map<string, SubscriptionRow>();
  private hasRung = false;
  private isAdding = false;

  constructor(
    store: WorkStore,
    queues: WorkQueues,
    metrics: Metrics,
    private readonly feeder: Feeder,
    private readonly bell: FeedBell,
    private readonly clock: Clock,
    private readonly rows: PushesRepository,
    private readonly reader: FeedReader,
    private readonly endpoint: Endpoint,
    private readonly seal: SubscriptionSeal,
  ) {
    super(store, queues.of('pushes'), { concurrency: MAX_SUBSCRIPTIONS });
    this.pushes = counter(metrics);
  }

  onModuleInit(): void {
    const due = async () => {
      await this.bell.publishLost();
      return this.rows.due();
    };
    this.feeder.feed({ queue: this.queue, due });
    this.bell.onRing(() => void this.addDue());
  }

  protected async work(id: string): Promise<boolean> {
    let markedMs = this.clock.monotonicMs();
    let row = await this.rows.take(id);
    if (!row) return false;
    this.taken.set(id, row);
    const page = await this.read(row);
    if (!page) return this.settle(row, { kind: 'gone' });
    const target = this.seal.targetOf(row, this.clock.now());
    for (const event of page.items) {
      if (this.isLate(markedMs)) {
        markedMs = this.clock.monotonicMs();
        const marked: SubscriptionRow | undefined = await this.rows.mark(row);
        if (!marked || this.isLate(markedMs)) return this.settle(row, { kind: 'stopped' });
        row = marked;
        this.taken.set(id, row);
      }
      const beganMs = this.clock.monotonicMs();
      const answer = await this.endpoint.deliver(target, messageOf(event), this.shutdown.signal);
      if (!answer) return this.settle(row, { kind: 'stopped' });
      this.pushes.inc({ outcome: answer.fault ?? 'delivered' });
      markedMs = this.clock.monotonicMs();
      const attempt = attemptOf(event, answer, markedMs - beganMs);
      if (answer.fault) return this.settle(row, { kind: 'failed', answer }, attempt);
      const isLast = event === page.items.at(-1);
      const outcome = isLast
        ? considered(page, true)
        : { ...considered(page, true), cursor: event.cursor, hasMore: true };
      const due = !isLast ? 'marked' : outcome.hasMore ? 'more' : 'none';
      const next: SubscriptionRow | undefined = await this.rows.delivered(row, attempt, outcome.cursor, due);
      if (!next) return this.settle(row, outcome, attempt);
      if (isLast) return this.isDue(id);
      row = next;
      this.taken.set(id, row);
    }
    return this.settle(row, considered(page, false));
  }

  protected async postpone(id: string): Promise<void> {
    this.pushes.inc({ outcome: 'internal' });
    const attempt: Outcome = { cursor: null, type: null, status: null, fault: 'internal', durationMs: 0 };
    const taken = this.taken.get(id);
    this.taken.delete(id);
    await this.rows.settle(id, taken, { kind: 'broken' }, attempt);
  }

  private isLate(markedMs: number): boolean {
    return this.clock.monotonicMs() - markedMs > BEGIN_WITHIN_MS;
  }

  /** The next events; undefined if the feed no longer has all of them. */
  private async read(row: SubscriptionRow): Promise<FeedPageResponse | undefined> {
    try {
      return await this.reader.read(cursorOfRow(row), PAGE, { types: typesOf(row) });
    } catch (error) {
      if (isCursorGone(error)) return undefined;
      throw error;
    }
  }

  /** @returns true if the subscription is due again: an event may have come since the page was read */
  private async settle(row: SubscriptionRow, outcome: PushOutcome, attempt?: Outcome): Promise<boolean> {
    await this.rows.settle(row.id, row, outcome, attempt);
    return this.isDue(row.id);
  }

  private async isDue(id: string): Promise<boolean> {
    this.taken.delete(id);
    return (await this.rows.due(id)).length > 0;
  }

  /** Adds what new events make due, one time after the other. The feeder adds what this misses. */
  private async addDue(): Promise<void> {
    this.hasRung = true;
    if (this.isAdding) return;
    this.isAdding = true;
    while (this.hasRung) {
      this.hasRung = false;
      const due = await this.rows.due().catch(() => []);
      for (const { id } of due) await this.queue.add(id);
    }
    this.isAdding = false;
  }
}

const considered = ({ cursor, nextCursor }: FeedPageResponse, isDelivered: boolean) => ({
  ...{ kind: 'considered' as const, cursor, hasMore: nextCursor !== null, isDelivered },
});

const attemptOf = (
  { cursor, type }: FeedEventResponse,
  { status, fault }: PushAnswer,
  durationMs: number,
): Outcome => ({
  ...{ cursor, type, status, fault, durationMs },
});

const counter = (metrics: Metrics) =>
  metrics.counter(
    'subscription_pushes_total',
    'Attempts to push an event to an endpoint of the EHR by outcome',
    ['outcome'],
    OUTCOMES.map((outcome) => ({ outcome })),
  );
