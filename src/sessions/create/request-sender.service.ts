import { Injectable, Logger } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { PrismaService } from '../../database/prisma.service.js';
import { retryUntilStored } from '../../database/retries.js';
import { errorTrace } from '../../errors/error-trace.js';
import { Metrics } from '../../monitoring/metrics.js';
import { clientsOf } from '../../people/store/person-users.js';
import { PlatformClient } from '../../platform/clients/platform-client.js';
import { SentData } from '../../platform/clients/sent-data.js';
import { PlatformError } from '../../platform/contract/platform-errors.js';
import { SessionSeal } from '../model/session-seal.js';
import { type Attempt, RequestAttempts } from './request-attempts.repository.js';

/** Maximum time from the mark of an attempt to its sending. A later attempt is not sent, because it may soon count as lost. */
const SEND_WITHIN_MS = 2_000;

/** Sends the EHR's requests for sessions, each attempt at most once: its mark is committed first. */
@Injectable()
export class RequestSender {
  private readonly log = new Logger(RequestSender.name);
  private readonly attempts;

  constructor(
    private readonly rows: RequestAttempts,
    private readonly prisma: PrismaService,
    private readonly platform: PlatformClient,
    private readonly seal: SessionSeal,
    private readonly sent: SentData,
    private readonly clock: Clock,
    metrics: Metrics,
  ) {
    this.attempts = metrics.counter('session_requests_total', 'Attempts to create a session by outcome', ['outcome']);
  }

  /** Sends a request, if it is due. A shutdown waits for the answer rather than leaving the outcome unknown. */
  async work(id: string): Promise<void> {
    const takenMs = this.clock.monotonicMs();
    const attempt = await this.take(id);
    if (!attempt) return;
    const store = await this.send(attempt, takenMs + SEND_WITHIN_MS);
    // Only this process knows the outcome.
    this.attempts.inc({ outcome: await retryUntilStored(store, this.clock) });
  }

  private async take(id: string): Promise<Attempt | undefined> {
    let marked: number | undefined;
    try {
      return await this.rows.take(id, (no) => {
        marked = no;
      });
    } catch (error) {
      const no = marked;
      if (no !== undefined) await retryUntilStored(() => this.rows.takeBack(id, no), this.clock);
      throw error;
    }
  }

  /** @returns what stores the outcome of the call, and returns its code */
  private async send(attempt: Attempt, untilMs: number): Promise<() => Promise<string>> {
    const { id, row } = attempt;
    let hasLeft = false;
    try {
      const body = this.seal.request.open(id, row.request as Uint8Array);
      const about = { client: await clientsOf(this.prisma, row.clientUserIds), session: [id] };
      const answer = await this.sent.send('createSession', about, () => {
        if (this.clock.monotonicMs() > untilMs) throw new LateAttempt();
        hasLeft = true;
        return this.platform.createSession(body);
      });
      return () => this.rows.accepted(attempt, answer.sessionId);
    } catch (error) {
      if (error instanceof LateAttempt) return () => this.rows.notSent(attempt, 'late');
      if (!hasLeft) {
        // It is retried: a missing data key may return, and the database and the audit log may take it again.
        this.log.warn({ msg: 'a request could not be prepared; nothing was sent', request: id, ...errorTrace(error) });
        return () => this.rows.notSent(attempt, 'unreadable');
      }
      if (!(error instanceof PlatformError))
        this.log.error({ msg: 'an attempt failed unexpectedly', request: id, ...errorTrace(error) });
      const failure = error instanceof PlatformError ? error : new PlatformError('unknown-outcome', 'createSession');
      return () => this.rows.failed(attempt, failure);
    }
  }
}

/** An attempt that was not sent, because it might soon count as lost. */
class LateAttempt extends Error {}
