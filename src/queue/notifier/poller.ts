import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { Random } from '../../config/random.js';
import { Stopping } from '../../config/stopping.js';
import { errorTrace } from '../../http/problem/error-trace.js';

interface Round {
  name: string;
  everyMs: number;
  work: () => Promise<void>;
  quietUntil: number;
  timer?: NodeJS.Timeout;
  running?: Promise<void>;
}

/** Milliseconds between two log lines about the same round: the database may be away for long. */
const QUIET_MS = 30_000;

/**
 * Runs a look-around at intervals in every worker process, without the queue: what the queue lost is found here.
 * Rounds of one name never overlap within a process; a round that fails is tried again at the next interval.
 */
@Injectable()
export class Poller implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly log = new Logger(Poller.name);
  private readonly rounds: Round[] = [];
  private stopped = false;

  constructor(
    private readonly env: Env,
    private readonly random: Random,
    private readonly stopping: Stopping,
  ) {}

  /** Declares a round; call it from a feature's `onModuleInit`. @param everyMs milliseconds between two rounds */
  every(everyMs: number, name: string, work: () => Promise<void>): void {
    this.rounds.push({ name, everyMs, work, quietUntil: 0 });
  }

  onApplicationBootstrap(): void {
    if (!this.env.hasRole('worker')) return;
    for (const round of this.rounds) this.plan(round);
  }

  async onModuleDestroy(): Promise<void> {
    this.stopped = true;
    for (const round of this.rounds) clearTimeout(round.timer);
    await Promise.all(this.rounds.map((round) => round.running));
  }

  private plan(round: Round): void {
    if (this.stopped) return;
    const delay = round.everyMs * (0.9 + 0.2 * this.random.fraction());
    round.timer = setTimeout(() => {
      if (this.stopping.begun) return;
      round.running = round
        .work()
        .catch((error: unknown) => this.complain(round, error))
        .finally(() => this.plan(round));
    }, delay);
  }

  private complain(round: Round, error: unknown): void {
    if (performance.now() < round.quietUntil) return;
    round.quietUntil = performance.now() + QUIET_MS;
    this.log.warn({ msg: 'a poll failed; it comes again', poll: round.name, ...errorTrace(error) });
  }
}
