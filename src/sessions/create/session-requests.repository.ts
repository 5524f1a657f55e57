import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Audit, BEGUN } from '../../access/audit/audit.js';
import { Database } from '../../database/database.js';
import type { CreateTherapySessionRequest } from '../../platform/contract/wire-types.js';
import { SpellingsRepository } from '../../platform/http/spellings.repository.js';
import { retryWhenTaken } from '../../platform/send/send-once.js';
import { joinTraces, tracesNow } from '../../queue/due-rows/traces.js';
import { NO_FACTS } from '../model/session-facts.js';
import { shownAppointment } from '../model/session-row.js';
import { SessionSeal } from '../model/session-seal.js';
import { SHOWN_ID } from '../model/shown-columns.js';
import { RequestOutcomes } from './request-outcomes.repository.js';
import type { BlockingSession, RequestState } from './request-row.js';

/** The EHR's requests for sessions, and the ways to resolve them. */
@Injectable()
export class SessionRequestsRepository {
  constructor(
    private readonly database: Database,
    private readonly outcomes: RequestOutcomes,
    private readonly seal: SessionSeal,
    private readonly audit: Audit,
    private readonly spellings: SpellingsRepository,
  ) {}

  async state(session: string, tx: Pick<PoolClient, 'query'> = this.database.pool): Promise<RequestState | undefined> {
    const statement = 'SELECT state FROM session_requests WHERE session = $1';
    const { rows } = await tx.query<{ state: RequestState }>(statement, [session]);
    return rows[0]?.state;
  }

  /**
   * Stores a request together with the session's row.
   *
   * @param id of the session here
   * @param options.inputKind recording or text
   * @returns what blocks it; undefined if it was stored now or by an earlier run
   */
  async keep(
    tx: PoolClient,
    id: string,
    body: CreateTherapySessionRequest,
    { inputKind, allowDuplicate }: { inputKind: string; allowDuplicate: boolean },
  ): Promise<BlockingSession | undefined> {
    const { providerUserId, partnerAppointmentId } = body;
    const clientUserIds = body.clientUserId === undefined ? [] : [body.clientUserId];
    for (;;) {
      const blocking = await this.blocking(tx, providerUserId, partnerAppointmentId);
      if (blocking?.isOpen) return blocking.session === id ? undefined : blocking;
      if (blocking && !allowDuplicate) return blocking;
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
      // No row: another request was stored after the look at what blocks this one. Look again.
      if (rowCount !== 0 || (await this.state(id, tx)) !== undefined) return undefined;
    }
  }

  /** The session of the same provider and appointment that blocks a new request: an open request, or the oldest session. */
  private async blocking(
    tx: PoolClient,
    providerUserId: string,
    correlationId: string | undefined,
  ): Promise<BlockingSession | undefined> {
    const { rows } = await tx.query<BlockingSession>(
      `SELECT session, state, true AS "isOpen" FROM session_requests
       WHERE correlation_id = $2 AND provider_user_id = $1 AND state IN ('Requested', 'Unknown')
       UNION ALL
       (SELECT ${SHOWN_ID}, state, false FROM sessions s
        WHERE partner_appointment_id = $2 AND provider_user_id = $1 AND state <> 'Rejected' AND same_as IS NULL
        ORDER BY created_at, id LIMIT 1)
       LIMIT 1`,
      [providerUserId, correlationId ?? null],
    );
    return rows[0];
  }

  /** Makes an unknown request due again, manually. @returns false if it is not unknown */
  async sendAgain(session: string): Promise<boolean> {
    return this.database.transaction(async (tx) => {
      const { rowCount } = await tx.query(
        `UPDATE session_requests SET state = 'Requested', attempted_at = NULL, lease_no = lease_no + 1,
           earlier_unknown = true, fault = NULL, failures = 0, refused_at = NULL, due_at = clock_timestamp(),
           ${joinTraces('session_requests', '$2')}
         WHERE session = $1 AND state = 'Unknown'`,
        [session, tracesNow()],
      );
      if (rowCount === 0) return false;
      await this.outcomes.show(tx, session, 'Requested');
      await this.audit.store(tx, BEGUN);
      return true;
    });
  }

  /** Settles an unknown request manually. @param spelling of the session's id, as the operator wrote it */
  async link(session: string, sessionId: string, spelling: string): Promise<'linked' | 'wrong-state' | 'taken'> {
    const link = async (tx: PoolClient) => {
      await this.spellings.learnIfNew(tx, spelling);
      if (!(await lockWhere(tx, session, `state = 'Unknown'`))) return 'wrong-state';
      if (!(await this.outcomes.settle(tx, session, sessionId))) return 'taken';
      await this.audit.store(tx);
      return 'linked';
    };
    return retryWhenTaken(() => this.database.transaction(link));
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
    await this.outcomes.close(tx, session, 'Abandoned');
    await this.outcomes.show(tx, session, 'Rejected', { code: 'abandoned', message });
    return true;
  }
}

async function lockWhere(tx: PoolClient, session: string, condition: string): Promise<boolean> {
  const statement = `SELECT FROM session_requests WHERE session = $1 AND ${condition} FOR UPDATE`;
  return (await tx.query(statement, [session])).rowCount === 1;
}
