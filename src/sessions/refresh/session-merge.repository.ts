import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { ifReadable } from '../../vault/unreadable-value.js';
import { DEBOUNCE_MS } from '../model/apply-fetch.js';
import { NO_FACTS } from '../model/session-facts.js';
import type { SessionRow } from '../model/session-row.js';
import { SessionSeal } from '../model/session-seal.js';
import { SessionContentRepository } from './session-content.repository.js';

/** Columns that are copied unchanged. */
const COPIED_COLUMNS = `state notes_revision
  event_state event_provider_user_id event_appointment_id ai_notes_enabled ai_notes_started ai_notes_final
  state_from_events last_event_at pending_events pending_events_at fetched_generation answers fetched_at update_until
  not_found_at traceparents`.split(/\s+/);

/** Tables that refer to a session, in addition to its content. */
const REFERRING_TABLES = ['processing_sessions', 'session_aliases'] as const;

/** Merges two rows of one session: that of its request, and that of its events. */
@Injectable()
export class SessionMerge {
  constructor(
    private readonly seal: SessionSeal,
    private readonly content: SessionContentRepository,
  ) {}

  /** Locks the row of a platform session, if there is one. @returns our id, and whether it was requested here */
  async lock(tx: PoolClient, sessionId: string): Promise<{ id: string; requested: boolean } | undefined> {
    const { rows } = await tx.query<{ id: string; requested: boolean }>(
      `SELECT id, EXISTS (SELECT 1 FROM session_requests r WHERE r.session = sessions.id) AS requested FROM sessions
       WHERE session_id = $1 FOR UPDATE`,
      [sessionId],
    );
    return rows[0];
  }

  /**
   * Merges the row of an event into that of the request, and keeps its id as an alias.
   *
   * @param requested our id of the remaining row
   * @param merged our id of the deleted row
   */
  async mergeInto(tx: PoolClient, requested: string, merged: string): Promise<void> {
    const { rows } = await tx.query<SessionRow>(
      'SELECT * FROM sessions WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE',
      [[requested, merged]],
    );
    const [target, source] = [requested, merged].map((id) => rows.find((row) => row.id === id));
    if (!target || !source) throw new Error('A session vanished while it was merged.');
    await tx.query('UPDATE sessions SET session_id = NULL WHERE id = $1', [merged]);
    await tx.query(
      `UPDATE sessions s SET ${COPIED_COLUMNS.map((column) => `${column} = h.${column}`).join(', ')},
         session_id = $3, provider_user_id = $4, client_user_ids = $5, facts = $6,
         wanted_generation = h.wanted_generation + 1,
         note_template_ids = CASE WHEN h.fetched_at IS NULL THEN s.note_template_ids ELSE h.note_template_ids END,
         partner_appointment_id = coalesce(h.partner_appointment_id, s.partner_appointment_id),
         due_at = clock_timestamp() + $7 * interval '1 millisecond', updated_at = clock_timestamp()
       FROM sessions h WHERE s.id = $1 AND h.id = $2`,
      [
        requested,
        merged,
        source.session_id,
        source.provider_user_id ?? target.provider_user_id,
        (source.fetched_at === null ? target : source).client_user_ids,
        this.mergedFacts(target, source),
        DEBOUNCE_MS,
      ],
    );
    for (const table of REFERRING_TABLES)
      await tx.query(`UPDATE ${table} SET session = $1 WHERE session = $2`, [requested, merged]);
    await this.content.move(tx, merged, requested);
    await tx.query('DELETE FROM sessions WHERE id = $1', [merged]);
    await tx.query('INSERT INTO session_aliases (id, session) VALUES ($1, $2)', [merged, requested]);
  }

  /** Facts that cannot be decrypted are replaced by the next fetch. */
  private mergedFacts(target: SessionRow, source: SessionRow): Buffer {
    const [requested, merged] = [target, source].map((row) => ifReadable(() => this.seal.openFacts(row)) ?? NO_FACTS);
    return this.seal.sealFacts(target.id, { ...NO_FACTS, ...merged, date: merged?.date ?? requested?.date ?? null });
  }
}
