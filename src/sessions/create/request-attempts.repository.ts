import { Injectable } from '@nestjs/common';
import { Random } from '../../config/random.js';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import { faultOf, type PlatformError } from '../../platform/contract/platform-errors.js';
import { endingOf, OK } from '../../platform/pauses/request-calls.js';
import { type Bounds, backoffMs } from '../../queue/work/backoff.js';
import { Restores } from '../../sending/restores.js';
import { Sending } from '../../sending/sending.js';
import { CallGate, type GatedCall, isRefusal } from '../fetch/call-gate.js';
import { SessionContentRepository } from '../fetch/session-content.repository.js';
import type { SessionFacts } from '../model/session-facts.js';
import type { SessionRow } from '../model/session-row.js';
import { type LockedSession, SessionsRepository } from '../model/sessions.repository.js';
import { ENDED, RequestClaims } from './request-claims.repository.js';

/** The wait after an attempt that had no effect. */
const BACKOFF: Bounds = { baseMs: 1_000, maxMs: 5 * 60_000 };

/** An attempt whose mark was committed: it may be sent once. */
export interface Attempt extends GatedCall {
  no: number;
  row: SessionRow;
}

/**
 * The two transactions of an attempt to send a request: the first marks it, the second stores its outcome. A request ends by
 * its answer, an event or an operator:
 *
 * | answer                                      | the request is then                                             |
 * |---------------------------------------------|-----------------------------------------------------------------|
 * | the platform's id                           | that session                                                    |
 * | a refusal of this request                   | `Rejected`                                                      |
 * | none, or an unreadable one; a killed process | `Unknown`, unless an event named the session. Never sent again |
 * | one that proves that nothing happened (429, 401, a wrong URL, no connection) | sent again                     |
 */
@Injectable()
export class RequestAttempts {
  constructor(
    private readonly prisma: PrismaService,
    private readonly sessions: SessionsRepository,
    private readonly claims: RequestClaims,
    private readonly gate: CallGate,
    private readonly sending: Sending,
    private readonly content: SessionContentRepository,
    private readonly random: Random,
    restores: Restores,
  ) {
    restores.register({ released: (tx, heldSince) => this.settleRestored(tx, heldSince) });
  }

  /**
   * Marks an attempt, if one is due.
   *
   * @param onMarked called with the number of the attempt before its mark is committed
   * @returns undefined if nothing is to be sent now. A request whose attempt got no answer in time is `Unknown` then
   */
  take(id: string, onMarked: (no: number) => void): Promise<Attempt | undefined> {
    return this.prisma.transaction(async (tx) => {
      const row = await this.sessions.lock(tx, id);
      if (row?.state !== 'Requested' || row.dueAt === null || row.dueAt > row.now) return undefined;
      const { now } = row;
      if (row.attemptedAt !== null) {
        await this.unknown(tx, row);
        return undefined;
      }
      const [{ isHeld }] = await tx.$queryRawUnsafe<[{ isHeld: boolean }]>(
        `SELECT ${this.sending.heldSql} AS "isHeld"`,
      );
      const probes = isHeld ? undefined : await this.gate.admit('createSession', now, tx);
      if (!probes) return undefined;
      const no = row.callNo + 1;
      onMarked(no);
      const dueAt = new Date(now.getTime() + this.gate.callMs);
      await this.sessions.update(tx, id, { callNo: no, attemptedAt: now, dueAt });
      const { refusedAt, refusedStatus } = row;
      return { id, no, row, at: now, probes, refusedAt, refusedStatus };
    });
  }

  /** Takes back a mark whose commit was not confirmed. Nothing was sent. */
  async takeBack(id: string, no: number): Promise<void> {
    const where = { id, callNo: no, state: 'Requested' };
    await this.prisma.session.updateMany({ where, data: { attemptedAt: null, dueAt: new Date(0) } });
  }

  /** Stores the platform's id. If it belongs to another request, the outcome is unknown. @returns the code of the outcome */
  async accepted({ id, no, ...attempt }: Attempt, sessionId: string): Promise<string> {
    await this.store(id, no, async (tx, row) => {
      if (row && !(await this.claims.settle(tx, row, sessionId)) && row.state === 'Requested')
        await this.unknown(tx, row);
      // Last, because every transaction locks rows of sessions before pauses.
      const now = row?.now ?? attempt.at;
      await this.gate.judge(tx, 'createSession', { id, ...attempt }, OK, now);
    });
    return 'accepted';
  }

  /** Stores that an attempt failed. @returns its code */
  async failed({ id, no, ...attempt }: Attempt, error: PlatformError): Promise<string> {
    // A request names nothing that the platform may not find.
    let outcome = error.kind === 'not-found' ? 'platform-address' : faultOf(error);
    await this.store(id, no, async (tx, row) => {
      const now = row?.now ?? attempt.at;
      const { verdict, retryAt } = await this.gate.judge(tx, 'createSession', { id, ...attempt }, endingOf(error), now);
      if (!row) return;
      if (verdict === 'lost') {
        outcome = 'unknown-outcome';
        if (row.state === 'Requested') await this.unknown(tx, row);
      } else if (retryAt) {
        const refused = isRefusal(verdict) && { refusedAt: now, refusedStatus: error.status ?? null };
        await this.sendAgain(tx, row, { fault: outcome, dueAt: retryAt, ...refused });
      } else {
        outcome = 'rejected';
        await this.reject(tx, row, { code: 'platform-rejected', message: error.platformMessage ?? '' });
      }
    });
    return outcome;
  }

  /** Stores that nothing was sent, because of this process. @returns its code */
  async notSent({ id, no, ...attempt }: Attempt, fault: string): Promise<string> {
    await this.store(id, no, async (tx, row) => {
      const unsent = { kind: 'unreadable', status: null } as const;
      await this.gate.judge(tx, 'createSession', { id, ...attempt }, unsent, row?.now ?? attempt.at);
      const failures = (row?.failures ?? 0) + 1;
      const waitMs = backoffMs(failures, this.random.fraction(), BACKOFF);
      if (row) await this.sendAgain(tx, row, { fault, failures, dueAt: new Date(row.now.getTime() + waitMs) });
    });
    return fault;
  }

  /** Ends a request that was not accepted, so that nothing more is sent. */
  async reject(tx: Tx, row: LockedSession, error: NonNullable<SessionFacts['error']>): Promise<void> {
    const { code } = error;
    const isAbandoned = code === 'abandoned';
    const changes = {
      ...ENDED,
      ...{
        state: 'Rejected',
        stateFrom: null,
        abandoned: isAbandoned,
        settledAt: row.now,
        dueAt: null,
        updatedAt: row.now,
      },
      facts: this.claims.factsWith(row, error),
    };
    await this.sessions.update(tx, row.id, changes);
    if (!isAbandoned)
      await this.sessions.publish(tx, { ...row, ...changes }, [{ type: 'session.failed', state: 'Rejected', code }]);
  }

  /** Not if an event named the session. */
  private async unknown(tx: Tx, row: LockedSession): Promise<void> {
    if (await this.claims.settleByEvents(tx, row)) return;
    const changes = { state: 'Unknown', fault: null, dueAt: null, updatedAt: row.now };
    await this.sessions.update(tx, row.id, changes);
    await this.sessions.publish(tx, { ...row, ...changes }, [{ type: 'session.needs-review', state: 'Unknown' }]);
  }

  /** Not if its client was deleted meanwhile. */
  private async sendAgain(tx: Tx, row: LockedSession, changes: Partial<SessionRow>): Promise<void> {
    if (await this.content.isErased(tx, row)) {
      return this.reject(tx, row, { code: 'abandoned', message: 'Its client was deleted before it was sent.' });
    }
    const isSeen = row.state === 'Unknown' && { state: 'Requested', updatedAt: row.now };
    await this.sessions.update(tx, row.id, { ...changes, attemptedAt: null, ...isSeen });
  }

  /** A late answer counts, although its request is `Unknown`. Undefined if the request has ended, or was sent again. */
  private store(
    id: string,
    no: number,
    work: (tx: Tx, row: LockedSession | undefined) => Promise<void>,
  ): Promise<void> {
    return this.prisma.transaction(async (tx) => {
      const row = await this.sessions.lockExisting(tx, id);
      const isOpen = row.callNo === no && (row.state === 'Requested' || row.state === 'Unknown');
      await work(tx, isOpen ? row : undefined);
    });
  }

  /** After a restore, requests that the backup contains as unsent may have been sent, so that their outcome is unknown. */
  private async settleRestored(tx: Tx, heldSince: Date): Promise<void> {
    const where = { state: 'Requested', requestedAt: { lt: heldSince } };
    const rows = await tx.session.findMany({ where, select: { id: true }, orderBy: { id: 'asc' } });
    for (const { id } of rows) {
      const row = await this.sessions.lockExisting(tx, id);
      if (row.state !== 'Requested') continue;
      // What may have been sent is an attempt.
      const attempt = { attemptedAt: row.now, callNo: row.callNo + 1 };
      if (row.attemptedAt === null) await this.sessions.update(tx, id, attempt);
      await this.unknown(tx, row);
    }
  }
}
