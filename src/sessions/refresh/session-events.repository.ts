import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Contract } from '../../platform/contract/contract.js';
import type { SessionEvent, SessionEventType } from '../../platform/contract/wire-types.js';
import { joinTraces, tracesNow } from '../../queue/due-rows/traces.js';
import { annotate } from '../../tracing/trace.js';
import { feedEventsOf, SessionFeed } from '../model/session-feed.js';
import {
  applyEvent,
  awaitedAfterEvent,
  type EventView,
  type SessionRow,
  shownAfterEvent,
} from '../model/session-row.js';
import { DUE_AFTER_EVENT, dueSoon } from './refresh-scheduler.repository.js';

/**
 * Finds or creates the row of a platform session, locks it, and raises its wanted generation, because every event means
 * "look again".
 */
const FIND_OR_CREATE = `
  INSERT INTO sessions (id, session_id, state, wanted_generation, last_event_at, due_at, traceparents)
  VALUES (gen_random_uuid(), $1, 'Processing', 1, coalesce($2, clock_timestamp()), clock_timestamp(), $3)
  ON CONFLICT (session_id) DO UPDATE SET
    wanted_generation = sessions.wanted_generation + 1, rechecks = 0,
    last_event_at = greatest(sessions.last_event_at, excluded.last_event_at), lane = excluded.lane,
    due_at = ${DUE_AFTER_EVENT}, ${joinTraces('sessions', 'excluded.traceparents')}
  RETURNING *, (xmax = 0) AS is_new`;

type FoundRow = SessionRow & { is_new: boolean };

/** Stores the platform's events about sessions. */
@Injectable()
export class SessionEventsRepository {
  constructor(
    private readonly contract: Contract,
    private readonly feed: SessionFeed,
  ) {}

  /** True if a platform session has a row. */
  async isKnown(tx: PoolClient, sessionId: string): Promise<boolean> {
    return (await tx.query('SELECT FROM sessions WHERE session_id = $1', [sessionId])).rowCount === 1;
  }

  /**
   * Merges an event into its session's row, and creates the row if there is none.
   *
   * @param since when the wait of its delivery started
   */
  async recordEvent(tx: PoolClient, event: SessionEvent, since: Date): Promise<void> {
    const row = await this.findOrCreate(tx, event.sessionId, since);
    const events = feedEventsOf(event, row);
    const hasFailed = row.failure_published || events.some(({ type }) => type === 'session.failed');
    const awaited = awaitedAfterEvent(row.notes_awaited, event);
    await this.store(tx, row, { ...applyEvent(row, event), awaited, hasFailed }, event.eventType);
    annotate({ 'notebridge.session': row.id });
    await this.feed.publish(tx, row.id, events);
  }

  /**
   * Records that an event or answer mentioned a session's id.
   *
   * @param since when the wait of the delivery started; now without a delivery
   * @param notes how many notes it announced at least
   * @returns our id
   */
  async recordMention(tx: PoolClient, sessionId: string, since: Date | null = null, notes = 0): Promise<string> {
    const row = await this.findOrCreate(tx, sessionId, since);
    const awaited = Math.max(row.notes_awaited, notes);
    await this.store(tx, row, { ...row, awaited, hasFailed: row.failure_published });
    if (row.is_new) await this.feed.publish(tx, row.id, [{ type: 'session.created', state: 'InProgress' }]);
    return row.id;
  }

  /** Makes a processing id due for a lookup, known or not. */
  async recordProcessing(tx: PoolClient, processingId: string): Promise<void> {
    await tx.query(
      `INSERT INTO processing_sessions AS known (processing_id, wanted_generation, due_at, traceparents)
       VALUES ($1, 1, clock_timestamp(), $2)
       ON CONFLICT (processing_id) DO UPDATE SET wanted_generation = known.wanted_generation + 1,
         updated_at = clock_timestamp(), due_at = ${dueSoon('known')},
         ${joinTraces('known', 'excluded.traceparents')}`,
      [processingId, tracesNow()],
    );
  }

  private async findOrCreate(tx: PoolClient, sessionId: string, since: Date | null): Promise<FoundRow> {
    const { rows } = await tx.query<FoundRow>(FIND_OR_CREATE, [sessionId, since, tracesNow()]);
    const [row] = rows;
    if (!row) throw new Error('A session was neither found nor created.');
    return row;
  }

  /** Each event is a change for readers, because they see when the last one arrived. */
  private async store(
    tx: PoolClient,
    row: SessionRow,
    events: EventView & { awaited: number; hasFailed: boolean },
    eventType?: SessionEventType,
  ): Promise<void> {
    const shown = shownAfterEvent(row, events, { eventType, canFetch: this.contract.canCall('getSession') });
    await tx.query(
      `UPDATE sessions SET event_state = $2, event_provider_user_id = $3, event_appointment_id = $4,
         ai_notes_enabled = $5, ai_notes_started = $6, ai_notes_final = $7, state = $8, provider_user_id = $9,
         partner_appointment_id = $10, state_from_events = state_from_events OR state <> $8,
         changed = changed OR $11 OR state <> $8, notes_awaited = $12, failure_published = $13
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
        events.awaited,
        events.hasFailed,
      ],
    );
  }
}
