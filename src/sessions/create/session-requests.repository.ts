import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Audit, BEGUN } from '../../access/audit/audit.js';
import { Env } from '../../config/env.js';
import { Database } from '../../database/database.js';
import type { CreateTherapySessionRequest } from '../../platform/contract/wire-types.js';
import { SpellingsRepository } from '../../platform/http/spellings.repository.js';
import type { Lease } from '../../queue/due-rows/lease.js';
import { joinTraces, tracesNow } from '../../queue/due-rows/traces.js';
import { WorkerProcess } from '../../queue/due-rows/worker-process.js';
import { Outbox } from '../../queue/outbox/outbox.js';
import { ifReadable } from '../../vault/unreadable-value.js';
import { DEBOUNCE_MS } from '../model/apply-fetch.js';
import { NO_FACTS } from '../model/session-facts.js';
import { SessionFeedEvents } from '../model/session-feed-events.js';
import { type SessionRow, type ShownState, shownAppointment } from '../model/session-row.js';
import { SessionSeal } from '../model/session-seal.js';
import { SessionMerge } from '../refresh/session-merge.repository.js';
import type { OpenRequest, RecordedSession, RequestRow, RequestState } from './request-row.js';

/** How long after the platform's timeout an attempt may take to be sent and to store its outcome. */
const ATTEMPT_MARGIN_MS = 10_000;

/** True if an event can belong to request `r`; the parameters are those of `recordEvidence`. */
const REQUEST_MATCHES_EVENT = `r.correlation_id = $1 AND r.provider_user_id = $2 AND r.attempted_at IS NOT NULL AND r.requested_at <= $3
  AND r.requested_at <= (SELECT created_at FROM sessions WHERE id = $5)
  AND NOT EXISTS (SELECT 1 FROM session_requests mapped WHERE mapped.session = $5)`;

/**
 * The EHR's requests for sessions, their attempts and outcomes. Each request is settled once: by its answer, by an event
 * or manually.
 */
@Injectable()
export class SessionRequestsRepository {
  readonly outbox: Outbox<RequestRow>;

  constructor(
    private readonly database: Database,
    private readonly merge: SessionMerge,
    private readonly feedEvents: SessionFeedEvents,
    private readonly seal: SessionSeal,
    private readonly audit: Audit,
    private readonly spellings: SpellingsRepository,
    worker: WorkerProcess,
    env: Env,
  ) {
    const effectMs = env.PLATFORM_TIMEOUT_SECONDS * 1_000 + ATTEMPT_MARGIN_MS;
    const table = { name: 'session_requests', key: 'session', mark: 'attempted_at', effectMs };
    this.outbox = new Outbox(table, database, worker);
  }

  async state(session: string, tx: Pick<PoolClient, 'query'> = this.database.pool): Promise<RequestState | undefined> {
    const statement = 'SELECT state FROM session_requests WHERE session = $1';
    const { rows } = await tx.query<{ state: RequestState }>(statement, [session]);
    return rows[0]?.state;
  }

  /**
   * Stores a request together with the session's row.
   *
   * @param id of the session here
   * @param inputKind recording or text
   * @returns the open request that blocks it; undefined if it was stored now or by an earlier run
   */
  async keep(
    tx: PoolClient,
    id: string,
    body: CreateTherapySessionRequest,
    inputKind: string,
  ): Promise<OpenRequest | undefined> {
    const { providerUserId, partnerAppointmentId } = body;
    const clientUserIds = body.clientUserId === undefined ? [] : [body.clientUserId];
    for (;;) {
      const { rowCount } = await tx.query(
        `WITH kept AS (
           INSERT INTO session_requests (session, state, provider_user_id, correlation_id, input_kind, body, requested_at,
             due_at, traceparents, earlier_unknown)
           VALUES ($1, 'Requested', $2, $3, $4, $5, clock_timestamp(), clock_timestamp(), $10, EXISTS (
             SELECT 1 FROM session_requests WHERE correlation_id = $3 AND provider_user_id = $2 AND state = 'Abandoned'
               AND attempted_at IS NOT NULL)) ON CONFLICT DO NOTHING RETURNING session)
         INSERT INTO sessions (id, state, provider_user_id, client_user_ids, note_template_ids, partner_appointment_id,
           facts)
         SELECT session, 'Requested', $2, $6::text[], $7::text[], $8, $9 FROM kept`,
        [
          id,
          providerUserId,
          partnerAppointmentId,
          inputKind,
          this.seal.request.seal(id, body),
          clientUserIds,
          'noteTemplateIds' in body ? body.noteTemplateIds : [],
          shownAppointment(partnerAppointmentId),
          this.seal.sealFacts(id, { ...NO_FACTS, date: body.date ?? null }),
          tracesNow(),
        ],
      );
      if (rowCount !== 0 || (await this.state(id, tx)) !== undefined) return undefined;
      const { rows } = await tx.query<OpenRequest>(
        `SELECT session, state FROM session_requests
         WHERE correlation_id = $1 AND provider_user_id = $2 AND state IN ('Requested', 'Unknown')`,
        [partnerAppointmentId, providerUserId],
      );
      // No row: the conflicting request was settled after the INSERT. Try again.
      if (rows[0]) return rows[0];
    }
  }

  /** Stores that an attempt certainly had no effect, and schedules the next one. */
  async postpone(attempt: Lease, fault: string, waitMs: number): Promise<void> {
    await this.database.transaction(async (tx) => {
      if (!(await this.outbox.lock(tx, attempt))) return;
      await this.outbox.putOff(tx, attempt, fault, waitMs);
      await this.show(tx, attempt.key, 'Requested');
    });
  }

  /** Stores the platform's answer. If it names another request's session, the outcome stays unknown. */
  async accepted(attempt: Lease, sessionId: string): Promise<void> {
    await this.outbox.settling(async (tx) => {
      const row = await this.merge.lock(tx, sessionId);
      if (!(await this.outbox.lock(tx, attempt))) return;
      if (row?.requested && row.id !== attempt.key) await this.markUnknown(tx, attempt.key);
      else await this.settle(tx, attempt.key, sessionId);
    });
  }

  /**
   * Stores that the platform rejected a request, unless an event named a matching session: a proxy may have answered after
   * the platform accepted the request.
   *
   * @param message of the platform
   */
  async rejected(attempt: Lease, message: string): Promise<void> {
    await this.outbox.settling(async (tx) => {
      const request = await this.outbox.lock(tx, attempt);
      if (!request || (await this.settleByEvidence(tx, request))) return;
      await this.close(tx, attempt.key, 'Rejected');
      await this.show(tx, attempt.key, 'Rejected', { code: 'platform-rejected', message });
      await this.feedEvents.add(tx, attempt.key, [{ type: 'session.failed' }]);
    });
  }

  /**
   * Stores that the outcome of an attempt is unknown, unless an outcome is stored. Settles the request immediately if
   * exactly one session matches it.
   */
  unknown(attempt: Lease): Promise<void> {
    return this.outbox.settling(async (tx) => {
      const request = await this.outbox.lock(tx, attempt);
      if (request?.state !== 'Requested') return;
      await this.markUnknown(tx, attempt.key);
      await this.settleByEvidence(tx, request);
    });
  }

  /**
   * Stores an event as evidence for the open request with its appointment id and provider, if the session was first seen
   * after the request and belongs to no other. The only session that events named settles an unknown request, or a rejected
   * one that is the only request for its appointment. A request in flight waits for its answer.
   */
  async recordEvidence(tx: PoolClient, seen: RecordedSession): Promise<void> {
    const { rows } = await tx.query<RequestRow>(
      `UPDATE session_requests r SET evidence = CASE WHEN $4 = ANY(evidence) THEN evidence ELSE evidence || $4::text END
       WHERE ${REQUEST_MATCHES_EVENT} AND (r.state IN ('Requested', 'Unknown') OR r.state = 'Rejected' AND NOT EXISTS (
         SELECT 1 FROM session_requests other WHERE other.correlation_id = $1 AND other.provider_user_id = $2
           AND other.session <> r.session))
       RETURNING r.session, r.state, r.evidence, r.earlier_unknown`,
      [seen.partnerAppointmentId, seen.providerUserId, seen.receivedAt, seen.sessionId, seen.id],
    );
    if (rows[0] && rows[0].state !== 'Requested') await this.settleByEvidence(tx, rows[0]);
  }

  /** Makes an unknown request due again, manually. @returns false if it is not unknown */
  async sendAgain(session: string): Promise<boolean> {
    return this.database.transaction(async (tx) => {
      const { rowCount } = await tx.query(
        `UPDATE session_requests SET state = 'Requested', attempted_at = NULL, lease_no = lease_no + 1,
           earlier_unknown = true, fault = NULL, failures = 0, due_at = clock_timestamp(),
           ${joinTraces('session_requests', '$2')}
         WHERE session = $1 AND state = 'Unknown'`,
        [session, tracesNow()],
      );
      if (rowCount === 0) return false;
      await this.show(tx, session, 'Requested');
      await this.audit.store(tx, BEGUN);
      return true;
    });
  }

  /** Settles an unknown request manually. @param spelling of the session's id, as the operator wrote it */
  async link(session: string, sessionId: string, spelling: string): Promise<'linked' | 'wrong-state' | 'taken'> {
    return this.outbox.settling(async (tx) => {
      await this.spellings.learnIfNew(tx, spelling);
      const row = await this.merge.lock(tx, sessionId);
      if (!(await lockWhere(tx, session, `state = 'Unknown'`))) return 'wrong-state';
      if (row?.requested) return 'taken';
      await this.settle(tx, session, sessionId);
      await this.audit.store(tx);
      return 'linked';
    });
  }

  /** Ends a request manually. @returns false if it is in flight or has ended */
  async abandon(session: string): Promise<boolean> {
    return this.database.transaction(async (tx) => {
      const isEnded = await this.end(tx, session, 'An operator abandoned the request.');
      if (isEnded) await this.audit.store(tx);
      return isEnded;
    });
  }

  /** Ends a request. @param message the reason @returns false if it is in flight or has ended */
  async end(tx: PoolClient, session: string, message: string): Promise<boolean> {
    const isOpen = await lockWhere(tx, session, `(state = 'Unknown' OR state = 'Requested' AND lease_owner IS NULL)`);
    if (!isOpen) return false;
    await this.close(tx, session, 'Abandoned');
    await this.show(tx, session, 'Rejected', { code: 'abandoned', message });
    return true;
  }

  /** Not after an earlier unknown attempt: the only session that events named may be the session of that attempt. */
  private async settleByEvidence(
    tx: PoolClient,
    {
      session,
      evidence,
      earlier_unknown: earlierUnknown,
    }: Pick<RequestRow, 'session' | 'evidence' | 'earlier_unknown'>,
  ): Promise<boolean> {
    const [sessionId] = evidence;
    if (sessionId === undefined || evidence.length > 1 || earlierUnknown) return false;
    const row = await this.merge.lock(tx, sessionId);
    if (row?.requested) return false;
    await this.settle(tx, session, sessionId);
    const subjects = { session: [session], 'platform-session': [sessionId] };
    await this.audit.system('session.linked-by-evidence', subjects, 'ok', tx);
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
    await this.feedEvents.add(tx, session, [{ type: 'session.created' }]);
  }

  /** Erases plan and text, because nothing will be sent again. */
  private async close(tx: PoolClient, session: string, state: RequestState): Promise<void> {
    const set = `body = NULL, evidence = '{}', fault = NULL, settled_at = clock_timestamp()`;
    await this.outbox.settle(tx, session, state, set);
  }

  private async markUnknown(tx: PoolClient, session: string): Promise<void> {
    await this.outbox.settle(tx, session, 'Unknown');
    await this.show(tx, session, 'Unknown');
  }

  /** Shows the request's state in the session's row. */
  private async show(
    tx: PoolClient,
    session: string,
    state: ShownState,
    error: { code: string; message: string } | null = null,
  ): Promise<void> {
    const { rows } = await tx.query<SessionRow>('SELECT * FROM sessions WHERE id = $1 FOR NO KEY UPDATE', [session]);
    const facts = rows.map((row) => ifReadable(() => this.seal.openFacts(row)))[0];
    await tx.query('UPDATE sessions SET state = $2, facts = $3, updated_at = clock_timestamp() WHERE id = $1', [
      session,
      state,
      this.seal.sealFacts(session, { ...(facts ?? NO_FACTS), error }),
    ]);
  }
}

async function lockWhere(tx: PoolClient, session: string, condition: string): Promise<boolean> {
  const statement = `SELECT FROM session_requests WHERE session = $1 AND ${condition} FOR UPDATE`;
  return (await tx.query(statement, [session])).rowCount === 1;
}
