import { Injectable, type OnApplicationBootstrap, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { DueLoopDeps } from '../../due-rows/due-loop.js';
import { FeedBell } from '../../feed/feed-bell.js';
import { NEW_EVENTS, PushLoop } from './push-loop.js';

/** Starts the pushes when events arrive and when retries are due. */
@Injectable()
export class PushProcessor implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy {
  constructor(
    private readonly loop: PushLoop,
    private readonly deps: DueLoopDeps,
    private readonly bell: FeedBell,
  ) {}

  onModuleInit(): void {
    const { poller } = this.deps;
    poller.whenDue(
      this.loop.name,
      (bind) => this.loop.nextDue(bind),
      () => this.loop.trigger(),
    );
    poller.whenDue(NEW_EVENTS, this.loop.newEventsSince, this.loop.noticeEvents);
  }

  /** Events of other processes are noticed by the poller, at most five seconds later. */
  onApplicationBootstrap(): void {
    this.bell.onRing(() => this.deps.poller.runNow(NEW_EVENTS));
  }

  async onModuleDestroy(): Promise<void> {
    this.loop.stop();
    await this.loop.finished();
  }
}
