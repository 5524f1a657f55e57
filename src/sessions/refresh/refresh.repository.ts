import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Env } from '../../config/env.js';
import { Database } from '../../database/database.js';
import type { SessionAnswer } from '../../platform/clients/sessions-client.js';
import { DueRows } from '../../queue/due-rows/due-rows.js';
import type { Lease } from '../../queue/due-rows/lease.js';
import { WorkerProcess } from '../../queue/due-rows/worker-process.js';
import { errorAfter, factsAfter, fetchedInsights, fetchedNotes } from '../model/answer-parts.js';
import { applyFetch, type FetchTicket, type Freshness, takeTicket, wantsFetch } from '../model/apply-fetch.js';
import { shownAppointment } from '../model/correlation-id.js';
import { SessionFeedEvents } from '../model/feed-news.js';
import { nextLookUp, reopening, SETTLE_MS } from '../model/refresh-timing.js';
import { factsOf, type SessionColumns, type SessionRow, toSessionRow } from '../model/session-row.js';
import { SessionSeal } from '../model/session-seal.js';
import type { FetchClaim, FetchFault } from './fetch-loop.js';
import { InsightsRepository } from './insights.repository.js';
import { NotesRepository } from './notes.repository.js';
import { BULK_LANE, EVENT_LANE, FETCHES_AT_ONCE } from './refresh-lanes.js';
import { storeFault } from './store-fault.js';

/** A session whose turn it is, leased to this worker, with what was read before the fetch leaves. */
export interface RefreshClaim extends FetchClaim {
  id: string;
  sessionId: string;
  lease: Lease;
  ticket: FetchTicket;
}

/** What storing an answer changed for whoever reads the session. */
export interface Stored {
  /** False: an answer that arrived meanwhile stands, this one was dropped. */
  kept: boolean;
  notesChanged: boolean;
}

/** A session's row, locked. */
interface Locked {
  row: SessionRow;
  columns: SessionColumns;
  now: Date;
}

/** An answer of the platform with what was read before it was asked for. */
interface TicketedAnswer {
  ticket: FetchTicket;
  session: SessionAnswer;
}

/** One place of a process is kept for sessions that events make due. */
const LANES = [{ lane: EVENT_LANE }, { lane: BULK_LANE, atOnce: FETCHES_AT_ONCE - 1 }];

/** An update that can't take effect any more is covered by the fetch that begins. */
const FORGET_PAST_UPDATE = 'update_until = CASE WHEN update_until > clock_timestamp() THEN update_until END';

/** Look-ups in a row, over about an hour, that did not find a session. */
const NOT_THERE_FOR_LONG = 10;

const DROPPED: Stored = { kept: false, notesChanged: false };

/** Sessions as work: whose turn it is to be fetched, and what became of the fetch. */
@Injectable()
export class RefreshRepository {
  private readonly due: DueRows<SessionColumns>;

  constructor(
    private readonly database: Database,
    private readonly notes: NotesRepository,
    private readonly insights: InsightsRepository,
    private readonly seal: SessionSeal,
    private readonly news: SessionFeedEvents,
    private readonly env: Env,
    worker: WorkerProcess,
  ) {
    const table = { name: 'sessions', key: 'id', lanes: LANES, effectMs: 0, onClaim: FORGET_PAST_UPDATE };
    this.due = new DueRows(table, database, worker);
  }

  /** Leases the session that is due for longest, or answers undefined. */
  async claimNext(): Promise<RefreshClaim | undefined> {
    const leased = await this.due.claim();
    if (!leased) return undefined;
    const row = toSessionRow(leased.row);
    if (row.sessionId === null) throw new Error('A session that the platform has not named was due to be fetched.');
    const { id, sessionId, failures, refusedAt } = row;
    return { id, sessionId, failures, refusedAt, lease: leased.lease, ticket: takeTicket(row) };
  }

  /** The turn has ended, however it did. */
  endClaim({ lease }: RefreshClaim): void {
    this.due.done(lease);
  }

  /** When the next session is due that nobody works on; undefined when none is. */
  nextDueAt(): Promise<Date | undefined> {
    return this.due.nextDueAt();
  }

  /** Stores a session that was fetched in a turn, unless the turn is another's by now or another answer was stored. */
  async storeFetched(tx: PoolClient, turn: RefreshClaim, session: SessionAnswer): Promise<Stored> {
    const columns = await this.due.lock(tx, turn.lease);
    if (!columns) return DROPPED;
    const locked = lockedRow(columns);
    const stored = await this.store(tx, locked, { ticket: turn.ticket, session });
    if (stored.kept) await this.due.settle(tx, turn.lease, { set: 'lane = $1', values: [EVENT_LANE] });
    else await this.release(tx, turn, locked);
    return stored;
  }

  /**
   * Stores a session that came otherwise than by a turn, unless another answer was stored since it was asked for.
   *
   * @param id ours
   * @param answer its ticket was taken before it was asked for
   */
  async storeAnswer(tx: PoolClient, id: string, answer: TicketedAnswer): Promise<Stored> {
    const { rows } = await tx.query<SessionColumns & { now: Date }>(
      'SELECT *, clock_timestamp() AS now FROM sessions WHERE id = $1 FOR UPDATE',
      [id],
    );
    // None: the row became part of another one meanwhile, which is due, too.
    return rows[0] ? this.store(tx, lockedRow(rows[0]), answer) : DROPPED;
  }

  private async store(
    tx: PoolClient,
    { row, columns, now }: Locked,
    { ticket, session }: TicketedAnswer,
  ): Promise<Stored> {
    const fresh = applyFetch(row, ticket);
    if (!fresh) return DROPPED;
    const { id } = row;
    const notes = fetchedNotes(session);
    const notesChanged = notes ? await this.notes.store(tx, id, notes, now) : false;
    await this.insights.store(tx, id, fetchedInsights(session), now);
    const facts = factsAfter(session, factsOf(columns));
    const error = errorAfter(session);
    const message =
      error === undefined ? columns.error_message : this.seal.sealErrorMessage(id, error?.message ?? null);
    const reopenedAt = reopening(row, session.state, now);
    const dueAt = wantsFetch(fresh) ? wantedAt(fresh, row, now) : this.lookUpAt({ ...row, reopenedAt }, session, now);
    await tx.query(
      `UPDATE sessions SET state = $2, provider_user_id = $3, client_user_ids = $4, note_template_ids = $5,
         partner_appointment_id = $6, error_code = $7, error_message = $8, date = $9, session_created_at = $10,
         session_duration_ms = $11, recording_duration_ms = $12, notes_revision = notes_revision + $13,
         fetched_generation = $14, answers = $15, fetched_at = $16, state_from_events = false, not_found_at = NULL,
         fault = NULL, failures = 0, refused_at = NULL, due_at = $17, reopened_at = $18,
         updated_at = CASE WHEN $13 = 0 AND not_found_at IS NULL AND fetched_at IS NOT NULL AND (state, provider_user_id,
             client_user_ids, note_template_ids, partner_appointment_id, error_code, date, session_created_at,
             session_duration_ms, recording_duration_ms)
           IS NOT DISTINCT FROM ($2, $3, $4::text[], $5::text[], $6, $7, $9, $10, $11::bigint, $12::bigint)
           THEN updated_at ELSE $16 END
       WHERE id = $1`,
      [
        id,
        session.state,
        session.providerUserId,
        session.clientUserIds,
        session.noteTemplateIds,
        shownAppointment(session.partnerAppointmentId ?? row.events.partnerAppointmentId) ?? row.partnerAppointmentId,
        error === undefined ? columns.error_code : (error?.code ?? null),
        message,
        facts.date,
        facts.sessionCreatedAt,
        facts.sessionDurationMs,
        facts.recordingDurationMs,
        notesChanged ? 1 : 0,
        fresh.fetchedGeneration,
        fresh.answers,
        now,
        dueAt,
        reopenedAt,
      ],
    );
    await this.news.note(tx, id, [
      ...(notesChanged ? [{ type: 'session.notes-ready' } as const] : []),
      ...(session.state === 'Error' && row.state !== 'Error' ? [{ type: 'session.failed' } as const] : []),
    ]);
    return { kept: true, notesChanged };
  }

  /**
   * Stores that the platform does not know a session now; it is asked for again. It counts as gone, with its notes kept,
   * if it was there before or was not for long: a platform may not know at once what it has made.
   */
  async storeGone(tx: PoolClient, turn: RefreshClaim, waitMs: number): Promise<void> {
    const columns = await this.due.lock(tx, turn.lease);
    if (!columns) return;
    const locked = lockedRow(columns);
    const { row, now } = locked;
    const fresh = applyFetch(row, turn.ticket);
    if (!fresh) return this.release(tx, turn, locked);
    const later = new Date(now.getTime() + waitMs);
    const dueAt = wantsFetch(fresh) ? wantedAt(fresh, row, now) : later;
    const isGone = row.fetchedAt !== null || row.failures >= NOT_THERE_FOR_LONG;
    await this.due.settle(tx, turn.lease, {
      set: `not_found_at = CASE WHEN $5 THEN coalesce(not_found_at, $1) END, fetched_generation = $2, answers = $3, due_at = $4,
        fault = 'gone', failures = failures + 1, refused_at = NULL, lane = ${EVENT_LANE},
        updated_at = CASE WHEN $5 AND not_found_at IS NULL THEN $1 ELSE updated_at END`,
      values: [now, fresh.fetchedGeneration, fresh.answers, dueAt, isGone],
    });
  }

  /** Stores that a fetch failed and when the next may leave. */
  async storeFault({ lease }: RefreshClaim, fault: FetchFault): Promise<void> {
    await this.due.settle(this.database.pool, lease, storeFault(fault));
  }

  private async release(tx: PoolClient, { lease }: RefreshClaim, { now }: Locked): Promise<void> {
    await this.due.settle(tx, lease, {
      set: 'due_at = CASE WHEN wanted_generation > fetched_generation THEN $1 ELSE due_at END',
      values: [soon(now)],
    });
  }

  private lookUpAt(row: SessionRow, session: SessionAnswer, now: Date): Date | null {
    const subject = {
      state: session.state,
      eventState: row.events.state,
      knownSince: row.createdAt,
      lastEventAt: row.lastEventAt,
      reopenedAt: row.reopenedAt,
    };
    return nextLookUp(subject, now, {
      afterMs: this.env.SESSION_REFRESH_AFTER_SECONDS * 1000,
      everyMs: this.env.SESSION_REFRESH_EVERY_SECONDS * 1000,
    });
  }
}

function lockedRow(columns: SessionColumns & { now: Date }): Locked {
  return { row: toSessionRow(columns), columns, now: columns.now };
}

function soon(now: Date): Date {
  return new Date(now.getTime() + SETTLE_MS);
}

/** When the next fetch is due of a session that wants one; one that only a pending update wants waits for its end. */
function wantedAt(fresh: Freshness, { updateUntil }: SessionRow, now: Date): Date {
  const onlyTheUpdate = fresh.wantedGeneration - fresh.fetchedGeneration === 1;
  return updateUntil !== null && onlyTheUpdate && updateUntil > soon(now) ? updateUntil : soon(now);
}
