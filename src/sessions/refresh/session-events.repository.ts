import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Contract } from '../../platform/contract/contract.js';
import type { SessionEvent, SessionEventType } from '../../platform/contract/wire-types.js';
import { joinTraces, tracesNow } from '../../queue/due-rows/traces.js';
import { annotate } from '../../tracing/trace.js';
import { DEBOUNCE_MS } from '../model/apply-fetch.js';
import { feedEventsOf, SessionFeedEvents } from '../model/session-feed-events.js';
import { applyEvent, type EventView, type SessionRow, shownAfterEvent } from '../model/session-row.js';
import { dueAfterDebounce } from './refresh-scheduler.repository.js';

/**
 * Finds or creates the row of a platform session, locks it, and raises its wanted generation, because every event means
 * "look again".
 */
const FIND_OR_CREATE = `
  INSERT INTO sessions (id, session_id, state, wanted_generation, last_event_at, due_at, traceparents)
  VALUES (gen_random_uuid(), $1, 'Processing', 1, coalesce($3, clock_timestamp()), clock_timestamp() + $2 * interval '1 millisecond',
    $4)
  ON CONFLICT (session_id) DO UPDATE SET
    wanted_generation = sessions.wanted_generation + 1,
    last_event_at = greatest(sessions.last_event_at, excluded.last_event_at), lane = excluded.lane,
    due_at = ${dueAfterDebounce('sessions')}, ${joinTraces('sessions', 'excluded.traceparents')}
  RETURNING *, (xmax = 0) AS is_new`;

/** Stores the platform's events about sessions. */
@Injectable()
export class SessionEventsRepository {
  constructor(
    private readonly contract: Contract,
    private readonly feedEvents: SessionFeedEvents,
  ) {}

  /**
   * Merges an event into its session's row, and creates the row if there is none.
   *
   * @param since when the wait of its delivery started
   * @returns our id
   */
  async recordEvent(tx: PoolClient, event: SessionEvent, since: Date): Promise<string> {
    const row = await this.findOrCreate(tx, event.sessionId, since);
    await this.store(tx, row, applyEvent(row, event), event.eventType);
    annotate({ 'notebridge.session': row.id });
    await this.feedEvents.add(tx, row.id, feedEventsOf(event, row));
    return row.id;
  }

  /**
   * Records that an event or answer mentioned a session's id.
   *
   * @param since when the wait of the delivery started; now without a delivery
   * @returns our id
   */
  async recordMention(tx: PoolClient, sessionId: string, since: Date | null = null): Promise<string> {
    const row = await this.findOrCreate(tx, sessionId, since);
    await this.store(tx, row, row);
    if (row.is_new) await this.feedEvents.add(tx, row.id, [{ type: 'session.created' }]);
    return row.id;
  }

  /** Makes a processing id due for a lookup, known or not. */
  async recordProcessing(tx: PoolClient, processingId: string): Promise<void> {
    await tx.query(
      `INSERT INTO processing_sessions AS known (processing_id, wanted_generation, due_at, traceparents)
       VALUES ($1, 1, clock_timestamp() + $2 * interval '1 millisecond', $3)
       ON CONFLICT (processing_id) DO UPDATE SET wanted_generation = known.wanted_generation + 1,
         updated_at = clock_timestamp(), due_at = ${dueAfterDebounce('known')},
         ${joinTraces('known', 'excluded.traceparents')}`,
      [processingId, DEBOUNCE_MS, tracesNow()],
    );
  }

  private async findOrCreate(
    tx: PoolClient,
    sessionId: string,
    since: Date | null,
  ): Promise<SessionRow & { is_new: boolean }> {
    const { rows } = await tx.query<SessionRow & { is_new: boolean }>(FIND_OR_CREATE, [
      sessionId,
      DEBOUNCE_MS,
      since,
      tracesNow(),
    ]);
    const [row] = rows;
    if (!row) throw new Error('A session was neither found nor created.');
    return row;
  }

  /** Each event changes `updated_at`, because readers see when the last event arrived. */
  private async store(tx: PoolClient, row: SessionRow, events: EventView, eventType?: SessionEventType): Promise<void> {
    const shown = shownAfterEvent(row, events, { eventType, canFetch: this.contract.canCall('getSession') });
    await tx.query(
      `UPDATE sessions SET event_state = $2, event_provider_user_id = $3, event_appointment_id = $4,
         ai_notes_enabled = $5, ai_notes_started = $6, ai_notes_final = $7, state = $8, provider_user_id = $9,
         partner_appointment_id = $10, state_from_events = state_from_events OR state <> $8,
         updated_at = CASE WHEN $11 OR state <> $8 THEN clock_timestamp() ELSE updated_at END
       WHERE id = $1`,
      [
        row.id,
        events.event_state,
        events.event_provider_user_id,
        events.event_appointment_id,
        events.ai_notes_enabled,
        events.ai_notes_started,
        events.ai_notes_final,
        shown.state,
        shown.provider_user_id,
        shown.partner_appointment_id,
        eventType !== undefined,
      ],
    );
  }
}
