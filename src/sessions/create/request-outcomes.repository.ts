import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Audit } from '../../access/audit/audit.js';
import { ATTEMPT_IN_FLIGHT } from '../../platform/send/send-once.js';
import { RELEASE } from '../../queue/due-rows/lease.js';
import { ifReadable } from '../../vault/unreadable-value.js';
import { NO_FACTS, type SessionFacts } from '../model/session-facts.js';
import { SessionFeed } from '../model/session-feed.js';
import type { SessionRow, ShownState } from '../model/session-row.js';
import { SessionSeal } from '../model/session-seal.js';
import type { RequestRow, RequestState } from './request-row.js';

/** The parts of an event that name a request. */
interface NamingEvent {
  sessionId: string;
  providerUserId: string;
  partnerAppointmentId: string;
  receivedAt: Date;
}

/** SQL condition: a session `s` was requested here, or belongs to a request. */
const IS_REQUESTED = `(EXISTS (SELECT FROM session_requests own WHERE own.session = s.id)
  OR EXISTS (SELECT FROM sessions requested WHERE requested.same_as = s.id))`;

/**
 * The outcomes of requests for sessions. Each request is settled once: by its answer, by an event or manually. Every
 * statement locks the request before the session.
 */
@Injectable()
export class RequestOutcomes {
  constructor(
    private readonly feed: SessionFeed,
    private readonly seal: SessionSeal,
    private readonly audit: Audit,
  ) {}

  /** Stores the platform's answer. If it names another request's session, the outcome stays unknown. */
  async accepted(tx: PoolClient, request: RequestRow, sessionId: string): Promise<void> {
    const isSettled = await this.settle(tx, request.session, sessionId, 'clock_timestamp()');
    if (!isSettled && request.state !== 'Unknown') await this.markUnknown(tx, request.session);
  }

  /**
   * Stores that the platform rejected a request, unless an event named its session: a proxy may have answered after the
   * platform accepted the request.
   *
   * @param message of the platform
   */
  async rejected(tx: PoolClient, request: RequestRow, message: string): Promise<void> {
    if (await this.settleByEvent(tx, request)) return;
    await this.close(tx, request.session, 'Rejected');
    await this.show(tx, request.session, 'Rejected', { code: 'platform-rejected', message });
    const failed = { type: 'session.failed', state: 'Rejected', code: 'platform-rejected' } as const;
    await this.feed.publish(tx, request.session, [failed]);
  }

  /** Stores that the outcome of an attempt is unknown, unless events named its session. */
  async unknown(tx: PoolClient, request: RequestRow): Promise<void> {
    if (!(await this.settleByEvent(tx, request))) await this.markUnknown(tx, request.session);
  }

  /**
   * Finds and locks the request that an event can belong to: an open one, or a rejected one that is the only request for
   * its appointment. The platform received it before the event.
   *
   * @returns `in-flight`: its answer will show whether the event belongs to it
   */
  async matching(tx: PoolClient, event: NamingEvent): Promise<{ request: RequestRow; inFlight: boolean } | undefined> {
    const { rows } = await tx.query<RequestRow & { in_flight: boolean }>(
      `SELECT *, ${ATTEMPT_IN_FLIGHT} AS in_flight FROM session_requests r
       WHERE correlation_id = $1 AND provider_user_id = $2 AND attempted_at IS NOT NULL AND requested_at <= $3
         AND (state IN ('Requested', 'Unknown') OR state = 'Rejected' AND NOT EXISTS (
           SELECT FROM session_requests other WHERE other.correlation_id = $1 AND other.provider_user_id = $2
             AND other.session <> r.session))
       FOR UPDATE`,
      [event.partnerAppointmentId, event.providerUserId, event.receivedAt],
    );
    return rows[0] && { request: rows[0], inFlight: rows[0].in_flight };
  }

  /**
   * Settles a request by the session that events named, if it is the only one since the request. Not after an earlier
   * attempt with an unknown outcome, because the session may be that of the earlier attempt.
   *
   * @param sessionId of an event that has no row yet
   */
  async settleByEvent(tx: PoolClient, request: RequestRow, sessionId?: string): Promise<boolean> {
    const { session, correlation_id: correlationId, provider_user_id: provider, requested_at: requestedAt } = request;
    if (request.earlier_unknown) return false;
    const { rows } = await tx.query<{ session_id: string }>(
      `SELECT session_id FROM sessions s
       WHERE provider_user_id = $1 AND updated_at >= $3 AND event_appointment_id = $2 AND event_provider_user_id = $1
         AND created_at >= $3 AND session_id IS NOT NULL AND NOT ${IS_REQUESTED} LIMIT 2`,
      [provider, correlationId, requestedAt],
    );
    const named = new Set([...rows.map((row) => row.session_id), ...(sessionId === undefined ? [] : [sessionId])]);
    const [only] = named;
    if (only === undefined || named.size > 1 || !(await this.settle(tx, session, only))) return false;
    const subjects = { session: [session], 'platform-session': [only] };
    await this.audit.system('session.linked-by-evidence', subjects, 'ok', tx);
    return true;
  }

  /**
   * Gives a request the platform's id of its session. If an event made a row for that session first, this row leads to it.
   *
   * @param acceptedAt SQL of when the platform's answer accepted the request
   * @returns false if the session belongs to another request
   */
  async settle(tx: PoolClient, session: string, sessionId: string, acceptedAt = 'NULL'): Promise<boolean> {
    const { rows } = await tx.query<SessionRow & { is_requested: boolean }>(
      `SELECT *, ${IS_REQUESTED} AS is_requested FROM sessions s WHERE session_id = $1 FOR UPDATE`,
      [sessionId],
    );
    const [first] = rows;
    if (first?.is_requested) return false;
    await this.close(tx, session, 'Settled', acceptedAt);
    if (first) {
      await this.showUnder(tx, session, first);
      return true;
    }
    await tx.query(
      `UPDATE sessions SET session_id = $2, state = 'InProgress', wanted_generation = wanted_generation + 1,
         due_at = clock_timestamp(), changed = true
       WHERE id = $1`,
      [session, sessionId],
    );
    await this.feed.publish(tx, session, [{ type: 'session.created', state: 'InProgress' }]);
    return true;
  }

  /** Shows the row of an event under the id of its request, and fills its empty facts from the request. */
  private async showUnder(tx: PoolClient, session: string, first: SessionRow): Promise<void> {
    const { rows } = await tx.query<SessionRow>('SELECT * FROM sessions WHERE id = $1 FOR UPDATE', [session]);
    const [requested, known] = [rows[0], first].map((row) => row && ifReadable(() => this.seal.openFacts(row)));
    const facts: SessionFacts = { ...NO_FACTS, ...known, date: known?.date ?? requested?.date ?? null };
    await tx.query(
      `UPDATE sessions first SET facts = $3, wanted_generation = first.wanted_generation + 1, due_at = clock_timestamp(),
         changed = true, updated_at = greatest(first.updated_at, own.updated_at),
         provider_user_id = coalesce(first.provider_user_id, own.provider_user_id),
         partner_appointment_id = coalesce(first.partner_appointment_id, own.partner_appointment_id),
         client_user_ids = CASE WHEN first.fetched_at IS NULL THEN own.client_user_ids ELSE first.client_user_ids END,
         note_template_ids = CASE WHEN first.fetched_at IS NULL THEN own.note_template_ids ELSE first.note_template_ids END
       FROM sessions own WHERE own.id = $1 AND first.id = $2`,
      [session, first.id, this.seal.sealFacts(first.id, facts)],
    );
    // The row keeps nothing that a list could find.
    await tx.query(
      `UPDATE sessions SET same_as = $2, state = 'Same', facts = NULL, due_at = NULL, provider_user_id = NULL,
         client_user_ids = '{}', note_template_ids = '{}', partner_appointment_id = NULL
       WHERE id = $1`,
      [session, first.id],
    );
  }

  /** Erases plan and text, because nothing will be sent again. */
  async close(tx: PoolClient, session: string, state: RequestState, acceptedAt = 'NULL'): Promise<void> {
    await tx.query(
      `UPDATE session_requests SET state = $2, body = NULL, fault = NULL, settled_at = clock_timestamp(),
         accepted_at = ${acceptedAt}, due_at = NULL, ${RELEASE} WHERE session = $1`,
      [session, state],
    );
  }

  private async markUnknown(tx: PoolClient, session: string): Promise<void> {
    await tx.query(
      `UPDATE session_requests SET state = 'Unknown', fault = NULL, due_at = NULL, ${RELEASE} WHERE session = $1`,
      [session],
    );
    await this.show(tx, session, 'Unknown');
    await this.feed.publish(tx, session, [{ type: 'session.needs-review', state: 'Unknown' }]);
  }

  /** Shows the request's state in the session's row. */
  async show(
    tx: PoolClient,
    session: string,
    state: ShownState,
    error: { code: string; message: string } | null = null,
  ): Promise<void> {
    const { rows } = await tx.query<SessionRow>('SELECT * FROM sessions WHERE id = $1 FOR NO KEY UPDATE', [session]);
    const facts = rows.map((row) => ifReadable(() => this.seal.openFacts(row)))[0];
    await tx.query('UPDATE sessions SET state = $2, facts = $3, changed = true WHERE id = $1', [
      session,
      state,
      this.seal.sealFacts(session, { ...(facts ?? NO_FACTS), error }),
    ]);
  }
}
