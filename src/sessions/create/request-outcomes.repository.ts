import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import type { Lease } from '../../queue/due-rows/lease.js';
import { DEBOUNCE_MS } from '../model/refresh-timing.js';
import { SessionFeedEvents } from '../model/session-feed-events.js';
import { SessionSeal } from '../model/session-seal.js';
import { SessionMerge } from '../refresh/session-merge.repository.js';
import { type RequestColumns, type RequestState, SessionRequestsRepository } from './session-requests.repository.js';

/** SQLSTATE 23505, unique_violation: an event made a row for the same session at the same moment. */
const TAKEN = '23505';
const TRIES = 3;

/** What an event says of a session that may have been requested here. */
interface RecordedSession {
  /** Our id of the row that the event was stored in. */
  id: string;
  sessionId: string;
  providerUserId: string;
  partnerAppointmentId: string;
  receivedAt: Date;
}

/** What a request needs for an event to speak of it; the parameters are those of `recordEvidence`. */
const FITS = `r.correlation_id = $1 AND r.provider_user_id = $2 AND r.attempted_at IS NOT NULL AND r.requested_at <= $3
  AND r.requested_at <= (SELECT created_at FROM sessions WHERE id = $5)
  AND NOT EXISTS (SELECT 1 FROM session_requests mapped WHERE mapped.session = $5)`;

/** What became of requests: each is settled once, by its answer, by an event or manually. */
@Injectable()
export class RequestOutcomesRepository {
  constructor(
    private readonly database: Database,
    private readonly requests: SessionRequestsRepository,
    private readonly merge: SessionMerge,
    private readonly feedEvents: SessionFeedEvents,
    private readonly seal: SessionSeal,
  ) {}

  /** Stores the platform's answer. One that names another request's session leaves this one's outcome unknown. */
  async accepted(attempt: Lease, sessionId: string): Promise<void> {
    await this.settling(async (tx) => {
      const row = await this.merge.lock(tx, sessionId);
      if (!(await this.requests.outbox.lock(tx, attempt))) return;
      if (row?.requested && row.id !== attempt.key) await this.markUnknown(tx, attempt.key);
      else await this.settle(tx, attempt.key, sessionId);
    });
  }

  /**
   * Stores that the platform has not taken a request, unless an event named a session that fits it: such an answer may be
   * an intermediary's, after the platform had taken it.
   *
   * @param message what it said
   */
  async rejected(attempt: Lease, message: string): Promise<void> {
    await this.settling(async (tx) => {
      const request = await this.requests.outbox.lock(tx, attempt);
      if (!request || (await this.settleByEvidence(tx, request))) return;
      await this.close(tx, attempt.key, 'Rejected');
      await this.showRejected(tx, attempt.key, 'platform-rejected', message);
      await this.feedEvents.note(tx, attempt.key, [{ type: 'session.failed' }]);
    });
  }

  /** Stores that the outcome of an attempt is unknown. It is settled at once when exactly one session fits it. */
  async unknown(attempt: Lease): Promise<void> {
    await this.settling(async (tx) => {
      const request = await this.requests.outbox.lock(tx, attempt);
      if (request?.state !== 'Requested') return;
      await this.markUnknown(tx, attempt.key);
      await this.settleByEvidence(tx, request);
    });
  }

  /**
   * Keeps what an event says for the one open request that it fits, by appointment id and provider, if the session was
   * first known after the intent and is not another request's. An unknown request is settled by the only session that
   * events named; one whose answer may still come waits for it. A rejected one that alone asked for it is settled, too.
   */
  async recordEvidence(tx: PoolClient, seen: RecordedSession): Promise<void> {
    const { rows } = await tx.query<RequestColumns>(
      `UPDATE session_requests r SET evidence = CASE WHEN $4 = ANY(evidence) THEN evidence ELSE evidence || $4::text END
       WHERE ${FITS} AND (r.state IN ('Requested', 'Unknown') OR r.state = 'Rejected' AND NOT EXISTS (
         SELECT 1 FROM session_requests other WHERE other.correlation_id = $1 AND other.provider_user_id = $2
           AND other.session <> r.session))
       RETURNING r.session, r.state, r.evidence, r.earlier_unknown`,
      [seen.partnerAppointmentId, seen.providerUserId, seen.receivedAt, seen.sessionId, seen.id],
    );
    if (rows[0] && rows[0].state !== 'Requested') await this.settleByEvidence(tx, rows[0]);
  }

  /** Settles an unknown request manually. */
  async link(session: string, sessionId: string): Promise<'linked' | 'wrong-state' | 'taken'> {
    return this.settling(async (tx) => {
      const row = await this.merge.lock(tx, sessionId);
      const { rows } = await tx.query(
        `SELECT 1 FROM session_requests WHERE session = $1 AND state = 'Unknown' FOR UPDATE`,
        [session],
      );
      if (rows.length === 0) return 'wrong-state';
      if (row?.requested) return 'taken';
      await this.settle(tx, session, sessionId);
      return 'linked';
    });
  }

  /** Ends a request manually. @returns false when it is on its way, or has ended */
  async abandon(session: string): Promise<boolean> {
    return this.database.transaction(async (tx) => {
      const { rows } = await tx.query(
        `SELECT 1 FROM session_requests
         WHERE session = $1 AND (state = 'Unknown' OR state = 'Requested' AND lease_owner IS NULL) FOR UPDATE`,
        [session],
      );
      if (rows.length === 0) return false;
      await this.close(tx, session, 'Abandoned');
      await this.showRejected(tx, session, 'abandoned', 'A person said that nothing more is to be done.');
      return true;
    });
  }

  /** The only session that events named may be an earlier attempt's, if one of those may have made one, too. */
  private async settleByEvidence(
    tx: PoolClient,
    { session, evidence, earlier_unknown: earlierUnknown }: RequestColumns,
  ): Promise<boolean> {
    const [sessionId] = evidence;
    if (sessionId === undefined || evidence.length > 1 || earlierUnknown) return false;
    const row = await this.merge.lock(tx, sessionId);
    if (row?.requested) return false;
    await this.settle(tx, session, sessionId);
    return true;
  }

  private async settle(tx: PoolClient, session: string, sessionId: string): Promise<void> {
    await this.close(tx, session, 'Settled');
    const row = await this.merge.lock(tx, sessionId);
    if (row) return this.merge.mergeInto(tx, session, row.id);
    await tx.query(
      `UPDATE sessions SET session_id = $2, state = 'InProgress', wanted_generation = wanted_generation + 1,
         due_at = clock_timestamp() + $3 * interval '1 millisecond', updated_at = clock_timestamp()
       WHERE id = $1`,
      [session, sessionId, DEBOUNCE_MS],
    );
    await this.feedEvents.note(tx, session, [{ type: 'session.created' }]);
  }

  /** Plan and text are erased: nothing will be sent any more. */
  private async close(tx: PoolClient, session: string, state: RequestState): Promise<void> {
    const set = `body = NULL, evidence = '{}', fault = NULL, settled_at = clock_timestamp()`;
    await this.requests.outbox.settle(tx, session, state, { set });
  }

  private async markUnknown(tx: PoolClient, session: string): Promise<void> {
    await this.requests.outbox.settle(tx, session, 'Unknown');
    await tx.query(`UPDATE sessions SET state = 'Unknown', updated_at = clock_timestamp() WHERE id = $1`, [session]);
  }

  private async showRejected(tx: PoolClient, session: string, code: string, message: string): Promise<void> {
    await tx.query(
      `UPDATE sessions SET state = 'Rejected', error_code = $2, error_message = $3, updated_at = clock_timestamp()
       WHERE id = $1`,
      [session, code, this.seal.errorMessage.seal(session, message)],
    );
  }

  private async settling<T>(work: (tx: PoolClient) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.database.transaction(work);
      } catch (error) {
        if (tries === TRIES || (error as { code?: string }).code !== TAKEN) throw error;
      }
    }
  }
}
