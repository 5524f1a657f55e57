import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Env } from '../../config/env.js';
import { PrismaService } from '../../database/prisma.service.js';
import { DueLoopDeps } from '../../due-rows/due-loop.js';
import { Metrics } from '../../monitoring/metrics.js';
import { PlatformClient } from '../../platform/clients/platform-client.js';
import { Contract } from '../../platform/contract/contract.js';
import type { SessionAnswer } from '../../platform/contract/session-answer.js';
import { type Fetched, FetchLoop, type Outcome } from '../../platform/fetch/fetch-loop.js';
import {
  answeredEventAt,
  applyFetch,
  awaitedAfterFetch,
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
import { SESSION_COLUMNS, updateSession } from '../model/session-columns.js';
import { plainCode, withoutMessage } from '../model/session-facts.js';
import { feedEventsOfFetch, SessionFeed } from '../model/session-feed.js';
import { type Freshness, isOwnState, LANES, type SessionRow, shownAppointment } from '../model/session-row.js';
import { SessionSeal } from '../model/session-seal.js';
import { SessionContentRepository } from './session-content.repository.js';

/** Seconds; from the debounce of an event to hours without the platform. */
const LAG_BUCKETS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14_400, 86_400];

/** Maximum fetches in flight per process; bulk fetches leave one of them for events. */
const MAX_FETCHES = 4;

/** An answer of the platform with the ticket taken before the fetch. */
interface TicketedAnswer {
  ticket: FetchTicket;
  session: SessionAnswer;
}

/** Number of consecutive lookups (in about an hour) after which a session that was never found counts as gone. */
const LOOKUPS_UNTIL_GONE = 10;

/** Stores the outcomes of fetches of sessions. */
@Injectable()
export class RefreshRepository {
  private readonly lag;

  constructor(
    private readonly prisma: PrismaService,
    private readonly content: SessionContentRepository,
    private readonly seal: SessionSeal,
    private readonly feed: SessionFeed,
    private readonly env: Env,
    metrics: Metrics,
  ) {
    const help = 'Time from the newest event of a session to the commit of the changed notes that it announced';
    this.lag = metrics.histogram('note_lag_seconds', help, [], LAG_BUCKETS);
  }

  /** Stores a fetched session, unless another answer was stored since the fetch started. */
  async storeFetched(tx: PoolClient, { claimed, row }: Fetched<SessionRow>, session: SessionAnswer): Promise<Outcome> {
    const eventAt = answeredEventAt(claimed);
    const stored = await this.store(tx, row, { ticket: takeTicket(claimed), session }, eventAt);
    if (!stored) return released(row.now);
    return {
      set: 'lane = $1',
      values: [LANES.events],
      afterCommit: () => {
        if (stored.notesChanged && eventAt) this.lag.observe(lagSeconds(eventAt, row.now));
      },
    };
  }

  /** Stores a session from the answer to another call, unless another answer was stored since that call was sent. */
  async storeAnswer(tx: PoolClient, id: string, answer: TicketedAnswer): Promise<void> {
    const { rows } = await tx.query<SessionRow & { now: Date }>(
      `SELECT ${SESSION_COLUMNS}, clock_timestamp() AS now FROM sessions t WHERE id = $1 FOR UPDATE`,
      [id],
    );
    if (rows[0]) await this.store(tx, rows[0], answer);
  }

  /** True if the content of a session must not be stored, because its clients were deleted. */
  async isErased(tx: PoolClient, id: string): Promise<boolean> {
    const db = await this.prisma.in(tx);
    const session = await db.session.findUnique({ where: { id }, select: { clientUserIds: true } });
    return this.content.isErased(db, session?.clientUserIds ?? []);
  }

  /**
   * @param eventAt when the event arrived that the fetch answers
   * @returns undefined if another answer was stored since the ticket was taken
   */
  private async store(
    tx: PoolClient,
    row: SessionRow & { now: Date },
    { ticket, session }: TicketedAnswer,
    eventAt: Date | null = null,
  ): Promise<{ notesChanged: boolean } | undefined> {
    const fresh = applyFetch(row, ticket);
    if (!fresh) return undefined;
    const { id, now } = row;
    const known = this.seal.openFacts(row);
    // A platform state named like one of this service would be mistaken for it.
    const state = isOwnState(session.state) ? row.state : session.state;
    // An unreadable field says nothing.
    const {
      providerUserId = row.providerUserId,
      clientUserIds = row.clientUserIds,
      noteTemplateIds = row.noteTemplateIds,
    } = session;
    const db = await this.prisma.in(tx);
    const isErased = await this.content.isErased(db, clientUserIds);
    const notes = isErased ? undefined : fetchedNotes(session);
    const stored = notes && (await this.content.storeNotes(db, id, notes, { now, eventAt }));
    const { readable: notesChanged = false, newRevisions = 0 } = stored ?? {};
    if (!isErased) await this.content.storeInsights(db, id, fetchedInsights(session), now);
    const answered = factsAfter(session, known);
    const facts = isErased ? withoutMessage(answered) : answered;
    const notesRevision = row.notesRevision + (notesChanged ? 1 : 0);
    const incomplete = [...session.incomplete];
    const code = facts.error && plainCode(facts.error.code);
    const events = feedEventsOfFetch(row, { state, notesChanged, notesRevision, incomplete, code });
    const reopenedAt = reopening(row, state, now);
    const { recheckAt, ...awaited } = awaitedAfterFetch(row, newRevisions, now);
    const lookupAt = nextLookup({ ...row, reopenedAt, state }, now, {
      afterMs: this.env.SESSION_REFRESH_AFTER_SECONDS * 1000,
      everyMs: this.env.SESSION_REFRESH_EVERY_SECONDS * 1000,
    });
    const appointment = shownAppointment(session.partnerAppointmentId ?? row.eventAppointmentId);
    const shown = {
      state,
      providerUserId,
      clientUserIds,
      noteTemplateIds,
      partnerAppointmentId: appointment ?? row.partnerAppointmentId,
      notesRevision,
      incomplete,
      notFoundAt: null,
    };
    const isAsShown = isDeepStrictEqual({ ...row, ...shown }, row) && isDeepStrictEqual(facts, known);
    const hasFailed = row.failurePublished || events.some(({ type }) => type === 'session.failed');
    await updateSession(tx, id, {
      ...shown,
      ...awaited,
      ...fresh,
      facts: this.seal.sealFacts(id, facts),
      fetchedAt: now,
      stateFromEvents: false,
      failurePublished: hasFailed && state !== 'Done',
      reopenedAt,
      dueAt: wantsFetch(fresh) ? wantedAt(fresh, row, now) : earlier(recheckAt, lookupAt),
      ...NO_FAULT,
      changed: row.changed || !isAsShown || row.fetchedAt === null,
    });
    await this.feed.publish(tx, id, events);
    return { notesChanged };
  }

  /**
   * Stores that the platform does not find a session, and schedules another lookup. The session counts as gone, and keeps
   * its notes, if it was fetched before, or was not found for long: the platform may not find a new session immediately.
   */
  notFound({ claimed, row }: Fetched<SessionRow>, waitMs: number): Outcome {
    const { now } = row;
    const fresh = applyFetch(row, takeTicket(claimed));
    if (!fresh) return released(now);
    const later = new Date(now.getTime() + waitMs);
    const dueAt = wantsFetch(fresh) ? wantedAt(fresh, row, now) : later;
    const isGone = row.fetchedAt !== null || row.failures >= LOOKUPS_UNTIL_GONE;
    return {
      set: `not_found_at = CASE WHEN $5 THEN coalesce(not_found_at, $1) END, fetched_generation = $2, answers = $3, due_at = $4,
        fault = 'gone', failures = failures + 1, lane = ${LANES.events},
        changed = changed OR ($5 AND not_found_at IS NULL)`,
      values: [now, fresh.fetchedGeneration, fresh.answers, dueAt, isGone],
    };
  }
}

/** Fields of a session whose fetch did not fail. */
const NO_FAULT = { fault: null, failures: 0, refusedAt: null };

/** Drops an outdated answer; a fetch that is still wanted follows. */
function released(now: Date): Outcome {
  return {
    set: 'due_at = CASE WHEN wanted_generation > fetched_generation THEN $1 ELSE due_at END',
    values: [soon(now)],
  };
}

function earlier(left: Date | null, right: Date | null): Date | null {
  if (left === null || right === null) return left ?? right;
  return left < right ? left : right;
}

function soon(now: Date): Date {
  return new Date(now.getTime() + DEBOUNCE_MS);
}

/** The time of the next wanted fetch. If only an update in flight wants it, it waits for the end of the update. */
function wantedAt(fresh: Freshness, { updateUntil }: SessionRow, now: Date): Date {
  const isOnlyUpdate = fresh.wantedGeneration - fresh.fetchedGeneration === 1;
  return updateUntil !== null && isOnlyUpdate && updateUntil > soon(now) ? updateUntil : soon(now);
}

/** Fetches due sessions from the platform. */
@Injectable()
export class SessionRefresher extends FetchLoop<SessionRow, SessionAnswer> {
  constructor(refreshes: RefreshRepository, platform: PlatformClient, contract: Contract, deps: DueLoopDeps) {
    super(
      {
        name: 'sessions',
        table: {
          name: 'sessions',
          columns: SESSION_COLUMNS,
          key: 'id',
          lanes: [{ lane: LANES.events }, { lane: LANES.bulk, concurrency: MAX_FETCHES - 1 }],
          effectMs: 0,
          // The fetch that starts now covers an update that can no longer take effect.
          onClaim: 'update_until = CASE WHEN update_until > clock_timestamp() THEN update_until END',
        },
        counter: { name: 'session_fetches_total', help: 'Fetches of sessions by outcome' },
        concurrency: MAX_FETCHES,
        isConfigured: () => contract.canCall('getSession'),
        fetch: ({ sessionId }, signal) => {
          if (sessionId === null) throw new Error('A session without the platform’s id was due to be fetched.');
          return platform.getSession(sessionId, { signal });
        },
        storeAnswer: (tx, fetched, session) => refreshes.storeFetched(tx, fetched, session),
        storeNotFound: (fetched, waitMs) => refreshes.notFound(fetched, waitMs),
      },
      deps,
    );
  }
}
