import { Injectable } from '@nestjs/common';
import { Audit } from '../../audit/audit.js';
import type { Tx } from '../../database/prisma.service.js';
import type { SessionEvent } from '../../platform/contract/wire-types.js';
import { openIfReadable } from '../../vault/unreadable-value.js';
import { NO_FAULT } from '../model/apply-fetch.js';
import { NO_FACTS, type SessionFacts } from '../model/session-facts.js';
import { OWN_CORRELATION, type SessionRow } from '../model/session-row.js';
import { SessionSeal } from '../model/session-seal.js';
import { type LockedSession, SessionsRepository } from '../model/sessions.repository.js';

/** How long an event waits for the answer to a create in flight that it may belong to. */
const WAIT_MS = 60_000;

/** A session's row, with the changes that come from its request. */
export interface Claimed {
  row: LockedSession;
  changes: Partial<SessionRow>;
  /** The id of the request's row, if it becomes an alias of `row`. */
  merged?: string;
  /** True if the session is new to readers. */
  isNew: boolean;
}

/** Decides which request a session of the platform belongs to. Each request gets one, by its answer, an event or an operator. */
@Injectable()
export class RequestClaims {
  constructor(
    private readonly sessions: SessionsRepository,
    private readonly seal: SessionSeal,
    private readonly audit: Audit,
  ) {}

  /**
   * Finds the row of an event's session: its own, that of the request whose appointment it carries, or a new one.
   *
   * @param waitingSince of its delivery
   * @returns `waiting` while the answer to a create in flight will show whether the session is its own: at most a minute
   */
  async rowOf(tx: Tx, event: SessionEvent, receivedAt: Date, waitingSince: Date): Promise<Claimed | 'waiting'> {
    const { sessionId, partnerAppointmentId } = event;
    const known = await this.sessions.lockByPlatformId(tx, sessionId);
    const isSettled = known !== undefined && (known.requestedAt !== null || partnerAppointmentId == null);
    if (isSettled) return { row: known, changes: {}, isNew: false };
    const open = await this.openRequests(tx, event, receivedAt);
    const isWaiting = open.some(({ isInFlight }) => isInFlight);
    if (isWaiting && !known && (await this.isWithin(tx, waitingSince))) return 'waiting';
    const own = open.find(({ isInFlight, correlationId }) => !isInFlight && correlationId === partnerAppointmentId);
    const request = own && (await this.sessions.lock(tx, own.id));
    const isOpen = request?.state === 'Unknown' || (request?.state === 'Requested' && request.attemptedAt === null);
    if (request && isOpen && (await this.mayOwn(tx, request, known))) {
      await this.noteEvidence(tx, request, sessionId);
      return known ? this.merge(tx, request, known) : this.settled(request, sessionId);
    }
    return { changes: {}, ...(known ? { row: known, isNew: false } : await this.sessions.createOrLock(tx, sessionId)) };
  }

  /**
   * Gives a request the session that its answer or an operator names, and saves it.
   *
   * @returns false if that session belongs to another request
   */
  async settle(tx: Tx, request: LockedSession, sessionId: string): Promise<boolean> {
    const known = await this.sessions.lockByPlatformId(tx, sessionId);
    if (known?.id === request.id) return true;
    if (known && known.requestedAt !== null) return false;
    const { row, changes, ...happened } = known
      ? await this.merge(tx, request, known)
      : this.settled(request, sessionId);
    await this.sessions.save(tx, row, { ...changes, changes: row.changes + 1, updatedAt: row.now }, happened);
    return true;
  }

  /**
   * Settles a request without an answer by the one session that an event named with its appointment, if there is one.
   *
   * @returns false if there is none, or several
   */
  async settleByEvents(tx: Tx, request: LockedSession): Promise<boolean> {
    const { correlationId, providerUserId, requestedAt } = request;
    if (requestedAt === null || !(await this.mayOwn(tx, request, undefined))) return false;
    const named = await tx.session.findMany({
      where: {
        ...{ eventAppointmentId: correlationId, providerUserId, requestedAt: null },
        ...{ sessionId: { not: null }, createdAt: { gte: requestedAt } },
      },
      select: { sessionId: true },
      take: 2,
    });
    const [only] = named;
    if (named.length !== 1 || only?.sessionId == null) return false;
    await this.noteEvidence(tx, request, only.sessionId);
    return this.settle(tx, request, only.sessionId);
  }

  /** The request's row becomes that of the session. */
  private settled(request: LockedSession, sessionId: string): Claimed {
    const changes = { ...ENDED, settledAt: request.now, sessionId, state: 'InProgress', stateFrom: 'events' };
    return { row: request, changes: { ...changes, facts: this.factsWith(request, null) }, isNew: true };
  }

  /**
   * The request's row becomes an alias of the one that an event made of its session first. No notes move; that row gets what
   * the request knows and it does not.
   */
  private async merge(tx: Tx, request: LockedSession, row: LockedSession): Promise<Claimed> {
    const { correlationId, inputKind, requestedAt, attemptedAt, clientUserIds, noteTemplateIds } = request;
    await this.sessions.update(tx, request.id, {
      ...ENDED,
      ...{
        state: 'Merged',
        stateFrom: null,
        aliasOf: row.id,
        settledAt: request.now,
        dueAt: null,
        updatedAt: request.now,
      },
    });
    const [requested, known] = [request, row].map((each) => openIfReadable(() => this.seal.openFacts(each)));
    const date = known?.date ?? requested?.date ?? null;
    const changes = {
      ...{ correlationId, inputKind, requestedAt, attemptedAt, settledAt: request.now },
      ...(known && { facts: this.seal.sealFacts(row.id, { ...known, date }) }),
      providerUserId: row.providerUserId ?? request.providerUserId,
      partnerAppointmentId: row.partnerAppointmentId ?? request.partnerAppointmentId,
      everClientUserIds: [...new Set([...row.everClientUserIds, ...clientUserIds])],
      ...(row.fetchedAt === null && { clientUserIds, noteTemplateIds }),
    };
    return { row, changes, merged: request.id, isNew: false };
  }

  /** The sealed facts with another error. Without one, facts that do not open are kept. */
  factsWith(row: SessionRow, error: SessionFacts['error']): SessionRow['facts'] {
    const facts = openIfReadable(() => this.seal.openFacts(row));
    if (!facts && !error) return row.facts;
    return this.seal.sealFacts(row.id, { ...(facts ?? NO_FACTS), error });
  }

  /** The provider's requests that the platform may have received before an event, and not answered. */
  private async openRequests(tx: Tx, { providerUserId, partnerAppointmentId }: SessionEvent, receivedAt: Date) {
    // A generated id names one request, so that no provider is needed.
    const isOwn = partnerAppointmentId?.startsWith(OWN_CORRELATION) ?? false;
    if (providerUserId === null && !isOwn) return [];
    const rows = await tx.session.findMany({
      where: {
        ...{ state: { in: ['Requested', 'Unknown'] }, callNo: { gt: 0 }, requestedAt: { lte: receivedAt } },
        ...(partnerAppointmentId != null && { correlationId: partnerAppointmentId }),
        ...(providerUserId !== null && { providerUserId }),
      },
      select: { id: true, state: true, correlationId: true, attemptedAt: true },
    });
    return rows.map(({ id, state, correlationId, attemptedAt }) => {
      return { id, correlationId, isInFlight: state === 'Requested' && attemptedAt !== null };
    });
  }

  /** False if the session was there before the request, or may be that of a request for the same appointment that was abandoned. */
  private async mayOwn(tx: Tx, request: LockedSession, known: LockedSession | undefined): Promise<boolean> {
    const { correlationId, providerUserId, requestedAt } = request;
    if (requestedAt !== null && known && known.createdAt < requestedAt) return false;
    const where = { correlationId, providerUserId, abandoned: true, callNo: { gt: 0 } };
    return (await tx.session.count({ where })) === 0;
  }

  private async isWithin(tx: Tx, since: Date): Promise<boolean> {
    const [{ isWithin }] = await tx.$queryRaw<[{ isWithin: boolean }]>`
      SELECT clock_timestamp() < ${since}::timestamptz + ${WAIT_MS} * interval '1 millisecond' AS "isWithin"`;
    return isWithin;
  }

  private async noteEvidence(tx: Tx, { id }: SessionRow, sessionId: string): Promise<void> {
    const subjects = { session: [id], 'platform-session': [sessionId] };
    await this.audit.system('session.linked-by-evidence', subjects, 'ok', tx);
  }
}

/** The fields of a request that has ended. Plan and text are erased. */
export const ENDED = { request: null, ...NO_FAULT };
