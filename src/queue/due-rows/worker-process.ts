import { randomUUID } from 'node:crypto';
import { Injectable, Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { errorTrace } from '../../http/problem/error-trace.js';
import { WorkersRepository } from './workers.repository.js';

/** Milliseconds between two beats. */
const BEAT_MS = 2_000;

/**
 * Milliseconds after its last beat for which a process may claim rows and begin calls: well before others take its rows
 * (`ALIVE_SECONDS`). Whoever was held up, by a blocked event loop or by the system, so finds out before it does harm.
 */
const MAY_WORK_MS = 5_000;

/** This process as the owner of leases: it beats while it lives, and all that it has leased is free when it does not. */
@Injectable()
export class WorkerProcess implements OnModuleInit, OnApplicationShutdown {
  /** Another one after each start. */
  readonly id: string = randomUUID();
  private readonly log = new Logger(WorkerProcess.name);
  private lastBeatMs = Number.NEGATIVE_INFINITY;
  private timer: NodeJS.Timeout | undefined;
  private underWay: Promise<void> | undefined;
  private stopped = false;

  constructor(
    private readonly env: Env,
    private readonly clock: Clock,
    private readonly workers: WorkersRepository,
  ) {}

  /** False while the last beat is too old: then nothing may be claimed, and no call may begin. */
  mayWork(): boolean {
    return this.clock.monotonicMs() - this.lastBeatMs < MAY_WORK_MS;
  }

  async onModuleInit(): Promise<void> {
    if (!this.env.hasRole('worker')) return;
    await this.beat(() => this.workers.enter(this.id));
    this.plan();
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    await this.underWay;
    if (this.lastBeatMs > Number.NEGATIVE_INFINITY) await this.workers.leave(this.id).catch(() => undefined);
    await this.workers.close();
  }

  private plan(): void {
    if (this.stopped) return;
    this.timer = setTimeout(() => {
      this.underWay = this.beat(() => this.workers.beat(this.id)).finally(() => this.plan());
    }, BEAT_MS);
  }

  private async beat(write: () => Promise<void>): Promise<void> {
    // Counted from before it leaves: the database counts from later.
    const sentAtMs = this.clock.monotonicMs();
    try {
      await write();
      this.lastBeatMs = sentAtMs;
    } catch (error) {
      if (this.mayWork()) this.log.warn({ msg: 'a heartbeat was lost; the next one comes', ...errorTrace(error) });
    }
  }
}
