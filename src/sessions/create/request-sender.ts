import { Injectable, Logger } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Random } from '../../config/random.js';
import { retryUntilStored } from '../../database/retries.js';
import { errorTrace } from '../../http/problem/error-trace.js';
import { Metrics } from '../../http/server/metrics.js';
import { SessionsClient } from '../../platform/clients/sessions-client.js';
import { Contract } from '../../platform/contract/contract.js';
import { PlatformError } from '../../platform/contract/platform-errors.js';
import type { CreateTherapySessionRequest } from '../../platform/contract/wire-types.js';
import { backoffMs } from '../../queue/backend/backoff.js';
import { SESSION_REQUEST_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { SessionFeedEvents } from '../model/feed-news.js';
import { SessionSeal } from '../model/session-seal.js';
import { RefreshNotifier } from '../refresh/refresh-notifier.js';
import { RequestOutcomesRepository } from './request-outcomes.repository.js';
import { REQUEST_BACKOFF, SEND_WITHIN_MS } from './request-timing.js';
import { type RequestClaim, SessionRequestsRepository } from './session-requests.repository.js';

/** Milliseconds; what is due later than this is left to the poller. */
const HORIZON_MS = 60_000;

/** Milliseconds after which a ring counts as lost. */
const BELL_LOST_MS = 2_000;

/** Requests that one round of the poller sends at most. */
const SWEEP_TURNS = 25;

/**
 * Sends requests for sessions, each by one attempt whose mark is committed before it leaves. Only an attempt that has
 * certainly done nothing is followed by another; one without an answer leaves the request `Unknown`.
 */
@Injectable()
export class RequestSender {
  private readonly log = new Logger(RequestSender.name);
  private readonly attempts: ReturnType<Metrics['counter']>;
  private stopped = false;

  constructor(
    private readonly requests: SessionRequestsRepository,
    private readonly outcomes: RequestOutcomesRepository,
    private readonly platform: SessionsClient,
    private readonly contract: Contract,
    private readonly seal: SessionSeal,
    private readonly news: SessionFeedEvents,
    private readonly refreshes: RefreshNotifier,
    private readonly notifier: QueueNotifier,
    private readonly clock: Clock,
    private readonly random: Random,
    metrics: Metrics,
  ) {
    this.attempts = metrics.counter('session_requests_total', 'Attempts to create a session by what they came to', [
      'outcome',
    ]);
  }

  /** Takes no more turns; what is on its way may end. */
  stop(): void {
    this.stopped = true;
  }

  /** Sends what is due, one after the other, until nothing is; several activations do so side by side. */
  async run(turns = Number.POSITIVE_INFINITY): Promise<void> {
    if (this.contract.missingFor('createSession').length > 0) return;
    for (let taken = 0; taken < turns && !this.stopped; taken += 1) {
      const marking = this.clock.monotonicMs();
      const turn = await this.requests.claimNext();
      if (!turn) return this.notifyForNext();
      this.notifier.notify(SESSION_REQUEST_QUEUE, 'more');
      await this.send(turn, marking);
    }
  }

  /** For the poller: gives up attempts whose process died, and sends what nobody came for although a notification was sent. */
  async lookAround(): Promise<void> {
    for (const attempt of await this.requests.lostAttempts()) {
      this.log.warn('a process ended before it stored what became of a request for a session; it is looked into');
      await this.outcomes.unknown(attempt);
      this.attempts.inc({ outcome: 'lost' });
    }
    const overdueMs = this.nowMs() - ((await this.requests.nextDueAt())?.getTime() ?? Number.POSITIVE_INFINITY);
    if (overdueMs >= 0) this.notifier.notify(SESSION_REQUEST_QUEUE, 'due');
    if (overdueMs > BELL_LOST_MS) await this.run(SWEEP_TURNS);
  }

  /** @param marking monotonic milliseconds before the attempt's mark was committed */
  private async send(turn: RequestClaim, marking: number): Promise<void> {
    if (this.clock.monotonicMs() - marking > SEND_WITHIN_MS) return this.putOff(turn, 'late');
    const body = this.opened(turn);
    if (!body) return this.putOff(turn, 'unreadable');
    let sessionId: string;
    try {
      // No signal: a shutdown waits for the answer rather than leaving the outcome unknown.
      ({ sessionId } = await this.platform.createSession(body));
    } catch (error) {
      return this.settleFailure(turn, error);
    }
    await this.store(() => this.outcomes.accepted(turn, sessionId));
    this.attempts.inc({ outcome: 'accepted' });
    this.refreshes.notifySoon();
    await this.news.tell();
  }

  /** What is to be sent; undefined when it does not open: then nothing is sent, and a key may come back. */
  private opened({ session, body }: RequestClaim): CreateTherapySessionRequest | undefined {
    try {
      return this.seal.openRequest(session, body);
    } catch (error) {
      this.log.warn({
        msg: 'a request for a session could not be read; nothing was sent',
        session,
        ...errorTrace(error),
      });
      return undefined;
    }
  }

  private async settleFailure(turn: RequestClaim, error: unknown): Promise<void> {
    const kind = error instanceof PlatformError ? error.kind : 'unknown-outcome';
    switch (kind) {
      case 'rejected':
      case 'not-found':
        await this.store(() => this.outcomes.rejected(turn, (error as PlatformError).platformMessage ?? ''));
        break;
      case 'unknown-outcome':
        await this.store(() => this.outcomes.unknown(turn));
        this.refreshes.notifySoon();
        break;
      default:
        return this.putOff(turn, kind, (error as PlatformError).retryAfterMs);
    }
    this.attempts.inc({ outcome: kind });
    await this.news.tell();
  }

  /** @param askedMs how long the platform asks to wait */
  private async putOff(turn: RequestClaim, fault: string, askedMs = 0): Promise<void> {
    const waitMs = Math.max(askedMs, backoffMs(turn.failures + 1, this.random.fraction(), REQUEST_BACKOFF));
    await this.store(() => this.requests.putOff(turn, fault, waitMs));
    this.attempts.inc({ outcome: fault });
    this.notifyAt(this.nowMs() + waitMs);
  }

  /** What an attempt came to is known here alone. */
  private store(outcome: () => Promise<void>): Promise<void> {
    return retryUntilStored(outcome, this.clock);
  }

  private async notifyForNext(): Promise<void> {
    const next = (await this.requests.nextDueAt())?.getTime();
    if (next !== undefined && next < this.nowMs() + HORIZON_MS) this.notifyAt(next);
  }

  private notifyAt(moment: number): void {
    this.notifier.notify(SESSION_REQUEST_QUEUE, 'due', new Date(moment));
  }

  private nowMs(): number {
    return this.clock.now().getTime();
  }
}
