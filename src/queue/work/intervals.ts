import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { Stopping } from '../../config/stopping.js';
import { withTimeout } from '../../config/with-timeout.js';
import { isDatabaseUnavailable } from '../../errors/database-fault.js';
import { codeOf } from '../../errors/error-code.js';
import { errorTrace } from '../../errors/error-trace.js';

interface Repeated {
  readonly name: string;
  readonly everyMs: number;
  readonly work: () => Promise<void>;
  running?: Promise<void>;
  cancelTimer?: () => void;
}

/** How long a shutdown waits for the runs in progress, which may wait for a silent database. */
const STOP_MS = 1_000;

/** Minimum time between two log lines about the same work. */
const QUIET_MS = 30_000;

/**
 * Work that each worker process repeats. It is a timer and no job, because a wiped store forgets its schedulers. Runs of the
 * same work never overlap within a process; those of several processes may.
 */
@Injectable()
export class Intervals implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly log = new Logger(Intervals.name);
  private readonly repeated: Repeated[] = [];
  private readonly quietUntilMs = new Map<string, number>();
  private isStopped = false;

  constructor(
    private readonly env: Env,
    private readonly clock: Clock,
    private readonly stopping: Stopping,
  ) {}

  /** Repeats work, so that a run begins `everyMs` milliseconds after the start and after the end of each run. */
  every(everyMs: number, name: string, work: () => Promise<void>): void {
    this.repeated.push({ name, everyMs, work });
  }

  onApplicationBootstrap(): void {
    if (this.env.hasRole('worker')) for (const each of this.repeated) this.plan(each);
  }

  async onModuleDestroy(): Promise<void> {
    this.isStopped = true;
    for (const { cancelTimer } of this.repeated) cancelTimer?.();
    await withTimeout(Promise.all(this.repeated.map(({ running }) => running)), STOP_MS, () => undefined);
  }

  private plan(each: Repeated): void {
    if (this.isStopped) return;
    each.cancelTimer = this.clock.after(each.everyMs, () => {
      each.running = this.run(each).finally(() => this.plan(each));
    });
  }

  private async run({ name, work }: Repeated): Promise<void> {
    if (this.stopping.isShuttingDown) return;
    await work().catch((error: unknown) => this.warn(name, error));
  }

  /** While PostgreSQL is unavailable, all work counts as one. */
  private warn(work: string, error: unknown): void {
    const nowMs = this.clock.monotonicMs();
    const isUnavailable = isDatabaseUnavailable(error);
    const about = isUnavailable ? 'database' : work;
    if (nowMs < (this.quietUntilMs.get(about) ?? nowMs)) return;
    this.quietUntilMs.set(about, nowMs + QUIET_MS);
    if (isUnavailable) this.log.warn({ msg: 'PostgreSQL is unavailable, so due rows wait', code: codeOf(error) });
    else this.log.warn({ msg: 'work that is repeated failed, and is tried again', work, ...errorTrace(error) });
  }
}
