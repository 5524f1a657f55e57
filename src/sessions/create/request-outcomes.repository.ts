import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Audit } from '../../audit/audit.js';
import { prepared } from '../../database/database.js';
import { PrismaService } from '../../database/prisma.service.js';
import { RELEASE } from '../../due-rows/lease.js';
import { rowOfEvent } from '../../platform/send/request-rows.js';
import { settleRestoredRequests } from '../../platform/send/restored-requests.js';
import { ATTEMPT_IN_FLIGHT, type RequestOutcomes as Outcomes } from '../../platform/send/send-once.js';
import { Restores } from '../../sending/restores.js';
import { openIfReadable } from '../../vault/unreadable-value.js';
import { SESSION_COLUMNS, SESSION_TABLE } from '../model/session-columns.js';
import { NO_FACTS, type SessionFacts } from '../model/session-facts.js';
import { SessionFeed } from '../model/session-feed.js';
import { LANES, type SessionRow } from '../model/session-row.js';
import { SessionSeal } from '../model/session-seal.js';

/** The parts of an event that name a request. */
interface NamingEvent {
  providerUserId: string;
  partnerAppointmentId: string;
  receivedAt: Date;
}

/** SQL assignments of a request that has ended. Plan and text are erased. */
const ENDED = `request = NULL, settled_at = clock_timestamp(), fault = NULL, failures = 0, refused_at = NULL, changed = true,
  ${RELEASE}`;

/** The request that an event with an appointment ($1) of a provider ($2), received at $3, can belong to. */
const MATCHING = `
  SELECT ${SESSION_COLUMNS}, ${ATTEMPT_IN_FLIGHT} AS "inFlight" FROM sessions t
  WHERE correlation_id = $1 AND provider_user_id = $2 AND attempted_at IS NOT NULL AND requested_at <= $3
    AND (state IN ('Requested', 'Unknown') OR state = 'Rejected' AND NOT abandoned AND NOT EXISTS (
      SELECT FROM sessions other WHERE other.correlation_id = $1 AND other.provider_user_id = $2 AND other.id <> t.id))
  FOR UPDATE`;

/** The outcomes of requests for sessions. Each is settled once: by its answer, by an event or manually. */
@Injectable()
export class RequestOutcomes implements Outcomes<SessionRow, { sessionId: string }> {
  constructor(
    private readonly prisma: PrismaService,
    private readonly feed: SessionFeed,
    private readonly seal: SessionSeal,
    private readonly audit: Audit,
    restores: Restores,
  ) {
    settleRestoredRequests(restores, prisma, SESSION_TABLE, 'requested_at', this);
  }

  async accepted(tx: PoolClient, request: SessionRow, { sessionId }: { sessionId: string }): Promise<void> {
    const isSettled = await this.settle(tx, request, sessionId, 'clock_timestamp()');
    if (!isSettled && request.state === 'Requested') await this.markUnknown(tx, request);
  }

  /** Not if an event named the session: a proxy may have answered after the platform accepted the request. */
  async rejected(tx: PoolClient, request: SessionRow, message: string): Promise<void> {
    if (await this.settleByEvent(tx, request)) return;
    const code = 'platform-rejected';
    await this.end(tx, request, { code, message });
    await this.feed.publish(tx, request.id, [{ type: 'session.failed', state: 'Rejected', code }]);
  }

  /** Not if an event named the session. */
  async unknown(tx: PoolClient, request: SessionRow): Promise<void> {
    if (!(await this.settleByEvent(tx, request))) await this.markUnknown(tx, request);
  }

  private async markUnknown(tx: PoolClient, request: SessionRow): Promise<void> {
    await tx.query(
      `UPDATE sessions SET state = 'Unknown', fault = NULL, due_at = NULL, changed = true, ${RELEASE} WHERE id = $1`,
      [request.id],
    );
    await this.feed.publish(tx, request.id, [{ type: 'session.needs-review', state: 'Unknown' }]);
  }

  /** Ends a request, so that nothing more is sent. @param message the reason */
  abandon(tx: PoolClient, request: SessionRow, message: string): Promise<void> {
    return this.end(tx, request, { code: 'abandoned', message });
  }

  /**
   * Finds and locks the request that an event can belong to: an open one, or one rejected by the platform that is the only
   * request for its appointment. The platform received it before the event.
   *
   * @returns `inFlight`: its answer will show whether the event belongs to it
   */
  async matching(tx: PoolClient, event: NamingEvent): Promise<{ request: SessionRow; inFlight: boolean } | undefined> {
    const { providerUserId, partnerAppointmentId, receivedAt } = event;
    const values = [partnerAppointmentId, providerUserId, receivedAt];
    const { rows } = await tx.query<SessionRow & { inFlight: boolean }>(prepared(MATCHING, values));
    return rows[0] && { request: rows[0], inFlight: rows[0].inFlight };
  }

  /**
   * Settles a request by the session that events named, if it is the only one since the request. Not after an earlier
   * attempt with an unknown outcome, because the session may be that of the earlier attempt.
   *
   * @param sessionId of an event that has no row yet
   */
  async settleByEvent(tx: PoolClient, request: SessionRow, sessionId?: string): Promise<boolean> {
    const { shownId, correlationId, providerUserId, requestedAt } = request;
    if (request.earlierUnknown) return false;
    const { rows } = await tx.query<{ sessionId: string }>(
      `SELECT session_id AS "sessionId" FROM sessions
       WHERE provider_user_id = $1 AND updated_at >= $3 AND event_appointment_id = $2 AND event_provider_user_id = $1
         AND created_at >= $3 AND session_id IS NOT NULL AND attempted_at IS NULL LIMIT 2`,
      [providerUserId, correlationId, requestedAt],
    );
    const named = new Set([...rows.map((row) => row.sessionId), ...(sessionId === undefined ? [] : [sessionId])]);
    const [only] = named;
    if (only === undefined || named.size > 1 || !(await this.settle(tx, request, only))) return false;
    const subjects = { session: [shownId], 'platform-session': [only] };
    await this.audit.system('session.linked-by-evidence', subjects, 'ok', await this.prisma.in(tx));
    return true;
  }

  /**
   * Gives a request the platform's id of its session.
   *
   * @param acceptedAt SQL of when the platform's answer accepted the request
   * @returns false if the session belongs to another request
   */
  async settle(tx: PoolClient, request: SessionRow, sessionId: string, acceptedAt = 'NULL'): Promise<boolean> {
    const first = await rowOfEvent<SessionRow>(tx, SESSION_TABLE, request, sessionId);
    if (first === 'taken') return false;
    const fetched = `accepted_at = ${acceptedAt}, lane = ${LANES.events}, due_at = clock_timestamp()`;
    if (first) {
      await this.join(tx, request, first, fetched);
      return true;
    }
    await tx.query(
      `UPDATE sessions SET ${ENDED}, ${fetched}, session_id = $2, state = 'InProgress', facts = $3,
         wanted_generation = wanted_generation + 1
       WHERE id = $1`,
      [request.id, sessionId, this.factsWith(request, null)],
    );
    await this.feed.publish(tx, request.id, [{ type: 'session.created', state: 'InProgress' }]);
    return true;
  }

  /**
   * Joins a request with the row that an event made of its session first: that row takes the request's id and fills its empty
   * facts from the request. The request's own row is deleted, because notes may be sealed to the other one.
   *
   * @param fetched SQL assignments that make the session due
   */
  private async join(tx: PoolClient, request: SessionRow, first: SessionRow, fetched: string): Promise<void> {
    const [requested, known] = [request, first].map((row) => openIfReadable(() => this.seal.openFacts(row)));
    const facts: SessionFacts = { ...NO_FACTS, ...known, date: known?.date ?? requested?.date ?? null };
    const ifFetched = (column: string) =>
      `${column} = CASE WHEN first.fetched_at IS NULL THEN own.${column} ELSE first.${column} END`;
    await tx.query(
      `WITH own AS (DELETE FROM sessions WHERE id = $1 RETURNING *)
       UPDATE sessions first SET shown_id = own.shown_id, facts = $3, correlation_id = own.correlation_id,
         input_kind = own.input_kind, requested_at = own.requested_at, attempted_at = own.attempted_at,
         settled_at = clock_timestamp(), wanted_generation = first.wanted_generation + 1, changed = true,
         updated_at = greatest(first.updated_at, own.updated_at),
         provider_user_id = coalesce(first.provider_user_id, own.provider_user_id),
         partner_appointment_id = coalesce(first.partner_appointment_id, own.partner_appointment_id),
         ${ifFetched('client_user_ids')}, ${ifFetched('note_template_ids')}, ${fetched}
       FROM own WHERE first.id = $2`,
      [request.id, first.id, this.seal.sealFacts(first.id, facts)],
    );
  }

  private async end(tx: PoolClient, request: SessionRow, error: { code: string; message: string }): Promise<void> {
    await tx.query(
      `UPDATE sessions SET ${ENDED}, due_at = NULL, state = 'Rejected', abandoned = $2, facts = $3 WHERE id = $1`,
      [request.id, error.code === 'abandoned', this.factsWith(request, error)],
    );
  }

  /** The sealed facts with another error. Without one, facts that do not open are kept. */
  private factsWith(row: SessionRow, error: SessionFacts['error']): Buffer | null {
    const facts = openIfReadable(() => this.seal.openFacts(row));
    if (!facts && !error) return row.facts;
    return this.seal.sealFacts(row.id, { ...(facts ?? NO_FACTS), error });
  }
}
