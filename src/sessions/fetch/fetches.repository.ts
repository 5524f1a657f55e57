import { Injectable } from '@nestjs/common';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import { Metrics } from '../../monitoring/metrics.js';
import type { PlatformError } from '../../platform/contract/platform-errors.js';
import type { SessionAnswer } from '../../platform/contract/session-answer.js';
import { OK } from '../../platform/pauses/request-calls.js';
import { openUnlessDamaged } from '../../vault/unreadable-value.js';
import { endByEvents } from '../model/apply-event.js';
import {
  applyFailure,
  applyFetch,
  type Fetch,
  factsAfter,
  fetchedInsights,
  fetchedNotes,
  isOutdated,
} from '../model/apply-fetch.js';
import { nextLookup } from '../model/next-lookup.js';
import { NO_FACTS, plainCode, withoutMessage } from '../model/session-facts.js';
import { SessionSeal } from '../model/session-seal.js';
import { type LockedSession, SessionsRepository, WITH_TIME } from '../model/sessions.repository.js';
import { CallGate, type GatedCall } from './call-gate.js';
import { SessionContentRepository } from './session-content.repository.js';

/** Seconds; from an event's first fetch to hours without the platform. */
const LAG_BUCKETS = [0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 1_800, 3_600, 14_400, 86_400];

/** A fetch that was committed, so that no answer to an earlier one is stored any more. */
export interface BegunFetch extends Fetch, GatedCall {
  sessionId: string;
  /** Since when the newest event has waited that this fetch answers; null if it answers none. */
  eventAt: Date | null;
}

const DUE = `SELECT ${WITH_TIME} FROM sessions t
  WHERE id = $1::uuid AND session_id IS NOT NULL AND due_at <= clock_timestamp()`;

/** The two transactions of a fetch: the first marks it, the second stores its answer. */
@Injectable()
export class FetchesRepository {
  private readonly lag;

  constructor(
    private readonly prisma: PrismaService,
    private readonly sessions: SessionsRepository,
    private readonly content: SessionContentRepository,
    private readonly seal: SessionSeal,
    private readonly gate: CallGate,
    metrics: Metrics,
  ) {
    const help = 'Time from the newest event of a session to the commit of the changed notes that it announced';
    this.lag = metrics.histogram('note_lag_seconds', help, [], LAG_BUCKETS);
  }

  /**
   * Begins a fetch, if one is due.
   *
   * @returns `nothing` if none is to be sent now; undefined if no session of the platform with this id is due
   */
  async begin(id: string): Promise<BegunFetch | 'nothing' | undefined> {
    const [row] = await this.prisma.$queryRawUnsafe<LockedSession[]>(DUE, id);
    if (!row || row.sessionId === null) return undefined;
    const { now, sessionId, lastEventAt, fetchedAt, changes, refusedAt, refusedStatus } = row;
    const { what, at } = nextLookup(row, now, this.sessions.policy);
    if (what !== 'fetch' || at === null || at > now) {
      await this.decideAgain(id);
      return 'nothing';
    }
    const probes = this.sessions.canFetch ? await this.gate.admit('getSession', now) : undefined;
    if (!probes) return 'nothing';
    const data = { callNo: { increment: 1 } };
    const { callNo: no } = await this.prisma.session.update({ where: { id }, data, select: { callNo: true } });
    return {
      ...{ id, sessionId, no, changes, at: now, probes, refusedAt, refusedStatus },
      eventAt: lastEventAt !== null && (fetchedAt === null || lastEventAt > fetchedAt) ? lastEventAt : null,
    };
  }

  /** Stores an answer, unless a later call about the session has begun. */
  async storeAnswer(fetch: BegunFetch, answer: SessionAnswer): Promise<void> {
    const stored = await this.prisma.transaction(async (tx) => {
      const row = await this.sessions.lockExisting(tx, fetch.id);
      const result = await this.store(tx, row, fetch, answer);
      await this.gate.judge(tx, 'getSession', fetch, OK, row.now);
      return result;
    });
    if (stored?.notesChanged && fetch.eventAt)
      this.lag.observe(Math.max(0, stored.now.getTime() - fetch.eventAt.getTime()) / 1_000);
  }

  /** Stores the session in an answer. @returns undefined if a later call about it has begun */
  async store(
    tx: Tx,
    row: LockedSession,
    fetch: Fetch & { eventAt: Date | null },
    answer: SessionAnswer,
  ): Promise<{ notesChanged: boolean; now: Date } | undefined> {
    const { now, id } = row;
    if (isOutdated(row, fetch)) return undefined;
    const readable = openUnlessDamaged(() => this.seal.openFacts(row));
    const known = readable ?? NO_FACTS;
    const isErased = await this.content.isErased(tx, row, answer.clientUserIds ?? undefined);
    if (isErased) await this.content.removeAnswers(tx, id);
    const notes = isErased ? undefined : fetchedNotes(answer);
    const isFirst = row.fetchedAt === null;
    const stored = notes && (await this.content.storeNotes(tx, id, notes, { now, eventAt: fetch.eventAt }, isFirst));
    const { readable: notesChanged = false, newRevisions = 0 } = stored ?? {};
    const transcriptChanged =
      !isErased && (await this.content.storeInsights(tx, id, fetchedInsights(answer), now, isFirst));
    const answered = factsAfter(answer, known);
    const facts = isErased ? withoutMessage(answered) : answered;
    const changes = applyFetch(row, fetch, answer, { now, notesChanged, newRevisions });
    const isSeen = SEEN.some((field) => field in changes && String(row[field]) !== String(changes[field]));
    const isNews = isFirst || isSeen || transcriptChanged || JSON.stringify(facts) !== JSON.stringify(known);
    await this.sessions.save(
      tx,
      row,
      // Damaged facts stay as they are, because they show that someone changed them.
      { ...changes, ...(readable && { facts: this.seal.sealFacts(id, facts) }), ...(isNews && { updatedAt: now }) },
      { notesChanged, transcriptChanged, code: facts.error && plainCode(facts.error.code) },
    );
    return { notesChanged, now };
  }

  /** Stores that a fetch failed. @returns its code */
  async storeFault(fetch: BegunFetch, error: PlatformError): Promise<string> {
    return this.prisma.transaction(async (tx) => {
      const row = await this.sessions.lockExisting(tx, fetch.id);
      const failure = await this.gate.failed(tx, 'getSession', fetch, row, error, row.now);
      if (!isOutdated(row, fetch)) await this.sessions.save(tx, row, applyFailure(row, fetch, failure, row.now));
      return failure.fault;
    });
  }

  /** Stores that the work on a session threw an error. */
  async postpone(id: string, fault: string, retryAt: (failures: number, now: Date) => Date): Promise<void> {
    await this.prisma.transaction(async (tx) => {
      const row = await this.sessions.lockExisting(tx, id);
      const failures = row.failures + 1;
      const at = retryAt(failures, row.now);
      if (row.sessionId !== null) await this.sessions.save(tx, row, { fault, failures, retryAt: at });
      // An attempt that may be in flight keeps its time.
      else if (row.attemptedAt === null) await this.sessions.update(tx, id, { fault, failures, dueAt: at });
    });
  }

  /** Publishes the end of a session that has waited too long for an answer, and decides its next lookup. */
  private async decideAgain(id: string): Promise<void> {
    await this.prisma.transaction(async (tx) => {
      const row = await this.sessions.lockExisting(tx, id);
      const isOver = row.publishEndBy !== null && row.publishEndBy <= row.now;
      await this.sessions.save(tx, row, isOver ? endByEvents(row, row.now) : {});
    });
  }
}

/** What readers see of a row beside its facts. */
const SEEN = [
  ...(['state', 'stateFrom', 'providerUserId', 'clientUserIds', 'noteTemplateIds', 'partnerAppointmentId'] as const),
  ...(['notesRevision', 'incomplete', 'notFoundAt'] as const),
] as const;
