import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Random } from '../../config/random.js';
import { errorTrace } from '../../http/problem/error-trace.js';
import { Metrics } from '../../http/server/metrics.js';
import { PlatformClient } from '../../platform/clients/platform-client.js';
import { Contract } from '../../platform/contract/contract.js';
import { PlatformError } from '../../platform/contract/platform-errors.js';
import type { CreateTherapySessionRequest } from '../../platform/contract/wire-types.js';
import { type BackoffBounds, backoffMs } from '../../queue/backend/backoff.js';
import { SESSION_REQUEST_QUEUE } from '../../queue/backend/queue-names.js';
import { DueLoop } from '../../queue/due-rows/due-loop.js';
import type { Leased } from '../../queue/due-rows/due-rows.js';
import { WorkerProcess } from '../../queue/due-rows/worker-process.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { OutcomeKeeper } from '../../queue/outbox/outcome-keeper.js';
import { SessionFeedEvents } from '../model/session-feed-events.js';
import { SessionSeal } from '../model/session-seal.js';
import { RefreshNotifier } from '../refresh/refresh-notifier.js';
import { RequestOutcomesRepository } from './request-outcomes.repository.js';
import { type RequestColumns, SessionRequestsRepository } from './session-requests.repository.js';

/** Creates that one process has under way at most: a caller waits for each. */
const CREATES_AT_ONCE = 8;

/** Bounds of the wait after an attempt that did nothing, in milliseconds. */
const REQUEST_BACKOFF: BackoffBounds = { baseMs: 1_000, maxMs: 5 * 60_000 };

/** Milliseconds between the mark of an attempt and its sending; later it is not sent, for it may count as lost soon. */
const SEND_WITHIN_MS = 2_000;

/**
 * Sends requests for sessions, each by one attempt whose mark is committed before it leaves. Only an attempt that has
 * certainly done nothing is followed by another; one without an answer leaves the request `Unknown`.
 */
@Injectable()
export class RequestSender extends DueLoop<RequestColumns> {
  private readonly attempts: ReturnType<Metrics['counter']>;

  constructor(
    private readonly requests: SessionRequestsRepository,
    private readonly outcomes: RequestOutcomesRepository,
    private readonly keeper: OutcomeKeeper,
    private readonly platform: PlatformClient,
    private readonly seal: SessionSeal,
    private readonly feedEvents: SessionFeedEvents,
    private readonly refreshes: RefreshNotifier,
    private readonly random: Random,
    private readonly notifier: QueueNotifier,
    contract: Contract,
    worker: WorkerProcess,
    clock: Clock,
    metrics: Metrics,
  ) {
    const work = {
      name: 'session requests',
      places: CREATES_AT_ONCE,
      isConfigured: () => contract.missingFor('createSession').length === 0,
      notifyAt: (moment: number) => notifier.notify(SESSION_REQUEST_QUEUE, 'due', new Date(moment)),
    };
    super(work, requests.outbox.due, worker, clock);
    this.attempts = metrics.counter('session_requests_total', 'Attempts to create a session by what they came to', [
      'outcome',
    ]);
  }

  /** Leaves requests `Unknown` whose process died before it stored what their attempt came to. */
  async settleLost(): Promise<void> {
    for (const attempt of await this.requests.outbox.lost()) {
      this.log.warn('a process ended before it stored what became of a request for a session; it is looked into');
      await this.outcomes.unknown(attempt);
      this.attempts.inc({ outcome: 'lost' });
    }
  }

  protected override async work(attempt: Leased<RequestColumns>, claimingMs: number): Promise<void> {
    if (this.clock.monotonicMs() - claimingMs > SEND_WITHIN_MS) return this.putOff(attempt, 'late');
    const body = this.opened(attempt.row);
    if (!body) return this.putOff(attempt, 'unreadable');
    let sessionId: string;
    try {
      // No signal: a shutdown waits for the answer rather than leaving the outcome unknown.
      ({ sessionId } = await this.platform.createSession(body));
    } catch (error) {
      return this.failed(attempt, error);
    }
    await this.keep(attempt, 'accepted', () => this.outcomes.accepted(attempt.lease, sessionId));
    this.refreshes.notifySoon();
    await this.feedEvents.publish();
  }

  /** What is to be sent; undefined when it does not open: then nothing is sent, and a key may come back. */
  private opened({ session, body }: RequestColumns): CreateTherapySessionRequest | undefined {
    try {
      return this.seal.request.open(session, body);
    } catch (error) {
      const msg = 'a request for a session could not be read; nothing was sent';
      this.log.warn({ msg, session, ...errorTrace(error) });
      return undefined;
    }
  }

  private async failed(attempt: Leased<RequestColumns>, error: unknown): Promise<void> {
    const kind = error instanceof PlatformError ? error.kind : 'unknown-outcome';
    switch (kind) {
      case 'rejected':
      case 'not-found':
        await this.keep(attempt, kind, () =>
          this.outcomes.rejected(attempt.lease, (error as PlatformError).platformMessage ?? ''),
        );
        break;
      case 'unknown-outcome':
        await this.keep(attempt, kind, () => this.outcomes.unknown(attempt.lease));
        this.refreshes.notifySoon();
        break;
      default:
        return this.putOff(attempt, kind, (error as PlatformError).retryAfterMs);
    }
    await this.feedEvents.publish();
  }

  /** @param askedMs how long the platform asks to wait */
  private async putOff(attempt: Leased<RequestColumns>, fault: string, askedMs = 0): Promise<void> {
    const waitMs = Math.max(askedMs, backoffMs(attempt.row.failures + 1, this.random.fraction(), REQUEST_BACKOFF));
    await this.keep(attempt, fault, () => this.requests.putOff(attempt.lease, fault, waitMs));
    this.notifier.notify(SESSION_REQUEST_QUEUE, 'due', waitMs);
  }

  private async keep({ row }: Leased<RequestColumns>, outcome: string, store: () => Promise<void>): Promise<void> {
    await this.keeper.keep({ session: row.session }, store);
    this.attempts.inc({ outcome });
  }
}
