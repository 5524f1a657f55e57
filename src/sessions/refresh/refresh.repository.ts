import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Env } from '../../config/env.js';
import type { SessionAnswer } from '../../platform/contract/wire-types.js';
import type { DueTable } from '../../queue/due-rows/due-rows.js';
import type { Fetched, Outcome } from '../../queue/due-rows/fetch-loop.js';
import { errorAfter, factsAfter, fetchedInsights, fetchedNotes } from '../model/answer-parts.js';
import { applyFetch, type FetchTicket, type Freshness, takeTicket, wantsFetch } from '../model/apply-fetch.js';
import { shownAppointment } from '../model/correlation-id.js';
import { DEBOUNCE_MS, type LookUpSubject, nextLookUp, reopening } from '../model/refresh-timing.js';
import { SessionFeedEvents } from '../model/session-feed-events.js';
import { factsOf, type SessionRow } from '../model/session-row.js';
import { SessionSeal } from '../model/session-seal.js';
import { InsightsRepository } from './insights.repository.js';
import { NotesRepository } from './notes.repository.js';
import { BULK_LANE, EVENT_LANE, FETCHES_AT_ONCE } from './wanted-refreshes.repository.js';

/** What storing an answer changed for readers of the session. */
export interface Stored {
  /** False: an answer that arrived meanwhile stands, this one was dropped. */
  kept: boolean;
  notesChanged: boolean;
}

/** An answer of the platform with what was read before it was asked for. */
interface TicketedAnswer {
  ticket: FetchTicket;
  session: SessionAnswer;
}

/** An update that can't take effect any more is covered by the fetch that begins. */
const FORGET_PAST_UPDATE = 'update_until = CASE WHEN update_until > clock_timestamp() THEN update_until END';

/** Sessions as work: at most `FETCHES_AT_ONCE - 1` of a process's fetches are bulk, so that an event's finds a place. */
export const DUE_SESSIONS: DueTable = {
  name: 'sessions',
  key: 'id',
  lanes: [{ lane: EVENT_LANE }, { lane: BULK_LANE, atOnce: FETCHES_AT_ONCE - 1 }],
  effectMs: 0,
  onClaim: FORGET_PAST_UPDATE,
};

/** Look-ups in a row, over about an hour, that did not find a session. */
const NOT_THERE_FOR_LONG = 10;

const DROPPED: Stored = { kept: false, notesChanged: false };

/** What became of the fetches of sessions. */
@Injectable()
export class RefreshRepository {
  constructor(
    private readonly notes: NotesRepository,
    private readonly insights: InsightsRepository,
    private readonly seal: SessionSeal,
    private readonly feedEvents: SessionFeedEvents,
    private readonly env: Env,
  ) {}

  /** Stores a session that was fetched because it was due, unless another answer was stored meanwhile. */
  async storeFetched(tx: PoolClient, { claimed, row }: Fetched<SessionRow>, session: SessionAnswer): Promise<Outcome> {
    const stored = await this.store(tx, row, { ticket: takeTicket(claimed), session });
    if (!stored.kept) return released(row.now);
    const isToTell = stored.notesChanged || session.state === 'Error';
    return {
      set: 'lane = $1',
      values: [EVENT_LANE],
      ...(isToTell && { afterCommit: () => this.feedEvents.publish() }),
    };
  }

  /**
   * Stores a session that was not fetched because it was due, unless another answer was stored since it was asked for.
   *
   * @param id ours
   * @param answer its ticket was taken before it was asked for
   */
  async storeAnswer(tx: PoolClient, id: string, answer: TicketedAnswer): Promise<Stored> {
    const { rows } = await tx.query<SessionRow & { now: Date }>(
      'SELECT *, clock_timestamp() AS now FROM sessions WHERE id = $1 FOR UPDATE',
      [id],
    );
    // None: the row became part of another one meanwhile, which is due, too.
    return rows[0] ? this.store(tx, rows[0], answer) : DROPPED;
  }

  private async store(
    tx: PoolClient,
    row: SessionRow & { now: Date },
    { ticket, session }: TicketedAnswer,
  ): Promise<Stored> {
    const fresh = applyFetch(row, ticket);
    if (!fresh) return DROPPED;
    const { id, now } = row;
    const notes = fetchedNotes(session);
    const notesChanged = notes ? await this.notes.store(tx, id, notes, now) : false;
    await this.insights.store(tx, id, fetchedInsights(session), now);
    const facts = factsAfter(session, factsOf(row));
    const error = errorAfter(session);
    const message = error === undefined ? row.error_message : this.seal.errorMessage.sealNullable(id, error?.message);
    const reopenedAt = reopening(row, session.state, now);
    const dueAt = wantsFetch(fresh)
      ? wantedAt(fresh, row, now)
      : this.lookUpAt({ ...row, reopened_at: reopenedAt, state: session.state }, now);
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
        shownAppointment(session.partnerAppointmentId ?? row.event_appointment_id) ?? row.partner_appointment_id,
        error === undefined ? row.error_code : (error?.code ?? null),
        message,
        facts.date,
        facts.sessionCreatedAt,
        facts.sessionDurationMs,
        facts.recordingDurationMs,
        notesChanged ? 1 : 0,
        fresh.fetched_generation,
        fresh.answers,
        now,
        dueAt,
        reopenedAt,
      ],
    );
    await this.feedEvents.note(tx, id, [
      ...(notesChanged ? [{ type: 'session.notes-ready' } as const] : []),
      ...(session.state === 'Error' && row.state !== 'Error' ? [{ type: 'session.failed' } as const] : []),
    ]);
    return { kept: true, notesChanged };
  }

  /**
   * Stores that the platform does not know a session now; it is asked for again. It counts as gone, with its notes kept,
   * if it was there before or was not for long: a platform may not know at once what it has made.
   */
  notFound({ claimed, row }: Fetched<SessionRow>, waitMs: number): Outcome {
    const { now } = row;
    const fresh = applyFetch(row, takeTicket(claimed));
    if (!fresh) return released(now);
    const later = new Date(now.getTime() + waitMs);
    const dueAt = wantsFetch(fresh) ? wantedAt(fresh, row, now) : later;
    const isGone = row.fetched_at !== null || row.failures >= NOT_THERE_FOR_LONG;
    return {
      set: `not_found_at = CASE WHEN $5 THEN coalesce(not_found_at, $1) END, fetched_generation = $2, answers = $3, due_at = $4,
        fault = 'gone', failures = failures + 1, refused_at = NULL, lane = ${EVENT_LANE},
        updated_at = CASE WHEN $5 AND not_found_at IS NULL THEN $1 ELSE updated_at END`,
      values: [now, fresh.fetched_generation, fresh.answers, dueAt, isGone],
    };
  }

  private lookUpAt(session: LookUpSubject, now: Date): Date | null {
    return nextLookUp(session, now, {
      afterMs: this.env.SESSION_REFRESH_AFTER_SECONDS * 1000,
      everyMs: this.env.SESSION_REFRESH_EVERY_SECONDS * 1000,
    });
  }
}

/** The lease ends, and another answer stands; a fetch that is still wanted follows. */
function released(now: Date): Outcome {
  return {
    set: 'due_at = CASE WHEN wanted_generation > fetched_generation THEN $1 ELSE due_at END',
    values: [soon(now)],
  };
}

function soon(now: Date): Date {
  return new Date(now.getTime() + DEBOUNCE_MS);
}

/** When the next fetch is due of a session that wants one; one that only a pending update wants waits for its end. */
function wantedAt(fresh: Freshness, { update_until: updateUntil }: SessionRow, now: Date): Date {
  const onlyTheUpdate = fresh.wanted_generation - fresh.fetched_generation === 1;
  return updateUntil !== null && onlyTheUpdate && updateUntil > soon(now) ? updateUntil : soon(now);
}
