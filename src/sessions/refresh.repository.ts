import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Env } from '../config/env.js';
import { Database } from '../database/database.js';
import type { SessionAnswer } from '../platform/session-shape.js';
import { errorAfter, factsAfter, fetchedInsights, fetchedNotes } from './answer-parts.js';
import { applyFetch, type FetchTicket, type Freshness, takeTicket, wantsFetch } from './apply-fetch.js';
import { shownAppointment } from './correlation-id.js';
import type { FetchFault, FetchTurn } from './fetch-loop.js';
import { InsightsRepository } from './insights.repository.js';
import { NotesRepository } from './notes.repository.js';
import { LEASE_MS, nextLookUp, SETTLE_MS } from './refresh-timing.js';
import { SessionNews } from './session-news.js';
import { factsOf, type SessionColumns, type SessionRow, toSessionRow } from './session-row.js';
import { SessionSeal } from './session-seal.js';

/** A session whose turn it is, leased to this worker, with what was read before the fetch leaves. */
export interface RefreshTurn extends FetchTurn {
  id: string;
  sessionId: string;
  leaseToken: string;
  ticket: FetchTicket;
}

/** What storing an answer changed for whoever reads the session. */
export interface Stored {
  /** False: an answer that arrived meanwhile stands, this one was dropped. */
  kept: boolean;
  notesChanged: boolean;
}

/** Sessions that are still to be fetched. */
export interface PendingRefreshes {
  /** Whose turn comes. */
  pending: number;
  /** Whose last fetch failed; they are tried again by themselves. */
  failing: number;
}

/** A session's row, locked. */
interface Locked {
  row: SessionRow;
  columns: SessionColumns;
  now: Date;
}

const DROPPED: Stored = { kept: false, notesChanged: false };

/** Sessions as work: whose turn it is to be fetched, and what became of the fetch. */
@Injectable()
export class RefreshRepository {
  constructor(
    private readonly database: Database,
    private readonly notes: NotesRepository,
    private readonly insights: InsightsRepository,
    private readonly seal: SessionSeal,
    private readonly news: SessionNews,
    private readonly env: Env,
  ) {}

  /** Leases the session that is due for longest, or answers undefined. */
  async takeTurn(): Promise<RefreshTurn | undefined> {
    const { rows } = await this.database.pool.query<SessionColumns & { lease_token: string }>(
      `UPDATE sessions SET lease_token = gen_random_uuid(),
         lease_until = clock_timestamp() + $1 * interval '1 millisecond',
         update_until = CASE WHEN update_until > clock_timestamp() THEN update_until END
       WHERE id = (
         SELECT id FROM sessions
         WHERE due_at <= clock_timestamp() AND session_id IS NOT NULL
           AND (lease_until IS NULL OR lease_until < clock_timestamp())
         ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED)
       RETURNING *`,
      [LEASE_MS],
    );
    const [columns] = rows;
    if (!columns?.session_id) return undefined;
    const row = toSessionRow(columns);
    return {
      id: row.id,
      sessionId: columns.session_id,
      leaseToken: columns.lease_token,
      ticket: takeTicket(row),
      strikes: row.strikes,
      refusedAt: row.refusedAt,
    };
  }

  /** When the next session is due that nobody works on; undefined when none is. */
  async nextDueAt(): Promise<Date | undefined> {
    const { rows } = await this.database.pool.query<{ due_at: Date | null }>(
      `SELECT min(due_at) AS due_at FROM sessions
       WHERE session_id IS NOT NULL AND (lease_until IS NULL OR lease_until < clock_timestamp())`,
    );
    return rows[0]?.due_at ?? undefined;
  }

  /**
   * Stores a fetched session, unless another answer was stored since the fetch began.
   *
   * @param id ours
   * @param ticket taken before the fetch left
   */
  async storeAnswer(
    tx: PoolClient,
    id: string,
    { ticket, session }: { ticket: FetchTicket; session: SessionAnswer },
  ): Promise<Stored> {
    const locked = await this.lock(tx, id);
    if (!locked) return DROPPED;
    const { row, columns, now } = locked;
    const fresh = applyFetch(row, ticket);
    if (!fresh) {
      await this.release(tx, row, now);
      return DROPPED;
    }
    const notes = fetchedNotes(session);
    const notesChanged = notes ? await this.notes.store(tx, id, notes, now) : false;
    await this.insights.store(tx, id, fetchedInsights(session), now);
    const facts = factsAfter(session, factsOf(columns));
    const error = errorAfter(session);
    const message =
      error === undefined ? columns.error_message : this.seal.sealErrorMessage(id, error?.message ?? null);
    const dueAt = wantsFetch(fresh) ? wantedAt(fresh, row, now) : this.lookUpAt(row, session, now);
    await tx.query(
      `UPDATE sessions SET state = $2, provider_user_id = $3, client_user_ids = $4, note_template_ids = $5,
         partner_appointment_id = $6, error_code = $7, error_message = $8, date = $9, session_created_at = $10,
         session_duration_ms = $11, recording_duration_ms = $12, notes_revision = notes_revision + $13,
         fetched_generation = $14, answers = $15, fetched_at = $16, gone_at = NULL, fault = NULL, strikes = 0,
         refused_at = NULL, due_at = $17, lease_token = NULL, lease_until = NULL,
         updated_at = CASE WHEN $13 = 0 AND gone_at IS NULL AND fetched_at IS NOT NULL AND (state, provider_user_id,
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
      ],
    );
    await this.news.note(tx, id, [
      ...(notesChanged ? (['session.notes-ready'] as const) : []),
      ...(session.state === 'Error' && row.state !== 'Error' ? (['session.failed'] as const) : []),
    ]);
    return { kept: true, notesChanged };
  }

  /** Stores that the platform does not know a session (any more): it is marked gone, its notes are kept. */
  async storeGone(tx: PoolClient, { id, ticket }: RefreshTurn): Promise<void> {
    const locked = await this.lock(tx, id);
    if (!locked) return;
    const { row, now } = locked;
    const fresh = applyFetch(row, ticket);
    if (!fresh) return this.release(tx, row, now);
    await tx.query(
      `UPDATE sessions SET gone_at = coalesce(gone_at, $2), fetched_generation = $3, answers = $4, fault = NULL,
         strikes = 0, refused_at = NULL, due_at = $5, lease_token = NULL, lease_until = NULL, updated_at = $2
       WHERE id = $1`,
      [id, now, fresh.fetchedGeneration, fresh.answers, wantsFetch(fresh) ? wantedAt(fresh, row, now) : null],
    );
  }

  /** Stores that a fetch failed and when the next may leave. */
  async storeFault(turn: RefreshTurn, fault: FetchFault): Promise<void> {
    await this.database.pool.query(
      `UPDATE sessions SET fault = $3, strikes = strikes + $4,
         refused_at = CASE WHEN $3 = 'platform-unauthorized' THEN clock_timestamp() ELSE refused_at END,
         due_at = clock_timestamp() + $5 * interval '1 millisecond', lease_token = NULL, lease_until = NULL
       WHERE id = $1 AND lease_token = $2`,
      [turn.id, turn.leaseToken, fault.code, fault.strike ? 1 : 0, fault.waitMs],
    );
  }

  /** Makes every session due that was heard of or changed since a moment. @returns how many */
  async wantSince(since: Date): Promise<number> {
    return this.want('greatest(created_at, updated_at, heard_at) >= $1', since);
  }

  /** Makes one session due. @param id ours */
  async wantOne(id: string): Promise<number> {
    return this.want('id = $1', id);
  }

  /** Counts the sessions that have not been fetched since something was last heard of them. */
  async countWanted(): Promise<PendingRefreshes> {
    const { rows } = await this.database.pool.query<PendingRefreshes>(
      `SELECT count(*) FILTER (WHERE fault IS NULL)::int AS pending, count(fault)::int AS failing FROM sessions
       WHERE wanted_generation > fetched_generation AND session_id IS NOT NULL AND due_at IS NOT NULL`,
    );
    return rows[0] ?? { pending: 0, failing: 0 };
  }

  private async want(condition: string, value: Date | string): Promise<number> {
    const { rowCount } = await this.database.bulkPool.query(
      `UPDATE sessions SET wanted_generation = wanted_generation + 1, due_at = clock_timestamp(), strikes = 0,
         fault = NULL -- an earlier fetch's: this one has not failed yet
       WHERE ${condition} AND session_id IS NOT NULL`,
      [value],
    );
    return rowCount ?? 0;
  }

  /** @returns undefined when the row became part of another one while its session was fetched: that one is due, too */
  private async lock(tx: PoolClient, id: string): Promise<Locked | undefined> {
    const { rows } = await tx.query<SessionColumns & { now: Date }>(
      'SELECT *, clock_timestamp() AS now FROM sessions WHERE id = $1 FOR UPDATE',
      [id],
    );
    const [columns] = rows;
    return columns && { row: toSessionRow(columns), columns, now: columns.now };
  }

  private async release(tx: PoolClient, row: SessionRow, now: Date): Promise<void> {
    await tx.query(
      `UPDATE sessions SET lease_token = NULL, lease_until = NULL,
         due_at = CASE WHEN wanted_generation > fetched_generation THEN $2 ELSE due_at END
       WHERE id = $1`,
      [row.id, soon(now)],
    );
  }

  private lookUpAt(row: SessionRow, session: SessionAnswer, now: Date): Date | null {
    const subject = {
      state: session.state,
      eventState: row.events.state,
      knownSince: row.createdAt,
      heardAt: row.heardAt,
    };
    return nextLookUp(subject, now, {
      afterMs: this.env.SESSION_REFRESH_AFTER_SECONDS * 1000,
      everyMs: this.env.SESSION_REFRESH_EVERY_SECONDS * 1000,
    });
  }
}

function soon(now: Date): Date {
  return new Date(now.getTime() + SETTLE_MS);
}

/** When the next fetch is due of a session that wants one; one that only a pending update wants waits for its end. */
function wantedAt(fresh: Freshness, { updateUntil }: SessionRow, now: Date): Date {
  const onlyTheUpdate = fresh.wantedGeneration - fresh.fetchedGeneration === 1;
  return updateUntil !== null && onlyTheUpdate && updateUntil > soon(now) ? updateUntil : soon(now);
}
