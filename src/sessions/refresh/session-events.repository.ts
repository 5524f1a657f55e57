import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { prepared } from '../../database/database.js';
import { Contract } from '../../platform/contract/contract.js';
import type { SessionEvent, SessionEventType } from '../../platform/contract/wire-types.js';
import { SESSION_COLUMNS, updateSession } from '../model/session-columns.js';
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
  INSERT INTO sessions AS t (id, shown_id, session_id, state, wanted_generation, last_event_at, due_at)
  SELECT id, id, $1, 'Processing', 1, coalesce($2, clock_timestamp()), clock_timestamp()
  FROM (SELECT gen_random_uuid() AS id) AS new
  ON CONFLICT (session_id) DO UPDATE SET
    wanted_generation = t.wanted_generation + 1, rechecks = 0,
    last_event_at = greatest(t.last_event_at, excluded.last_event_at), lane = excluded.lane,
    due_at = ${DUE_AFTER_EVENT}
  RETURNING ${SESSION_COLUMNS}, (t.xmax = 0) AS "isNew"`;

type FoundRow = SessionRow & { isNew: boolean };

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
    const failurePublished = row.failurePublished || events.some(({ type }) => type === 'session.failed');
    const notesAwaited = awaitedAfterEvent(row.notesAwaited, event);
    await this.store(tx, row, { ...applyEvent(row, event), notesAwaited, failurePublished }, event.eventType);
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
    await this.store(tx, row, { notesAwaited: Math.max(row.notesAwaited, notes) });
    if (row.isNew) await this.feed.publish(tx, row.id, [{ type: 'session.created', state: 'InProgress' }]);
    return row.id;
  }

  /** Makes a processing id due for a lookup, known or not. */
  async recordProcessing(tx: PoolClient, processingId: string): Promise<void> {
    await tx.query(
      `INSERT INTO processing_sessions AS known (processing_id, wanted_generation, due_at)
       VALUES ($1, 1, clock_timestamp())
       ON CONFLICT (processing_id) DO UPDATE SET wanted_generation = known.wanted_generation + 1,
         updated_at = clock_timestamp(), due_at = ${dueSoon('known')}`,
      [processingId],
    );
  }

  private async findOrCreate(tx: PoolClient, sessionId: string, since: Date | null): Promise<FoundRow> {
    const { rows } = await tx.query<FoundRow>(prepared(FIND_OR_CREATE, [sessionId, since]));
    const [row] = rows;
    if (!row) throw new Error('A session was neither found nor created.');
    return row;
  }

  /** Each event is a change for readers, because they see when the last one arrived. */
  private async store(
    tx: PoolClient,
    row: SessionRow,
    events: Partial<EventView & Pick<SessionRow, 'notesAwaited' | 'failurePublished'>>,
    eventType?: SessionEventType,
  ): Promise<void> {
    const canFetch = this.contract.canCall('getSession');
    const shown = shownAfterEvent(row, { ...row, ...events }, { eventType, canFetch });
    const isOtherState = shown.state !== row.state;
    await updateSession(tx, row.id, {
      ...events,
      ...shown,
      stateFromEvents: row.stateFromEvents || isOtherState,
      changed: row.changed || eventType !== undefined || isOtherState,
    });
  }
}
