import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Env } from '../../config/env.js';
import { Metrics } from '../../http/server/metrics.js';
import { PlatformClient } from '../../platform/clients/platform-client.js';
import { Contract } from '../../platform/contract/contract.js';
import type { SessionAnswer } from '../../platform/contract/session-answer.js';
import { type Fetched, FetchLoop, type Outcome } from '../../platform/fetch/fetch-loop.js';
import { DueParts } from '../../queue/due-rows/due-loop.js';
import { annotate } from '../../tracing/trace.js';
import {
  answeredEventAt,
  applyFetch,
  DEBOUNCE_MS,
  type FetchTicket,
  factsAfter,
  fetchedInsights,
  fetchedNotes,
  lagSeconds,
  nextLookup,
  reopening,
  takeTicket,
  wantsFetch,
} from '../model/apply-fetch.js';
import { withoutMessage } from '../model/session-facts.js';
import { SessionFeedEvents } from '../model/session-feed-events.js';
import { type Freshness, type SessionRow, shownAppointment } from '../model/session-row.js';
import { SessionSeal } from '../model/session-seal.js';
import { SessionContentRepository } from './session-content.repository.js';
import { BULK_LANE, EVENT_LANE } from './wanted-refreshes.repository.js';

/** Seconds: an event waits half a second for others, and a fetch may wait for the platform for hours. */
const LAG_BUCKETS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14_400, 86_400];

/** Sessions that one process fetches side by side; one place is left by bulk fetches for those of events. */
const FETCHES_AT_ONCE = 4;

/** An answer of the platform with what was read before it was asked for. */
interface TicketedAnswer {
  ticket: FetchTicket;
  session: SessionAnswer;
}

/** Look-ups in a row, over about an hour, that did not find a session. */
const NOT_THERE_FOR_LONG = 10;

/** What became of the fetches of sessions. */
@Injectable()
export class RefreshRepository {
  private readonly lag;

  constructor(
    private readonly content: SessionContentRepository,
    private readonly seal: SessionSeal,
    private readonly feedEvents: SessionFeedEvents,
    private readonly env: Env,
    metrics: Metrics,
  ) {
    const help = 'Time from the arrival of the newest event of a session to the commit of other notes that it led to';
    this.lag = metrics.histogram('note_lag_seconds', help, [], LAG_BUCKETS);
  }

  /** Stores a session that was fetched because it was due, unless another answer was stored meanwhile. */
  async storeFetched(tx: PoolClient, { claimed, row }: Fetched<SessionRow>, session: SessionAnswer): Promise<Outcome> {
    const eventAt = answeredEventAt(claimed);
    const stored = await this.store(tx, row, { ticket: takeTicket(claimed), session }, eventAt);
    if (!stored) return released(row.now);
    annotate({ 'notebridge.notes_changed': stored.notesChanged });
    return {
      set: 'lane = $1',
      values: [EVENT_LANE],
      afterCommit: async () => {
        if (stored.notesChanged && eventAt) this.lag.observe(lagSeconds(eventAt, row.now));
        if (stored.isPending) await this.feedEvents.publish();
      },
    };
  }

  /**
   * Stores a session that was not fetched because it was due, unless another answer was stored since it was asked for.
   *
   * @param id ours
   * @param answer its ticket was taken before it was asked for
   * @returns whether feed events are pending after it
   */
  async storeAnswer(tx: PoolClient, id: string, answer: TicketedAnswer): Promise<boolean> {
    const { rows } = await tx.query<SessionRow & { now: Date }>(
      'SELECT *, clock_timestamp() AS now FROM sessions WHERE id = $1 FOR UPDATE',
      [id],
    );
    // None: the row became part of another one meanwhile, which is due, too.
    const stored = rows[0] && (await this.store(tx, rows[0], answer));
    return stored?.isPending ?? false;
  }

  /** Whether nothing that the platform says of a session is kept. @param id ours */
  async isErased(tx: PoolClient, id: string): Promise<boolean> {
    const { rows } = await tx.query<{ clients: string[] }>(
      'SELECT client_user_ids AS clients FROM sessions WHERE id = $1',
      [id],
    );
    return this.content.isErased(tx, rows[0]?.clients ?? []);
  }

  /**
   * @param eventAt of the event that the fetch answers
   * @returns undefined when another answer stands, which was stored meanwhile
   */
  private async store(
    tx: PoolClient,
    row: SessionRow & { now: Date },
    { ticket, session }: TicketedAnswer,
    eventAt: Date | null = null,
  ): Promise<{ isPending: boolean; notesChanged: boolean } | undefined> {
    const fresh = applyFetch(row, ticket);
    if (!fresh) return undefined;
    const { id, now } = row;
    const known = this.seal.openFacts(row);
    const isErased = await this.content.isErased(tx, session.clientUserIds);
    const notes = isErased ? undefined : fetchedNotes(session);
    const notesChanged = notes ? await this.content.storeNotes(tx, id, notes, { now, eventAt }) : false;
    if (!isErased) await this.content.storeInsights(tx, id, fetchedInsights(session), now);
    const said = factsAfter(session, known);
    const facts = isErased ? withoutMessage(said) : said;
    const reopenedAt = reopening(row, session.state, now);
    const dueAt = wantsFetch(fresh)
      ? wantedAt(fresh, row, now)
      : nextLookup({ ...row, reopened_at: reopenedAt, state: session.state }, now, {
          afterMs: this.env.SESSION_REFRESH_AFTER_SECONDS * 1000,
          everyMs: this.env.SESSION_REFRESH_EVERY_SECONDS * 1000,
        });
    await tx.query(
      `UPDATE sessions SET state = $2, provider_user_id = $3, client_user_ids = $4, note_template_ids = $5,
         partner_appointment_id = $6, facts = $7, notes_revision = notes_revision + $8,
         fetched_generation = $9, answers = $10, fetched_at = $11, state_from_events = false, not_found_at = NULL,
         fault = NULL, failures = 0, refused_at = NULL, due_at = $12, reopened_at = $13,
         updated_at = CASE WHEN $8 = 0 AND $14 AND not_found_at IS NULL AND fetched_at IS NOT NULL
             AND (state, provider_user_id, client_user_ids, note_template_ids, partner_appointment_id)
               IS NOT DISTINCT FROM ($2, $3, $4::text[], $5::text[], $6)
           THEN updated_at ELSE $11 END
       WHERE id = $1`,
      [
        id,
        session.state,
        session.providerUserId,
        session.clientUserIds,
        session.noteTemplateIds,
        shownAppointment(session.partnerAppointmentId ?? row.event_appointment_id) ?? row.partner_appointment_id,
        this.seal.sealFacts(id, facts),
        notesChanged ? 1 : 0,
        fresh.fetched_generation,
        fresh.answers,
        now,
        dueAt,
        reopenedAt,
        isDeepStrictEqual(facts, known),
      ],
    );
    const events = [
      ...(notesChanged ? [{ type: 'session.notes-ready' } as const] : []),
      ...(session.state === 'Error' && row.state !== 'Error' ? [{ type: 'session.failed' } as const] : []),
    ];
    await this.feedEvents.add(tx, id, events);
    return { isPending: events.length > 0, notesChanged };
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

/** Keeps sessions as the platform has them. */
@Injectable()
export class SessionRefresher extends FetchLoop<SessionRow, SessionAnswer> {
  constructor(refreshes: RefreshRepository, platform: PlatformClient, contract: Contract, parts: DueParts) {
    super(
      {
        name: 'sessions',
        queue: 'sessions',
        table: {
          name: 'sessions',
          key: 'id',
          lanes: [{ lane: EVENT_LANE }, { lane: BULK_LANE, atOnce: FETCHES_AT_ONCE - 1 }],
          effectMs: 0,
          // An update that can't take effect any more is covered by the fetch that begins.
          onClaim: 'update_until = CASE WHEN update_until > clock_timestamp() THEN update_until END',
        },
        counter: { name: 'session_fetches_total', help: 'Fetches of sessions by what they came to' },
        places: FETCHES_AT_ONCE,
        traced: ({ id }) => ({ 'notebridge.session': id }),
        isConfigured: () => contract.canCall('getSession'),
        fetch: ({ session_id: sessionId }, signal) => {
          if (sessionId === null) throw new Error('A session that the platform has not named was due to be fetched.');
          return platform.getSession(sessionId, { signal });
        },
        storeAnswer: (tx, fetched, session) => refreshes.storeFetched(tx, fetched, session),
        storeNotFound: (fetched, waitMs) => refreshes.notFound(fetched, waitMs),
      },
      parts,
    );
  }
}
