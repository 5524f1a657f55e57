import { WorkerHost } from '@nestjs/bullmq';
import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import type { Queue } from 'bullmq';
import { Clock } from '../../config/clock.js';
import { within } from '../../config/within.js';
import { QUEUE_STORE } from '../backend/queue-names.js';

/** Timeout for a ping of the store. */
const ANSWER_MS = 1_000;

/** How often to ping an unavailable store. It is available after an answer and as long without a failure. */
const PING_EVERY_MS = 1_000;

/** Minimum time between two log lines about an unavailable store. */
const REMINDER_MS = 60_000;

/**
 * Tracks whether the store of the queues is available, and logs it once per process: when it becomes unavailable, every
 * minute until it is available, and then. Each queue and worker has its own connections, which all report errors here.
 */
@Injectable()
export class StoreWatch implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly log = new Logger(StoreWatch.name);
  private since: Date | undefined;
  private failedAtMs = 0;
  private quietUntilMs = Number.NEGATIVE_INFINITY;
  private isLogged = false;
  private timer: NodeJS.Timeout | undefined;
  private closed = false;

  /** @param queues of one store, so that a ping of one counts for all */
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

  /** Undefined while the store is available. */
  get unavailableSince(): Date | undefined {
    return this.since;
  }

  /** Records that a command failed. */
  failed(error: unknown): void {
    if (this.closed) return;
    this.since ??= this.clock.now();
    this.failedAtMs = this.clock.monotonicMs();
    this.logUnavailable(error);
    this.timer ??= this.pingLater();
  }

  /** Pings the store. */
  async answers(): Promise<boolean> {
    const [queue] = this.queues;
    if (!queue) return true;
    const answer = queue.isPaused().then(() => true);
    return within(ANSWER_MS, answer, () => false).catch(() => false);
  }

  private pingLater(): NodeJS.Timeout {
    return setTimeout(() => void this.ping(), PING_EVERY_MS).unref();
  }

  private async ping(): Promise<void> {
    const isBack = (await this.answers()) && this.clock.monotonicMs() - this.failedAtMs >= PING_EVERY_MS;
    if (this.closed) return;
    this.timer = isBack ? undefined : this.pingLater();
    if (!isBack) return this.logUnavailable();
    this.since = undefined;
    if (this.isLogged) this.log.log('the store of the queues is available again');
    this.isLogged = false;
  }

  private logUnavailable(error?: unknown): void {
    const nowMs = this.clock.monotonicMs();
    if (nowMs < this.quietUntilMs) return;
    this.quietUntilMs = nowMs + REMINDER_MS;
    this.isLogged = true;
    const { name, code } = (error instanceof Error ? error : {}) as { name?: string; code?: string };
    const msg = `the store of the queues is unavailable; check ${QUEUE_STORE}. Work continues more slowly, by polling`;
    this.log.warn({ msg, since: this.since?.toISOString(), error: name, code });
  }
}
