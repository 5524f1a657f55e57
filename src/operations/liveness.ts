import { Injectable } from '@nestjs/common';
import { Clock } from '../config/clock.js';
import { Database, withClient } from '../database/database.js';

/** Milliseconds for which the process's own connections must have been of no use before a restart is called for. */
const STUCK_MS = 60_000;

/** Whether a restart would help: no connection of the process is answered, while a new one is. */
@Injectable()
export class Liveness {
  private failingSinceMs: number | undefined;
  private isStuck = false;
  private looking: Promise<void> | undefined;

  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /** As the last look found it; begins the next one, and waits for nothing. */
  isAlive(): boolean {
    void this.look();
    return !this.isStuck;
  }

  /** Looks once; those who ask at the same time share a look. */
  look(): Promise<void> {
    this.looking ??= this.lookOnce().finally(() => {
      this.looking = undefined;
    });
    return this.looking;
  }

  private async lookOnce(): Promise<void> {
    const begunMs = this.clock.monotonicMs();
    if (await succeeds(this.database.pool.query('SELECT 1'))) {
      this.failingSinceMs = undefined;
      this.isStuck = false;
      return;
    }
    this.failingSinceMs ??= begunMs;
    if (this.clock.monotonicMs() - this.failingSinceMs < STUCK_MS) return;
    this.isStuck = await succeeds(withClient(this.database.url, (client) => client.query('SELECT 1')));
  }
}

const succeeds = async (work: Promise<unknown>) => (await Promise.allSettled([work]))[0].status === 'fulfilled';
