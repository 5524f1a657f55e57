import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { Random } from '../../config/random.js';
import { Stopping } from '../../config/stopping.js';
import { errorTrace } from '../../http/problem/error-trace.js';

interface Poll {
  name: string;
  everyMs: number;
  work: () => Promise<void>;
  quietUntil: number;
  timer?: NodeJS.Timeout;
  running?: Promise<void>;
}

/** Milliseconds between two log lines about the same poll: the database may be away for long. */
const QUIET_MS = 30_000;

/**
 * Polls at intervals in every worker process, without the queue: what the queue lost is found here. Runs of one poll
 * never overlap within a process; one that fails is tried again at the next interval.
 */
@Injectable()
export class Poller implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly log = new Logger(Poller.name);
  private readonly polls: Poll[] = [];
  private stopped = false;

  constructor(
    private readonly env: Env,
    private readonly random: Random,
    private readonly stopping: Stopping,
  ) {}

  /** Declares a poll; call it from a feature's `onModuleInit`. @param everyMs milliseconds between two runs */
  every(everyMs: number, name: string, work: () => Promise<void>): void {
    this.polls.push({ name, everyMs, work, quietUntil: 0 });
  }

  onApplicationBootstrap(): void {
    if (!this.env.hasRole('worker')) return;
    for (const poll of this.polls) this.plan(poll);
  }

  async onModuleDestroy(): Promise<void> {
    this.stopped = true;
    for (const poll of this.polls) clearTimeout(poll.timer);
    await Promise.all(this.polls.map((poll) => poll.running));
  }

  private plan(poll: Poll): void {
    if (this.stopped) return;
    const delay = poll.everyMs * (0.9 + 0.2 * this.random.fraction());
    poll.timer = setTimeout(() => {
      if (this.stopping.begun) return;
      poll.running = poll
        .work()
        .catch((error: unknown) => this.warn(poll, error))
        .finally(() => this.plan(poll));
    }, delay);
  }

  private warn(poll: Poll, error: unknown): void {
    if (performance.now() < poll.quietUntil) return;
    poll.quietUntil = performance.now() + QUIET_MS;
    this.log.warn({ msg: 'a poll failed; it comes again', poll: poll.name, ...errorTrace(error) });
  }
}
