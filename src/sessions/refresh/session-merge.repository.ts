import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { DEBOUNCE_MS } from '../model/apply-answer.js';
import { SessionSeal } from '../model/session-seal.js';
import { SessionContentRepository } from './session-content.repository.js';

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
      `UPDATE sessions s SET session_id = $3, state = h.state, error_code = h.error_code, error_message = $4,
         provider_user_id = coalesce(h.provider_user_id, s.provider_user_id),
         client_user_ids = CASE WHEN h.fetched_at IS NULL THEN s.client_user_ids ELSE h.client_user_ids END,
         note_template_ids = CASE WHEN h.fetched_at IS NULL THEN s.note_template_ids ELSE h.note_template_ids END,
         partner_appointment_id = coalesce(h.partner_appointment_id, s.partner_appointment_id),
         date = coalesce(h.date, s.date), session_created_at = h.session_created_at,
         session_duration_ms = h.session_duration_ms, recording_duration_ms = h.recording_duration_ms,
         notes_revision = h.notes_revision, event_state = h.event_state,
         event_provider_user_id = h.event_provider_user_id, event_appointment_id = h.event_appointment_id,
         ai_notes_enabled = h.ai_notes_enabled, ai_notes_started = h.ai_notes_started,
         ai_notes_final = h.ai_notes_final, state_from_events = h.state_from_events, last_event_at = h.last_event_at,
         pending_events = h.pending_events, pending_events_at = h.pending_events_at, wanted_generation = h.wanted_generation + 1,
         fetched_generation = h.fetched_generation, answers = h.answers, fetched_at = h.fetched_at,
         update_until = h.update_until, not_found_at = h.not_found_at,
         due_at = clock_timestamp() + $5 * interval '1 millisecond',
         updated_at = clock_timestamp()
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
