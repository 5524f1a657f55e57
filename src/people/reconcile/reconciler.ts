import { Injectable, Logger } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Stopping } from '../../config/stopping.js';
import { Database } from '../../database/database.js';
import { retryUntilStored } from '../../database/retries.js';
import { USER_MANAGEMENT_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { DependentsRepository } from '../store/dependents.repository.js';
import { DuePeopleRepository } from '../store/due-people.repository.js';
import { type ClaimOutcome, ClaimRepository, type Turn, UnconfirmedCommit } from './claim.repository.js';
import { PlatformPeople } from './platform-people.js';
import { CallResultsRepository } from './results.repository.js';

/** Milliseconds without a notification after which the poller does the work itself, and how many turns it takes at once. */
const SILENCE_MS = 3_000;
const TURNS_PER_SWEEP = 20;

/** Milliseconds before the next look at people who are due and whom somebody else holds locked. */
const LOCKED_MS = 25;

/** One activation of the queue: at most one HTTP attempt at a user-management endpoint. */
@Injectable()
export class Reconciler {
  private readonly log = new Logger(Reconciler.name);
  private asking: Promise<unknown> = Promise.resolve();
  private someoneWaits = false;
  private answeredAt = 0;
  private isWaking = false;

  constructor(
    private readonly turns: ClaimRepository,
    private readonly due: DuePeopleRepository,
    private readonly platform: PlatformPeople,
    private readonly settling: CallResultsRepository,
    private readonly dependents: DependentsRepository,
    private readonly database: Database,
    private readonly notifier: QueueNotifier,
    private readonly clock: Clock,
    private readonly stopping: Stopping,
  ) {}

  /** Answers a notification: takes a turn if one can be had. */
  async answerBell(): Promise<void> {
    this.answeredAt = this.clock.monotonicMs();
    await this.claimNext();
  }

  /** Takes a turn, makes its call, stores what it came to, and notifies for the next. @returns whether one could be had */
  private async claimNext(): Promise<boolean> {
    if (!this.platform.isConfigured || this.stopping.begun) return false;
    const offer = await this.ask().catch((error) => this.notGranted(error));
    if (!offer) return false;
    const { turn, nobody } = offer;
    const next = this.notifyForNext(nobody);
    if (!turn) {
      await next;
      return false;
    }
    await this.take(turn).finally(() => this.due.done(turn.lease));
    this.notifier.notify(USER_MANAGEMENT_QUEUE, 'settled');
    await next;
    if (turn.row.kind === 'provider') await this.requeueClients();
    return true;
  }

  private async take(turn: Turn): Promise<void> {
    const left = turn.sendBeforeMs - this.clock.monotonicMs();
    const result = left > 0 ? await this.platform.perform(turn.row, turn.step, left) : this.platform.notSent();
    const { state, code } = await retryUntilStored(() => this.settling.settle(turn, result), this.clock);
    this.log.debug({
      person: turn.row.id,
      operation: turn.step.operation,
      outcome: result.outcome.outcome,
      state,
      code,
    });
  }

  /**
   * Notifies when the next turn can be had. Beside the call, whose second to leave has begun, and never its failure: what
   * is not rung for here, the poller notifies for.
   */
  private async notifyForNext(nobody: boolean): Promise<void> {
    if (nobody) await this.requeueClients();
    const inMs = await this.turns.nextInMs().catch(() => null);
    if (inMs === null) return;
    this.notifier.notify(USER_MANAGEMENT_QUEUE, 'next-turn', nobody && inMs === 0 ? LOCKED_MS : inMs);
  }

  /**
   * Wakes the clients of providers that were mirrored just now, batch after batch; whoever comes while somebody in this
   * process is at it leaves it to them.
   */
  async requeueClients(): Promise<void> {
    if (this.isWaking || this.stopping.begun) return;
    this.isWaking = true;
    try {
      for (
        let woken = await this.dependents.requeueSome();
        woken !== undefined;
        woken = await this.dependents.requeueSome()
      ) {
        if (woken > 0) this.notifier.notify(USER_MANAGEMENT_QUEUE, 'clients-woken');
        if (this.stopping.begun) return;
      }
    } finally {
      this.isWaking = false;
    }
  }

  /** A slot that stands although its commit was not confirmed is given back: only this process knows it unused. */
  private async notGranted(error: unknown): Promise<never> {
    if (!(error instanceof UnconfirmedCommit)) throw error;
    await retryUntilStored(() => this.settling.rollBack(error.turn, this.platform.notSent()), this.clock).finally(() =>
      this.due.done(error.turn.lease),
    );
    throw error.fault;
  }

  /** Wakes whoever was overlooked. */
  async requeueOverlooked(): Promise<void> {
    await this.dependents.overlooked(this.database.pool);
  }

  /**
   * Asks for a turn, one at a time in a process: more would only queue for the budget's lock, and hold up the answer
   * that wants it for a pause. Who comes while another waits already leaves: that one asks later and sees it all.
   */
  private async ask(): Promise<ClaimOutcome | undefined> {
    if (this.someoneWaits) return undefined;
    this.someoneWaits = true;
    await this.asking;
    this.someoneWaits = false;
    if (this.stopping.begun) return undefined;
    const offer = this.turns.next();
    this.asking = offer.catch(() => undefined);
    return offer;
  }

  /**
   * Notifies when somebody is due: the queue may have lost every notification. When no notification was heard for long, the queue's store is
   * away: then turns are taken here, one after the other, under the same limit.
   */
  async poll(): Promise<void> {
    if (!this.platform.isConfigured || !(await this.due.someoneIsDue())) return;
    this.notifier.notify(USER_MANAGEMENT_QUEUE, 'poll');
    for (let turns = 0; turns < TURNS_PER_SWEEP && this.isStale(); turns++) {
      if (!(await this.claimNext())) return;
    }
  }

  private isStale(): boolean {
    return this.clock.monotonicMs() - this.answeredAt > SILENCE_MS;
  }
}
