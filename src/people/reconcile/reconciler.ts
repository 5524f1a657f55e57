import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Stopping } from '../../config/stopping.js';
import { retryUntilStored } from '../../database/retries.js';
import { USER_MANAGEMENT_QUEUE } from '../../queue/backend/queue-names.js';
import { Poller } from '../../queue/notifier/poller.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { annotate, inSpan, markFailed } from '../../tracing/trace.js';
import { DependentsRepository } from '../store/dependents.repository.js';
import { DuePeopleRepository } from '../store/due-people.repository.js';
import { type Claim, type ClaimOutcome, ClaimRepository, UnconfirmedCommit } from './claim.repository.js';
import { NOT_SENT, PlatformPeople } from './platform-people.js';
import { CallResultsRepository } from './results.repository.js';

/** How often to poll for people left waiting by concurrent commits. */
const OVERLOOKED_MS = 10_000;

/** Maximum time without a notification before the poller claims people itself, and maximum claims per poll. */
const SILENCE_MS = 3_000;
const CLAIMS_PER_POLL = 20;

/** Brings the platform to the desired state: one activation makes one user-management call. */
@Injectable()
export class Reconciler implements OnModuleInit {
  private readonly log = new Logger(Reconciler.name);
  private claiming: Promise<unknown> = Promise.resolve();
  private isClaimQueued = false;
  private notifiedAtMs = 0;
  private isRequeueing = false;

  constructor(
    private readonly claims: ClaimRepository,
    private readonly due: DuePeopleRepository,
    private readonly platform: PlatformPeople,
    private readonly results: CallResultsRepository,
    private readonly dependents: DependentsRepository,
    private readonly notifier: QueueNotifier,
    private readonly poller: Poller,
    private readonly clock: Clock,
    private readonly stopping: Stopping,
  ) {}

  onModuleInit(): void {
    this.poller.whenDue(
      'people',
      (bind) => (this.platform.isConfigured ? this.due.nextDue(bind) : null),
      () => this.poll(),
    );
    this.poller.whenDue(
      'clients of new providers',
      () => this.dependents.nextDue(),
      async () => void (await this.requeueClients()),
    );
    this.poller.every(OVERLOOKED_MS, 'overlooked people', () => this.dependents.requeueOverlooked());
  }

  /** Handles an activation. @returns how long all calls pause, in milliseconds, because of a 429; 0 if they do not */
  async activate(): Promise<number> {
    this.notifiedAtMs = this.clock.monotonicMs();
    return (await this.reconcileNext())?.pauseMs ?? 0;
  }

  /** Claims a person, makes its one call, records the result. @returns undefined if no person was claimed */
  async reconcileNext(): Promise<{ pauseMs: number } | undefined> {
    if (!this.platform.isConfigured) return undefined;
    const claim = await this.claimNext();
    this.notifier.notify(USER_MANAGEMENT_QUEUE, 'next-claim');
    if (!claim) return undefined;
    const pauseMs = await this.callTraced(claim).finally(() => this.due.release(claim.row.id));
    this.notifier.notify(USER_MANAGEMENT_QUEUE, 'settled');
    if (claim.row.kind === 'provider') await this.requeueClients();
    return { pauseMs };
  }

  /** Claims the next person. Decides about others on the way, as long as they need no call. */
  private async claimNext(): Promise<Claim | undefined> {
    while (!this.stopping.begun) {
      const outcome = await this.claim().catch((error) => this.rollBack(error));
      if (!outcome || outcome.claim) return outcome?.claim ?? undefined;
      if (outcome.noneDue && !(await this.requeueClients())) return undefined;
    }
    return undefined;
  }

  /** Makes a call within the trace of the EHR's last change of the person. */
  private callTraced(claim: Claim): Promise<number> {
    const { row, step, grant } = claim;
    const attributes = {
      'notebridge.person': row.id,
      'notebridge.operation': step.operation,
      'notebridge.lane': row.lane,
      'notebridge.attempt': row.failures + 1,
      // Includes the waits for a permit and for a worker.
      ...(row.dueAt && { 'notebridge.waited_ms': Math.max(0, grant.grantedAt.getTime() - row.dueAt.getTime()) }),
    };
    const causes = row.traceparent === null ? [] : [row.traceparent];
    return inSpan('process people', { kind: 'CONSUMER', causes, attributes }, () => this.call(claim));
  }

  private async call(claim: Claim): Promise<number> {
    const left = claim.sendBeforeMs - this.clock.monotonicMs();
    const result = left > 0 ? await this.platform.perform(claim.row, claim.step, left) : NOT_SENT;
    const { state, code, pauseMs } = await inSpan('store people', {}, () =>
      retryUntilStored(() => this.results.record(claim, result), this.clock),
    );
    const { outcome } = result.outcome;
    annotate({ 'notebridge.outcome': outcome, 'notebridge.state': state });
    if (result.errorCode !== undefined) markFailed(result.errorCode);
    this.log.debug({ person: claim.row.id, operation: claim.step.operation, outcome, state, code });
    return pauseMs;
  }

  /** Requeues the clients of newly mirrored providers, in batches, one run at a time per process. @returns their number */
  async requeueClients(): Promise<number> {
    if (this.isRequeueing) return 0;
    this.isRequeueing = true;
    let all = 0;
    try {
      for (let requeued: number | undefined = 0; requeued !== undefined && !this.stopping.begun; all += requeued ?? 0) {
        requeued = await this.dependents.requeueClients();
      }
    } finally {
      this.isRequeueing = false;
    }
    if (all > 0) this.notifier.notify(USER_MANAGEMENT_QUEUE, 'clients-requeued');
    return all;
  }

  /** Frees the permit of an unconfirmed commit, because only this process knows that it is unused. */
  private async rollBack(error: unknown): Promise<never> {
    if (!(error instanceof UnconfirmedCommit)) throw error;
    const { claim, fault } = error;
    const rolledBack = retryUntilStored(() => this.results.rollBack(claim, NOT_SENT), this.clock);
    await rolledBack.finally(() => this.due.release(claim.row.id));
    throw fault;
  }

  /**
   * Claims one person at a time per process. More would only queue for the budget's lock, and delay an answer that needs
   * it for a pause. Returns undefined if another activation is already queued, because that one sees the same people.
   */
  private async claim(): Promise<ClaimOutcome | undefined> {
    if (this.isClaimQueued) return undefined;
    this.isClaimQueued = true;
    await this.claiming;
    this.isClaimQueued = false;
    if (this.stopping.begun) return undefined;
    const outcome = this.claims.claimNext();
    this.claiming = outcome.catch(() => undefined);
    return outcome;
  }

  /**
   * Notifies for a due person, because the queue may lose notifications. If none arrived for `SILENCE_MS`, Redis is
   * unavailable, so this claims people itself, one after the other, under the same limit.
   */
  private async poll(): Promise<void> {
    this.notifier.notify(USER_MANAGEMENT_QUEUE, 'poll');
    const isStale = () => this.clock.monotonicMs() - this.notifiedAtMs > SILENCE_MS;
    for (let claims = 0; claims < CLAIMS_PER_POLL && isStale(); claims++) {
      if (!(await this.reconcileNext())) return;
    }
  }
}
