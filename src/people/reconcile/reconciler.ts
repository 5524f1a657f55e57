import { Injectable, type OnModuleInit } from '@nestjs/common';
import { retryUntilStored } from '../../database/retries.js';
import { IMPORT_QUEUE, USER_MANAGEMENT_QUEUE } from '../../queue/backend/queue-names.js';
import { DueLoop, DueParts, type DueWork } from '../../queue/due-rows/due-loop.js';
import { Poller } from '../../queue/notifier/poller.js';
import { annotate, inSpan, markFailed } from '../../tracing/trace.js';
import { DependentsRepository } from '../store/dependents.repository.js';
import { type Claim, type ClaimedCall, ClaimRepository } from './claim.repository.js';
import { NOT_SENT, PlatformPeople } from './platform-people.js';
import { CallResultsRepository } from './results.repository.js';

/** Maximum calls in flight per process. High enough that a slow platform leaves no budget unused. */
export const CONCURRENCY = 24;

/** How often to poll for people left waiting by concurrent commits. */
const OVERLOOKED_MS = 10_000;

/** An activation that starts within this time is soon enough after a bulk call, whose lane is paced anyway. */
const BULK_WAIT_MS = 250;

/** How long imports wait before they start more clients, so that one start follows many calls. */
const IMPORT_WAIT_MS = 500;

/** Maximum time without a notification before the poller claims people itself, and maximum claims per poll. */
const SILENCE_MS = 3_000;
const CLAIMS_PER_POLL = 20;

/** Brings the platform to the desired state: one activation makes one user-management call. */
@Injectable()
export class Reconciler extends DueLoop<ClaimedCall, number, ClaimRepository> implements OnModuleInit {
  private notifiedAtMs = 0;
  private isRequeueing = false;

  constructor(
    claims: ClaimRepository,
    private readonly platform: PlatformPeople,
    private readonly results: CallResultsRepository,
    private readonly dependents: DependentsRepository,
    private readonly poller: Poller,
    parts: DueParts,
  ) {
    const work: DueWork<ClaimedCall> = {
      name: 'people',
      queue: USER_MANAGEMENT_QUEUE,
      concurrency: CONCURRENCY,
      traced: ({ person, step }) => ({
        'notebridge.person': person.id,
        'notebridge.operation': step.operation,
        'notebridge.lane': person.lane,
      }),
      isConfigured: () => platform.isConfigured,
    };
    super(work, claims, parts);
  }

  onModuleInit(): void {
    this.poller.whenDue(
      'people',
      (bind) => this.nextDue(bind),
      () => this.poll(),
    );
    this.poller.whenDue(
      'clients of new providers',
      () => this.dependents.nextDue(),
      async () => this.requeueClients(),
    );
    this.poller.every(OVERLOOKED_MS, 'overlooked people', () => this.dependents.requeueOverlooked());
  }

  /** Handles an activation. @returns how long all calls pause, in milliseconds, because of a 429; 0 if they do not */
  async activate(): Promise<number> {
    this.notifiedAtMs = this.parts.clock.monotonicMs();
    return (await this.reconcileNext())?.result ?? 0;
  }

  /** Claims a person, makes its one call, records the result. @returns undefined if no person was claimed */
  async reconcileNext(): Promise<{ result: number } | undefined> {
    // The activation that waits to claim plans the next one.
    if (!this.mayClaim() || this.due.isClaimQueued) return undefined;
    let waitMs = 0;
    const called = await this.runOne(({ person, nextInMs }) => {
      if (person.lane === 'bulk') waitMs = BULK_WAIT_MS;
      if (nextInMs === undefined) this.notifyIn(0);
      else if (nextInMs !== null) this.parts.notifier.planAt(USER_MANAGEMENT_QUEUE, 'due', nextInMs);
    });
    this.notifyIn(waitMs);
    return called;
  }

  /** @returns the pause that `activate` returns */
  protected async work(claim: Claim): Promise<number> {
    const { person, step, sendBeforeMs } = claim.row;
    const left = sendBeforeMs - this.parts.clock.monotonicMs();
    const result = left > 0 ? await this.platform.perform(person, step, left) : NOT_SENT;
    const { state, code, pauseMs } = await inSpan('store people', {}, () =>
      retryUntilStored(() => this.results.record(claim, result), this.parts.clock),
    );
    const { outcome } = result.outcome;
    annotate({ 'notebridge.outcome': outcome, 'notebridge.state': state });
    if (result.errorCode !== undefined) markFailed(result.errorCode);
    this.log.debug({ person: person.id, operation: step.operation, outcome, state, code });
    if (person.kind === 'provider') await this.requeueClients();
    // Imports keep only a few clients unfinished, and start the next ones.
    else if (person.lane === 'bulk') this.parts.notifier.notify(IMPORT_QUEUE, 'client-called', IMPORT_WAIT_MS);
    return pauseMs;
  }

  /** Requeues the clients of newly mirrored providers, in batches, one run at a time per process. */
  async requeueClients(): Promise<void> {
    if (this.isRequeueing) return;
    this.isRequeueing = true;
    try {
      while (!this.shutdown.signal.aborted && (await this.dependents.requeueClients()) !== undefined) this.notifyIn(0);
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
    const isStale = () => this.parts.clock.monotonicMs() - this.notifiedAtMs > SILENCE_MS;
    for (let claims = 0; claims < CLAIMS_PER_POLL && isStale(); claims++) {
      if (!(await this.reconcileNext())) return;
    }
  }
}
