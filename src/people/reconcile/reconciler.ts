import { Injectable, Logger } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Stopping } from '../../config/stopping.js';
import { Database } from '../../database/database.js';
import { holdOn } from '../../database/hold-on.js';
import { USER_MANAGEMENT_QUEUE } from '../../queue/backend/queue-names.js';
import { Doorbell } from '../../queue/notifier/queue-notifier.js';
import { WakesRepository } from '../store/dependents.repository.js';
import { DuePeopleRepository } from '../store/due-people.repository.js';
import { DoubtfulTurn, type Turn, type TurnOffer, TurnRepository } from './claim.repository.js';
import { PlatformPeople } from './platform-people.js';
import { SettleRepository } from './results.repository.js';

/** Milliseconds without a bell after which the sweep does the work itself, and how many turns it takes at once. */
const SILENCE_MS = 3_000;
const TURNS_PER_SWEEP = 20;

/** Milliseconds before the next look at people who are due and whom somebody else holds locked. */
const LOCKED_MS = 25;

/** One activation of the queue: at most one HTTP attempt at a user-management endpoint. */
@Injectable()
export class MirrorService {
  private readonly log = new Logger(MirrorService.name);
  private asking: Promise<unknown> = Promise.resolve();
  private someoneWaits = false;
  private answeredAt = 0;
  private isWaking = false;

  constructor(
    private readonly turns: TurnRepository,
    private readonly due: DuePeopleRepository,
    private readonly platform: PlatformPeople,
    private readonly settling: SettleRepository,
    private readonly wakes: WakesRepository,
    private readonly database: Database,
    private readonly doorbell: Doorbell,
    private readonly clock: Clock,
    private readonly stopping: Stopping,
  ) {}

  /** Answers a bell: takes a turn if one can be had. */
  async answerBell(): Promise<void> {
    this.answeredAt = this.clock.monotonicMs();
    await this.takeTurn();
  }

  /** Takes a turn, makes its call, stores what it came to, and rings for the next. @returns whether one could be had */
  private async takeTurn(): Promise<boolean> {
    if (!this.platform.isConfigured || this.stopping.begun) return false;
    const offer = await this.ask().catch((error) => this.notGranted(error));
    if (!offer) return false;
    const { turn, nobody } = offer;
    const next = this.ringForNext(nobody);
    if (!turn) {
      await next;
      return false;
    }
    await this.take(turn).finally(() => this.due.done(turn.lease));
    this.doorbell.ring(USER_MANAGEMENT_QUEUE, 'settled');
    await next;
    if (turn.row.kind === 'provider') await this.wakeClients();
    return true;
  }

  private async take(turn: Turn): Promise<void> {
    const left = turn.sendBeforeMs - this.clock.monotonicMs();
    const result = left > 0 ? await this.platform.perform(turn.row, turn.step, left) : this.platform.notSent();
    const { state, code } = await holdOn(() => this.settling.settle(turn, result), this.clock);
    this.log.debug({
      person: turn.row.id,
      operation: turn.step.operation,
      outcome: result.outcome.outcome,
      state,
      code,
    });
  }

  /**
   * Rings when the next turn can be had. Beside the call, whose second to leave has begun, and never its failure: what
   * is not rung for here, the sweep rings for.
   */
  private async ringForNext(nobody: boolean): Promise<void> {
    if (nobody) await this.wakeClients();
    const inMs = await this.turns.nextInMs().catch(() => null);
    if (inMs === null) return;
    this.doorbell.ring(USER_MANAGEMENT_QUEUE, 'next-turn', nobody && inMs === 0 ? LOCKED_MS : inMs);
  }

  /**
   * Wakes the clients of providers that were mirrored just now, batch after batch; whoever comes while somebody in this
   * process is at it leaves it to them.
   */
  async wakeClients(): Promise<void> {
    if (this.isWaking || this.stopping.begun) return;
    this.isWaking = true;
    try {
      for (let woken = await this.wakes.wakeSome(); woken !== undefined; woken = await this.wakes.wakeSome()) {
        if (woken > 0) this.doorbell.ring(USER_MANAGEMENT_QUEUE, 'clients-woken');
        if (this.stopping.begun) return;
      }
    } finally {
      this.isWaking = false;
    }
  }

  /** A slot that stands although its commit was not confirmed is given back: only this process knows it unused. */
  private async notGranted(error: unknown): Promise<never> {
    if (!(error instanceof DoubtfulTurn)) throw error;
    await holdOn(() => this.settling.takeBack(error.turn, this.platform.notSent()), this.clock).finally(() =>
      this.due.done(error.turn.lease),
    );
    throw error.fault;
  }

  /** Wakes whoever was overlooked. */
  async wakeOverlooked(): Promise<void> {
    await this.wakes.overlooked(this.database.pool);
  }

  /**
   * Asks for a turn, one at a time in a process: more would only queue for the budget's lock, and hold up the answer
   * that wants it for a pause. Who comes while another waits already leaves: that one asks later and sees it all.
   */
  private async ask(): Promise<TurnOffer | undefined> {
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
   * Rings when somebody is due: the queue may have lost every bell. When no bell was heard for long, the queue's store is
   * away: then turns are taken here, one after the other, under the same limit.
   */
  async sweep(): Promise<void> {
    if (!this.platform.isConfigured || !(await this.due.someoneIsDue())) return;
    this.doorbell.ring(USER_MANAGEMENT_QUEUE, 'sweep');
    for (let turns = 0; turns < TURNS_PER_SWEEP && this.isSilent(); turns++) {
      if (!(await this.takeTurn())) return;
    }
  }

  private isSilent(): boolean {
    return this.clock.monotonicMs() - this.answeredAt > SILENCE_MS;
  }
}
