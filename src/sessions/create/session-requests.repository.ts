import { Injectable } from '@nestjs/common';
import { type Tx, toBytes } from '../../database/prisma.service.js';
import type { CreateTherapySessionRequest } from '../../platform/contract/wire-types.js';
import { NO_FACTS } from '../model/session-facts.js';
import { shownAppointment } from '../model/session-row.js';
import { SessionSeal } from '../model/session-seal.js';
import { type LockedSession, SessionsRepository } from '../model/sessions.repository.js';
import { RequestAttempts } from './request-attempts.repository.js';
import { RequestClaims } from './request-claims.repository.js';

/** A request or session that blocks another request for the same provider and appointment. */
export interface BlockingSession {
  /** Our id of the session. */
  id: string;
  state: string;
  /** True if a request is open. False if it is a session that a duplicate may follow. */
  isOpen: boolean;
}

const OPEN = ['Requested', 'Unknown'];

/** Stores the EHR's requests for sessions, and how operators resolve them. */
@Injectable()
export class SessionRequestsRepository {
  constructor(
    private readonly seal: SessionSeal,
    private readonly sessions: SessionsRepository,
    private readonly claims: RequestClaims,
    private readonly attempts: RequestAttempts,
  ) {}

  /** True if an earlier run of the same request stored it. */
  async isStored(tx: Tx, id: string): Promise<boolean> {
    return (await tx.session.count({ where: { id } })) === 1;
  }

  /**
   * Stores a request as a session.
   *
   * @param id of the session here
   * @param options.inputKind recording or text
   * @returns what blocks it; undefined if it was stored now or by an earlier run
   */
  async keep(
    tx: Tx,
    id: string,
    body: CreateTherapySessionRequest,
    { inputKind, allowDuplicate }: { inputKind: string; allowDuplicate: boolean },
  ): Promise<BlockingSession | undefined> {
    const { providerUserId, partnerAppointmentId, clientUserId } = body;
    const clientUserIds = clientUserId === undefined ? [] : [clientUserId];
    for (;;) {
      const blocking = await this.blocking(tx, providerUserId, partnerAppointmentId);
      if (blocking?.isOpen) return blocking.id === id ? undefined : blocking;
      if (blocking && !allowDuplicate) return blocking;
      const [{ now }] = await tx.$queryRaw<[{ now: Date }]>`SELECT clock_timestamp() AS now`;
      const { count } = await tx.session.createMany({
        data: {
          ...{ id, state: 'Requested', dueAt: now, requestedAt: now, inputKind, providerUserId, clientUserIds },
          everClientUserIds: clientUserIds,
          noteTemplateIds: 'noteTemplateIds' in body ? body.noteTemplateIds : [],
          correlationId: partnerAppointmentId ?? null,
          partnerAppointmentId: shownAppointment(partnerAppointmentId),
          request: toBytes(this.seal.request.seal(id, body)),
          facts: this.seal.sealFacts(id, { ...NO_FACTS, date: body.date ?? null }),
        },
        skipDuplicates: true,
      });
      if (count === 1) this.sessions.wake(tx, id);
      // No row: another request was stored after the look at what blocks this one. Look again.
      if (count === 1 || (await this.isStored(tx, id))) return undefined;
    }
  }

  /**
   * Gives a request whose outcome is unknown the platform's session.
   *
   * @returns `wrong-state` if it has another one, `taken` if the session belongs to another request
   */
  async link(tx: Tx, id: string, sessionId: string): Promise<'linked' | 'taken' | 'wrong-state'> {
    const row = await this.locked(tx, id, 'Unknown');
    if (!row) return 'wrong-state';
    return (await this.claims.settle(tx, row, sessionId)) ? 'linked' : 'taken';
  }

  /** Sends a request again whose outcome is unknown. @returns false if it is another one */
  async sendAgain(tx: Tx, id: string): Promise<boolean> {
    const row = await this.locked(tx, id, 'Unknown');
    if (!row) return false;
    const again = { state: 'Requested', attemptedAt: null, dueAt: row.now, updatedAt: row.now, callNo: row.callNo + 1 };
    await this.sessions.update(tx, id, { ...again, failures: 0, fault: null, refusedAt: null, refusedStatus: null });
    this.sessions.wake(tx, id);
    return true;
  }

  /** Ends a request whose outcome is unknown, or that waits to be sent. @returns false if it is another one */
  async abandon(tx: Tx, id: string, message: string): Promise<boolean> {
    const row = await this.locked(tx, id, 'Unknown', 'Requested');
    if (!row || (row.state === 'Requested' && row.attemptedAt !== null)) return false;
    await this.attempts.reject(tx, row, { code: 'abandoned', message });
    return true;
  }

  private async locked(tx: Tx, id: string, ...states: string[]): Promise<LockedSession | undefined> {
    const row = await this.sessions.lock(tx, id);
    return row && states.includes(row.state) ? row : undefined;
  }

  /** The session of the same provider and appointment that blocks a new request: an open request, or the oldest session. */
  private async blocking(
    tx: Tx,
    providerUserId: string,
    appointment: string | undefined,
  ): Promise<BlockingSession | undefined> {
    const shown = shownAppointment(appointment);
    if (shown === null) return undefined;
    const first = (state: { in: string[] } | { notIn: string[] }) =>
      tx.session.findFirst({
        where: { partnerAppointmentId: shown, providerUserId, state },
        orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
        select: { id: true, state: true },
      });
    const found = (await first({ in: OPEN })) ?? (await first({ notIn: ['Rejected', 'Merged'] }));
    return found === null ? undefined : { ...found, isOpen: OPEN.includes(found.state) };
  }
}
