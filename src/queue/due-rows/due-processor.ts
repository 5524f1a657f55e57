import { WorkerHost } from '@nestjs/bullmq';
import type { OnModuleDestroy, OnModuleInit } from '@nestjs/common';
import type { Job } from 'bullmq';
import type { Notification } from '../backend/queue-names.js';
import type { Poller } from '../notifier/poller.js';
import { releaseDeduplicationKey } from '../notifier/queue-notifier.js';
import type { DueLoop } from './due-loop.js';

/** Triggers loops when their queue is notified, and at intervals, for a notification may be lost. */
export abstract class DueProcessor extends WorkerHost implements OnModuleInit, OnModuleDestroy {
  protected constructor(
    private readonly poller: Poller,
    private readonly poll: { name: string; everyMs: number; also?: () => Promise<void> },
    private readonly loops: readonly Pick<DueLoop<object>, 'trigger' | 'stop' | 'finished'>[],
  ) {
    super();
  }

  onModuleInit(): void {
    const { name, everyMs, also } = this.poll;
    this.poller.every(everyMs, name, async () => {
      this.trigger();
      await also?.();
    });
  }

  async process(job: Job<Notification>): Promise<void> {
    await releaseDeduplicationKey(job);
    this.trigger();
  }

  async onModuleDestroy(): Promise<void> {
    for (const loop of this.loops) loop.stop();
    await this.worker.close();
    await Promise.all(this.loops.map((loop) => loop.finished()));
  }

  /** Each loop has its own places: a platform that hangs in one holds up no other. */
  private trigger(): void {
    for (const loop of this.loops) loop.trigger();
  }
}
