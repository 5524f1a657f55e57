import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { ifReadable } from '../../vault/unreadable-value.js';
import { DEBOUNCE_MS } from '../model/apply-fetch.js';
import { NO_FACTS } from '../model/session-facts.js';
import type { SessionRow } from '../model/session-row.js';
import { SessionSeal } from '../model/session-seal.js';
import { SessionContentRepository } from './session-content.repository.js';

/** Columns that are taken over as they are. */
const TAKEN_OVER = `state notes_revision
  event_state event_provider_user_id event_appointment_id ai_notes_enabled ai_notes_started ai_notes_final
  state_from_events last_event_at pending_events pending_events_at fetched_generation answers fetched_at update_until
  not_found_at traceparents`.split(/\s+/);

/** Rows that point at a session, beside what it holds. */
const MOVED = ['processing_sessions', 'session_aliases'] as const;

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
    const { rows } = await tx.query<SessionRow>(
      'SELECT * FROM sessions WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE',
      [[requested, merged]],
    );
    const [stays, goes] = [requested, merged].map((id) => rows.find((row) => row.id === id));
    if (!stays || !goes) throw new Error('A session vanished while it was merged.');
    await tx.query('UPDATE sessions SET session_id = NULL WHERE id = $1', [merged]);
    await tx.query(
      `UPDATE sessions s SET ${TAKEN_OVER.map((column) => `${column} = h.${column}`).join(', ')},
         session_id = $3, provider_user_id = $4, client_user_ids = $5, facts = $6,
         wanted_generation = h.wanted_generation + 1,
         note_template_ids = CASE WHEN h.fetched_at IS NULL THEN s.note_template_ids ELSE h.note_template_ids END,
         partner_appointment_id = coalesce(h.partner_appointment_id, s.partner_appointment_id),
         due_at = clock_timestamp() + $7 * interval '1 millisecond', updated_at = clock_timestamp()
       FROM sessions h WHERE s.id = $1 AND h.id = $2`,
      [
        requested,
        merged,
        goes.session_id,
        goes.provider_user_id ?? stays.provider_user_id,
        (goes.fetched_at === null ? stays : goes).client_user_ids,
        this.mergedFacts(stays, goes),
        DEBOUNCE_MS,
      ],
    );
    for (const table of MOVED)
      await tx.query(`UPDATE ${table} SET session = $1 WHERE session = $2`, [requested, merged]);
    await this.content.move(tx, merged, requested);
    await tx.query('DELETE FROM sessions WHERE id = $1', [merged]);
    await tx.query('INSERT INTO session_aliases (id, session) VALUES ($1, $2)', [merged, requested]);
  }

  /** Facts that do not open are replaced by what the next fetch says. */
  private mergedFacts(stays: SessionRow, goes: SessionRow): Buffer {
    const [requested, merged] = [stays, goes].map((row) => ifReadable(() => this.seal.openFacts(row)) ?? NO_FACTS);
    return this.seal.sealFacts(stays.id, { ...NO_FACTS, ...merged, date: merged?.date ?? requested?.date ?? null });
  }
}
