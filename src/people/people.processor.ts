import { randomUUID } from 'node:crypto';
import { Processor } from '@nestjs/bullmq';
import type { OnModuleInit } from '@nestjs/common';
import { Clock } from '../config/clock.js';
import { Env } from '../config/env.js';
import { retryUntilStored } from '../database/retries.js';
import { Feeder } from '../queue/work/feeder.js';
import { Host, WORKER } from '../queue/work/host.js';
import { limitsOf } from '../queue/work/limiter.js';
import { WorkQueues } from '../queue/work/work-queues.js';
import { WorkStore } from '../queue/work/work-store.js';
import { PeopleCalls } from './people-calls.service.js';
import { NOT_SENT, UNREADABLE } from './rules/call-result.js';
import { CallsRepository, LEAVES_WITHIN_MS, type TakenCall } from './store/calls.repository.js';
import { DuePeopleRepository } from './store/due-people.repository.js';

/** Brings the platform to the desired state: one job names a person and makes at most one call for it. */
@Processor('people', WORKER)
export class PeopleProcessor extends Host implements OnModuleInit {
  /** Maximum jobs in progress over all processes. */
  private readonly concurrency: number;

  constructor(
    store: WorkStore,
    queues: WorkQueues,
    env: Env,
    private readonly feeder: Feeder,
    private readonly clock: Clock,
    private readonly due: DuePeopleRepository,
    private readonly rows: CallsRepository,
    private readonly calls: PeopleCalls,
  ) {
    const { max, duration, concurrency } = limitsOf(env.USER_MANAGEMENT_CALLS_PER_MINUTE);
    // Two processes together run as many jobs as may run; more processes are bounded by the queue's own concurrency.
    super(store, queues.of('people'), { concurrency: Math.ceil(concurrency / 2), limiter: { max, duration } });
    this.concurrency = concurrency;
  }

  onModuleInit(): void {
    const { concurrency } = this;
    const due = async () => (this.calls.isConfigured ? this.due.round() : []);
    this.feeder.feed({ queue: this.queue, concurrency, due });
  }

  protected async work(id: string): Promise<boolean> {
    if (!this.calls.isConfigured) return false;
    const takenMs = this.clock.monotonicMs();
    const taken = await this.take(id);
    if (!taken) return false;
    const profile = await this.calls.open(taken);
    const isLate = this.clock.monotonicMs() - takenMs > LEAVES_WITHIN_MS;
    const result = profile && !isLate ? await this.calls.perform(taken, profile) : profile ? NOT_SENT : UNREADABLE;
    return retryUntilStored(() => this.rows.settle(taken, result), this.clock);
  }

  protected async postpone(id: string): Promise<void> {
    await this.rows.postpone(id);
  }

  /** Marks a call. If its commit is not confirmed, nothing is sent, and the mark is taken back, because only this process knows. */
  private async take(id: string): Promise<TakenCall | undefined> {
    const callId = randomUUID();
    try {
      return await this.rows.take(id, callId);
    } catch (error) {
      await retryUntilStored(() => this.rows.close(id, callId), this.clock);
      throw error;
    }
  }
}
