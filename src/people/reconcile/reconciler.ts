import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { retryUntilStored } from '../../database/retries.js';
import { DueLoopDeps } from '../../due-rows/due-loop.js';
import { USER_MANAGEMENT_QUEUE } from '../../queue/backend/queue-names.js';
import { DependentsRepository } from '../store/dependents.repository.js';
import { type Claim, ClaimRepository } from './claim.repository.js';
import { NOT_SENT, PlatformPeople } from './platform-people.js';
import { CallResultsRepository } from './results.repository.js';

/** Maximum calls in flight per process. High enough that a slow platform leaves no budget unused. */
export const CONCURRENCY = 24;

/** How often to poll for people left waiting by concurrent commits. */
const OVERLOOKED_MS = 10_000;

/** An activation that starts within this time is soon enough after a bulk call, whose lane is paced anyway. */
const BULK_WAIT_MS = 250;

/** Maximum time without a notification before the poller claims people itself, and maximum claims per poll. */
const SILENCE_MS = 3_000;
const CLAIMS_PER_POLL = 20;

/** Brings the platform to the desired state: one activation makes one user-management call. */
@Injectable()
export class Reconciler implements OnModuleInit {
  private readonly log = new Logger(Reconciler.name);
  private isStopping = false;
  private notifiedAtMs = 0;
  private isRequeueing = false;

  constructor(
    private readonly claims: ClaimRepository,
    private readonly platform: PlatformPeople,
    private readonly results: CallResultsRepository,
    private readonly dependents: DependentsRepository,
    private readonly deps: DueLoopDeps,
  ) {}

  onModuleInit(): void {
    const { poller } = this.deps;
    poller.whenDue(
      'people',
      (bind) => (this.platform.isConfigured ? this.claims.nextDue(bind) : null),
      () => this.poll(),
    );
    poller.whenDue(
      'clients of new providers',
      () => this.dependents.nextDue(),
      async () => this.requeueClients(),
    );
    poller.every(OVERLOOKED_MS, 'overlooked people', () => this.dependents.requeueOverlooked());
  }

  /** Stops claiming. */
  stop(): void {
    this.isStopping = true;
  }

  /** Handles an activation. @returns how long all calls pause, in milliseconds, because of a 429; 0 if they do not */
  async activate(): Promise<number> {
    this.notifiedAtMs = this.deps.clock.monotonicMs();
    return (await this.reconcileNext())?.pauseMs ?? 0;
  }

  /** Claims a person, makes its one call, records the result. @returns undefined if no person was claimed */
  async reconcileNext(): Promise<{ pauseMs: number } | undefined> {
    // The activation that waits to claim plans the next one.
    if (!this.mayClaim() || this.claims.isClaimQueued) return undefined;
    const claim = await this.claims.claim();
    if (!claim) {
      this.notifyIn(0);
      return undefined;
    }
    const { person, nextInMs } = claim.row;
    if (nextInMs === undefined) this.notifyIn(0);
    else if (nextInMs !== null) this.deps.notifier.planAt(USER_MANAGEMENT_QUEUE, nextInMs);
    const pauseMs = await this.work(claim).finally(() => this.claims.done(claim.lease));
    this.notifyIn(person.lane === 'bulk' ? BULK_WAIT_MS : 0);
    return { pauseMs };
  }

  /** @returns the pause that `activate` returns */
  private async work(claim: Claim): Promise<number> {
    const { person, step, sendBeforeMs } = claim.row;
    const left = sendBeforeMs - this.deps.clock.monotonicMs();
    const result = left > 0 ? await this.platform.perform(person, step, left) : NOT_SENT;
    const { state, code, pauseMs } = await retryUntilStored(() => this.results.record(claim, result), this.deps.clock);
    const { outcome } = result.outcome;
    this.log.debug({ person: person.id, operation: step.operation, outcome, state, code });
    if (person.kind === 'provider') await this.requeueClients();
    return pauseMs;
  }

  /** Requeues the clients of newly mirrored providers, in batches, one run at a time per process. */
  async requeueClients(): Promise<void> {
    if (this.isRequeueing) return;
    this.isRequeueing = true;
    try {
      while (!this.isStopping && (await this.dependents.requeueClients()) !== undefined) this.notifyIn(0);
    } finally {
      this.isRequeueing = false;
    }
  }

  /**
   * Notifies for a due person, because the queue may lose notifications. If none arrived for `SILENCE_MS`, Redis is
   * unavailable, so this claims people itself, one after the other, under the same limit.
   */
  private async poll(): Promise<void> {
    this.notifyIn(0);
    const isStale = () => this.deps.clock.monotonicMs() - this.notifiedAtMs > SILENCE_MS;
    for (let claims = 0; claims < CLAIMS_PER_POLL && isStale(); claims++) {
      if (!(await this.reconcileNext())) return;
    }
  }

  private mayClaim(): boolean {
    return !this.isStopping && this.platform.isConfigured && this.deps.worker.hasFreshHeartbeat();
  }

  private notifyIn(waitMs: number): void {
    this.deps.notifier.notify(USER_MANAGEMENT_QUEUE, waitMs);
  }
}
