import { Injectable } from '@nestjs/common';
import { errorTrace } from '../../http/problem/error-trace.js';
import type { Metrics } from '../../http/server/metrics.js';
import { PlatformClient } from '../../platform/clients/platform-client.js';
import { Contract } from '../../platform/contract/contract.js';
import { PlatformError } from '../../platform/contract/platform-errors.js';
import type { CreateTherapySessionRequest } from '../../platform/contract/wire-types.js';
import { backoffMs } from '../../queue/backend/backoff.js';
import { DueLoop, DueParts, type DueWork } from '../../queue/due-rows/due-loop.js';
import type { Leased } from '../../queue/due-rows/due-rows.js';
import type { Bind } from '../../queue/notifier/poller.js';
import { OutcomeKeeper } from '../../queue/outbox/outbox.js';
import { annotate } from '../../tracing/trace.js';
import { DEBOUNCE_MS } from '../model/apply-fetch.js';
import { SessionFeedEvents } from '../model/session-feed-events.js';
import { SessionSeal } from '../model/session-seal.js';
import type { RequestRow } from './request-row.js';
import { SessionRequestsRepository } from './session-requests.repository.js';

/** Maximum creates in flight per process. A caller waits for each. */
const MAX_CREATES = 8;

/** Wait after an attempt that certainly had no effect. */
const REQUEST_BACKOFF = { baseMs: 1_000, maxMs: 5 * 60_000 };

/** Maximum time from the mark of an attempt to its sending. A later attempt is not sent, because it may soon count as lost. */
const SEND_WITHIN_MS = 2_000;

/**
 * Sends requests for sessions. The mark of each attempt is committed before it is sent. An attempt that certainly had no
 * effect is retried; one without an answer makes the request `Unknown`.
 */
@Injectable()
export class RequestSender extends DueLoop<RequestRow> {
  private readonly attempts: ReturnType<Metrics['counter']>;

  constructor(
    private readonly requests: SessionRequestsRepository,
    private readonly keeper: OutcomeKeeper,
    private readonly platform: PlatformClient,
    private readonly seal: SessionSeal,
    private readonly feedEvents: SessionFeedEvents,
    contract: Contract,
    parts: DueParts,
  ) {
    const work: DueWork<RequestRow> = {
      name: 'session requests',
      queue: 'session-requests',
      concurrency: MAX_CREATES,
      traced: ({ session }) => ({ 'notebridge.session': session }),
      isConfigured: () => contract.canCall('createSession'),
    };
    super(work, requests.outbox.due, parts);
    const help = 'Attempts to create a session by outcome';
    this.attempts = parts.metrics.counter('session_requests_total', help, ['outcome']);
  }

  /** For the poller: due while `settleLost` has work. */
  readonly lostSince = (bind: Bind): string => this.requests.outbox.lostSince(bind);

  /** Marks requests `Unknown` whose process died before it stored the outcome of their attempt. */
  async settleLost(): Promise<void> {
    for (const attempt of await this.requests.outbox.lost()) {
      this.log.warn('a process ended before it stored the outcome of a session request');
      await this.requests.unknown(attempt);
      this.attempts.inc({ outcome: 'lost' });
    }
  }

  protected override async work(attempt: Leased<RequestRow>, claimingMs: number): Promise<void> {
    if (this.parts.clock.monotonicMs() - claimingMs > SEND_WITHIN_MS) return this.postpone(attempt, 'late');
    const body = this.opened(attempt.row);
    if (!body) return this.postpone(attempt, 'unreadable');
    let sessionId: string;
    try {
      // No signal: a shutdown waits for the answer rather than leaving the outcome unknown.
      ({ sessionId } = await this.platform.createSession(body));
    } catch (error) {
      return this.failed(attempt, error);
    }
    await this.keep(attempt, 'accepted', () => this.requests.accepted(attempt.lease, sessionId));
    await this.announce();
  }

  /** The decrypted body; undefined if it cannot be decrypted. It is retried, because a missing data key may return. */
  private opened({ session, body }: RequestRow): CreateTherapySessionRequest | undefined {
    try {
      return this.seal.request.open(session, body);
    } catch (error) {
      const msg = 'a session request could not be decrypted; nothing was sent';
      this.log.warn({ msg, session, ...errorTrace(error) });
      return undefined;
    }
  }

  private async failed(attempt: Leased<RequestRow>, error: unknown): Promise<void> {
    const { lease } = attempt;
    const { kind, platformMessage, retryAfterMs } =
      error instanceof PlatformError ? error : new PlatformError('unknown-outcome', 'createSession');
    if (kind === 'rejected' || kind === 'not-found') {
      await this.keep(attempt, kind, () => this.requests.rejected(lease, platformMessage ?? ''));
    } else if (kind === 'unknown-outcome') {
      await this.keep(attempt, kind, () => this.requests.unknown(lease));
    } else {
      return this.postpone(attempt, kind, retryAfterMs);
    }
    await this.announce();
  }

  /** @param retryAfterMs wait that the platform asked for */
  private async postpone(attempt: Leased<RequestRow>, fault: string, retryAfterMs = 0): Promise<void> {
    const backoff = backoffMs(attempt.row.failures + 1, this.parts.random.fraction(), REQUEST_BACKOFF);
    const waitMs = Math.max(retryAfterMs, backoff);
    await this.keep(attempt, fault, () => this.requests.postpone(attempt.lease, fault, waitMs));
    this.notifyIn(waitMs);
  }

  private async keep({ row }: Leased<RequestRow>, outcome: string, store: () => Promise<unknown>): Promise<void> {
    annotate({ 'notebridge.outcome': outcome });
    await this.keeper.keep({ session: row.session }, store);
    this.attempts.inc({ outcome });
  }

  private async announce(): Promise<void> {
    this.parts.notifier.notify('sessions', 'due', DEBOUNCE_MS);
    await this.feedEvents.publish();
  }
}
