import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { DEBOUNCE_MS } from '../model/apply-fetch.js';
import { SessionSeal } from '../model/session-seal.js';
import { SessionContentRepository } from './session-content.repository.js';

/** Columns that are taken over as they are. */
const TAKEN_OVER = `state error_code session_created_at session_duration_ms recording_duration_ms notes_revision
  event_state event_provider_user_id event_appointment_id ai_notes_enabled ai_notes_started ai_notes_final
  state_from_events last_event_at pending_events pending_events_at fetched_generation answers fetched_at update_until
  not_found_at`.split(/\s+/);

/** Rows that point at a session. */
const MOVED = ['session_documents', 'processing_sessions', 'session_aliases'] as const;

/** One row out of two that turned out to be one session: what was requested, and what events named. */
@Injectable()
export class SessionMerge {
  constructor(
    private readonly seal: SessionSeal,
    private readonly content: SessionContentRepository,
  ) {}

  /** Locks the row of a platform's session, if there is one. @returns our id, and whether it was asked for here */
  async lock(tx: PoolClient, sessionId: string): Promise<{ id: string; requested: boolean } | undefined> {
    const { rows } = await tx.query<{ id: string; requested: boolean }>(
      `SELECT id, EXISTS (SELECT 1 FROM session_requests r WHERE r.session = sessions.id) AS requested FROM sessions
       WHERE session_id = $1 FOR UPDATE`,
      [sessionId],
    );
    return rows[0];
  }

  /**
   * The request's row takes over all that the event's one holds, which goes; its id stays known as an alias.
   *
   * @param requested our id of the row that stays
   * @param merged our id of the row that goes
   */
  async mergeInto(tx: PoolClient, requested: string, merged: string): Promise<void> {
    const { rows } = await tx.query<{ session_id: string; error_message: Buffer | null }>(
      'SELECT session_id, error_message FROM sessions WHERE id = $1',
      [merged],
    );
    const [row] = rows;
    if (!row) throw new Error('A session vanished while it was merged.');
    await tx.query('UPDATE sessions SET session_id = NULL WHERE id = $1', [merged]);
    await tx.query(
      `UPDATE sessions s SET ${TAKEN_OVER.map((column) => `${column} = h.${column}`).join(', ')},
         session_id = $3, error_message = $4, wanted_generation = h.wanted_generation + 1,
         provider_user_id = coalesce(h.provider_user_id, s.provider_user_id),
         client_user_ids = CASE WHEN h.fetched_at IS NULL THEN s.client_user_ids ELSE h.client_user_ids END,
         note_template_ids = CASE WHEN h.fetched_at IS NULL THEN s.note_template_ids ELSE h.note_template_ids END,
         partner_appointment_id = coalesce(h.partner_appointment_id, s.partner_appointment_id),
         date = coalesce(h.date, s.date),
         due_at = clock_timestamp() + $5 * interval '1 millisecond', updated_at = clock_timestamp()
       FROM sessions h WHERE s.id = $1 AND h.id = $2`,
      [
        requested,
        merged,
        row.session_id,
        this.seal.errorMessage.sealNullable(requested, this.seal.errorMessage.open(merged, row.error_message)),
        DEBOUNCE_MS,
      ],
    );
    for (const table of MOVED)
      await tx.query(`UPDATE ${table} SET session = $1 WHERE session = $2`, [requested, merged]);
    await this.content.moveInsights(tx, merged, requested);
    await tx.query('DELETE FROM sessions WHERE id = $1', [merged]);
    await tx.query('INSERT INTO session_aliases (id, session) VALUES ($1, $2)', [merged, requested]);
  }
}
