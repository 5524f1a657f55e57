import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import type { CreateTherapySessionRequest } from '../../platform/contract/wire-types.js';
import { NO_FACTS } from '../model/session-facts.js';
import { LANES, shownAppointment } from '../model/session-row.js';
import { SessionSeal } from '../model/session-seal.js';

/** A request or session that blocks another request for the same provider and appointment. */
export interface BlockingSession {
  /** Our id of the session. */
  session: string;
  state: string;
  /** True if a request is open. False if it is a session that a duplicate may follow. */
  isOpen: boolean;
}

/** Stores the EHR's requests for sessions. */
@Injectable()
export class SessionRequestsRepository {
  constructor(private readonly seal: SessionSeal) {}

  /** True if an earlier run of the same request stored it. */
  async isStored(tx: PoolClient, id: string): Promise<boolean> {
    return (await tx.query('SELECT FROM sessions WHERE shown_id = $1', [id])).rowCount === 1;
  }

  /**
   * Stores a request as a session.
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
    const { providerUserId, partnerAppointmentId, clientUserId } = body;
    for (;;) {
      const blocking = await this.blocking(tx, providerUserId, partnerAppointmentId);
      if (blocking?.isOpen) return blocking.session === id ? undefined : blocking;
      if (blocking && !allowDuplicate) return blocking;
      const { rowCount } = await tx.query(
        `INSERT INTO sessions (id, shown_id, state, lane, due_at, requested_at, provider_user_id, correlation_id, input_kind,
           request, client_user_ids, note_template_ids, partner_appointment_id, facts, earlier_unknown)
         VALUES ($1, $1, 'Requested', ${LANES.requests}, clock_timestamp(), clock_timestamp(), $2, $3, $4, $5, $6, $7, $8,
           $9, EXISTS (SELECT FROM sessions
             WHERE correlation_id = $3 AND provider_user_id = $2 AND abandoned
               AND (attempted_at IS NOT NULL OR earlier_unknown)))
         ON CONFLICT DO NOTHING`,
        [
          id,
          providerUserId,
          partnerAppointmentId,
          inputKind,
          this.seal.request.seal(id, body),
          clientUserId === undefined ? [] : [clientUserId],
          'noteTemplateIds' in body ? body.noteTemplateIds : [],
          shownAppointment(partnerAppointmentId),
          this.seal.sealFacts(id, { ...NO_FACTS, date: body.date ?? null }),
        ],
      );
      // No row: another request was stored after the look at what blocks this one. Look again.
      if (rowCount === 1 || (await this.isStored(tx, id))) return undefined;
    }
  }

  /** The session of the same provider and appointment that blocks a new request: an open request, or the oldest session. */
  private async blocking(
    tx: PoolClient,
    providerUserId: string,
    appointment: string | undefined,
  ): Promise<BlockingSession | undefined> {
    const { rows } = await tx.query<BlockingSession>(
      `SELECT shown_id AS session, state, state IN ('Requested', 'Unknown') AS "isOpen" FROM sessions
       WHERE partner_appointment_id = $2 AND provider_user_id = $1 AND state <> 'Rejected'
       ORDER BY "isOpen" DESC, created_at, id LIMIT 1`,
      [providerUserId, appointment ?? null],
    );
    return rows[0];
  }
}
