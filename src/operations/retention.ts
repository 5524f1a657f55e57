import { Injectable, Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { Clock } from '../config/clock.js';
import { Env } from '../config/env.js';
import { Poller } from '../queue/notifier/poller.js';
import { RetentionRepository } from './retention.repository.js';

const DAY_MS = 86_400_000;

/** Milliseconds between two rounds: well under a day, since a process that restarts begins to count anew. */
const EVERY_MS = DAY_MS / 8;

/** Drops what was kept long enough: histories and copies, never notes or the audit trail. */
@Injectable()
export class Retention implements OnModuleInit, OnModuleDestroy {
  private readonly log = new Logger(Retention.name);
  private stopped = false;

  constructor(
    private readonly env: Env,
    private readonly clock: Clock,
    private readonly poller: Poller,
    private readonly retention: RetentionRepository,
  ) {}

  onModuleInit(): void {
    this.poller.every(EVERY_MS, 'retention', () => this.dropOld());
  }

  onModuleDestroy(): void {
    this.stopped = true;
  }

  private async dropOld(): Promise<void> {
    const moment = new Date(this.clock.now().getTime() - this.env.RETENTION_DAYS * DAY_MS);
    const dropped = await this.retention.dropBefore(moment, () => !this.stopped);
    if (Object.values(dropped).some((rows) => rows > 0)) this.log.log({ msg: 'old rows were dropped', ...dropped });
  }
}
