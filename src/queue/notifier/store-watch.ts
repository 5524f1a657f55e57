import { WorkerHost } from '@nestjs/bullmq';
import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import type { Queue } from 'bullmq';
import { Clock } from '../../config/clock.js';
import { within } from '../../config/within.js';
import { QUEUE_STORE } from '../backend/queue-names.js';

/** Milliseconds that the store has to answer. */
const ANSWER_MS = 1_000;

/** Milliseconds between two looks at a store that is away; as long without a failure, and an answer, mean that it is back. */
const LOOK_MS = 1_000;

/** Milliseconds between two log lines about a store that stays away, or goes away again and again. */
const REMINDER_MS = 60_000;

/**
 * Knows whether the store of the queues is away, and logs it for the whole process: when it goes away, each minute while
 * it stays away, and when it is back. Every queue and worker has connections of its own, each of which fails by itself.
 */
@Injectable()
export class StoreWatch implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly log = new Logger(StoreWatch.name);
  private since: Date | undefined;
  private failedAtMs = 0;
  private quietUntilMs = Number.NEGATIVE_INFINITY;
  private isTold = false;
  private timer: NodeJS.Timeout | undefined;
  private closed = false;

  /** @param queues of one store, so that one of them answers for all */
  constructor(
    private readonly queues: readonly Queue[],
    private readonly clock: Clock,
    private readonly discovery?: DiscoveryService,
  ) {
    for (const queue of queues) queue.on('error', (error) => this.failed(error));
  }

  onApplicationBootstrap(): void {
    for (const { instance } of this.discovery?.getProviders() ?? [])
      if (instance instanceof WorkerHost) instance.worker.on('error', (error: Error) => this.failed(error));
  }

  onModuleDestroy(): void {
    this.closed = true;
    clearTimeout(this.timer);
  }

  /** Since when it has been away; undefined while it is there. */
  get awaySince(): Date | undefined {
    return this.since;
  }

  /** Something that was asked of the store failed. */
  failed(error: unknown): void {
    if (this.closed) return;
    this.since ??= this.clock.now();
    this.failedAtMs = this.clock.monotonicMs();
    this.tell(error);
    this.timer ??= this.lookLater();
  }

  /** Asks the store itself. */
  async answers(): Promise<boolean> {
    const [queue] = this.queues;
    if (!queue) return true;
    const answer = queue.isPaused().then(() => true);
    return within(ANSWER_MS, answer, () => false).catch(() => false);
  }

  private lookLater(): NodeJS.Timeout {
    return setTimeout(() => void this.look(), LOOK_MS).unref();
  }

  private async look(): Promise<void> {
    const isBack = (await this.answers()) && this.clock.monotonicMs() - this.failedAtMs >= LOOK_MS;
    if (this.closed) return;
    this.timer = isBack ? undefined : this.lookLater();
    if (!isBack) return this.tell();
    this.since = undefined;
    if (this.isTold) this.log.log('the store of the queues answers again');
    this.isTold = false;
  }

  private tell(error?: unknown): void {
    const nowMs = this.clock.monotonicMs();
    if (nowMs < this.quietUntilMs) return;
    this.quietUntilMs = nowMs + REMINDER_MS;
    this.isTold = true;
    const { name, code } = (error instanceof Error ? error : {}) as { name?: string; code?: string };
    const msg = `the store of the queues does not answer: look at ${QUEUE_STORE}; work goes on by the poller, more slowly`;
    this.log.warn({ msg, since: this.since?.toISOString(), error: name, code });
  }
}
