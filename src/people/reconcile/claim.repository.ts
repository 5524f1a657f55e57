import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Audit, BEGUN } from '../../audit/audit.js';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { Stopping } from '../../config/stopping.js';
import { Database } from '../../database/database.js';
import { PrismaService } from '../../database/prisma.service.js';
import { retryUntilStored } from '../../database/retries.js';
import type { Leased } from '../../due-rows/due-rows.js';
import { type Lease, safeAtOf } from '../../due-rows/lease.js';
import { type CallLimit, type CallWindow, earliest, nextBulkAt } from '../../platform/rate-limit/pacing.js';
import {
  type CallGrant,
  RateLimiterRepository,
  SEND_WITHIN_MS,
} from '../../platform/rate-limit/rate-limiter.repository.js';
import { sendingOf } from '../../platform/send/sent-data.js';
import { USER_MANAGEMENT_QUEUE } from '../../queue/backend/queue-names.js';
import type { Bind } from '../../queue/notifier/poller.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { Sending } from '../../sending/sending.js';
import { applyGrant } from '../model/apply-answer.js';
import { type Breakers, breakerOf } from '../model/circuit-breaker.js';
import { BLIND_CREATE, type CallStep, type Gate, gatesOf, isCreate, operationOf, queueOf } from '../model/next-step.js';
import { ALL_BREAKERS, BreakersRepository } from '../store/breakers.repository.js';
import { DuePeopleRepository, type Head, LANES } from '../store/due-people.repository.js';
import { PeopleRepository } from '../store/people.repository.js';
import type { PersonRow } from '../store/person-row.js';
import { CallResultsRepository, isAboutClient } from './results.repository.js';

/** A claimed person with its next call, and the permit for it. */
export interface ClaimedCall {
  person: PersonRow;
  step: CallStep;
  grant: CallGrant;
  /** The latest time to send the call, on the monotonic clock of this process. */
  sendBeforeMs: number;
  /** Milliseconds until the next person can be claimed; null if none is due, undefined if the claim did not learn it. */
  nextInMs: number | null | undefined;
}

export type Claim = Leased<ClaimedCall>;

/** Maximum decisions without a call in one transaction, because it holds the budget's lock. */
const DECISIONS_PER_CLAIM = 50;

/** Minimum wait after a claim that could take none of the due people, because each activation counts. */
const IDLE_MS = 250;

/** The state that decides who can be claimed. */
interface Queues {
  window: CallWindow;
  gates: Gate[];
  /** The first two people of each lane and queue. */
  heads: Head[];
}

/**
 * Claims people. One transaction locks the call budget, picks the most urgent due person, decides its next step, and
 * commits permit, intent and lease together. If the commit fails, nothing is sent.
 */
@Injectable()
export class ClaimRepository {
  /** Maximum duration of a call, including the time before it is sent. */
  private readonly callMs: number;
  private readonly lookUpAfterMs: number;
  /** The columns that a claim reads besides the window. */
  private readonly columns: string;
  private idleUntilMs = Number.NEGATIVE_INFINITY;
  private claiming: Promise<unknown> = Promise.resolve();
  private isQueued = false;

  constructor(
    private readonly prisma: PrismaService,
    env: Env,
    private readonly clock: Clock,
    private readonly database: Database,
    private readonly calls: RateLimiterRepository,
    private readonly people: PeopleRepository,
    private readonly breakers: BreakersRepository,
    private readonly due: DuePeopleRepository,
    private readonly results: CallResultsRepository,
    private readonly stopping: Stopping,
    private readonly audit: Audit,
    private readonly sending: Sending,
    notifier: QueueNotifier,
  ) {
    notifier.planned(USER_MANAGEMENT_QUEUE, () => this.nextInMs());
    this.callMs = SEND_WITHIN_MS + env.PLATFORM_TIMEOUT_SECONDS * 1_000;
    const heads = DuePeopleRepository.headsColumn(3);
    this.columns = `, ${ALL_BREAKERS} AS breakers, ${sending.heldSql} AS "isHeld", ${heads}`;
    this.lookUpAfterMs = this.callMs + env.UNKNOWN_OUTCOME_GRACE_SECONDS * 1_000;
  }

  /**
   * Claims the most urgent person that needs a call, one at a time per process. More would only queue for the budget's
   * lock, and delay an answer that needs it for a pause.
   *
   * @returns undefined if none is due
   * @throws a database error, after which nothing is granted
   */
  async claim(): Promise<Claim | undefined> {
    this.isQueued = true;
    await this.claiming;
    this.isQueued = false;
    const claimed = this.claimNext();
    this.claiming = claimed.catch(() => undefined);
    return claimed;
  }

  /** True if an activation waits to claim, so that another one would find the same people. */
  get isClaimQueued(): boolean {
    return this.isQueued;
  }

  /** Records that the call of a claim has ended. Its person, or others, may be due now, so the next claim need not wait. */
  done({ key }: Lease): void {
    this.due.release(key);
    this.idleUntilMs = Number.NEGATIVE_INFINITY;
  }

  nextDue(bind: Bind): string | null {
    return this.due.nextDue(bind, this.sending.heldSql);
  }

  /** Claims a person, and decides about others on the way, as long as they need no call. */
  private async claimNext(): Promise<Claim | undefined> {
    while (this.due.canClaim() && !this.stopping.isShuttingDown) {
      let attempted: Claim | undefined;
      const committed = this.database.transaction(async (tx) => {
        if (attempted) this.done(attempted.lease);
        const outcome = await this.decideNext(tx);
        attempted = typeof outcome === 'object' ? outcome : undefined;
        if (attempted) this.due.hold(attempted.lease.key);
        return outcome;
      });
      const outcome = await committed.catch(async (error: unknown) => {
        if (attempted) await this.rollBack(attempted);
        throw error;
      });
      if (typeof outcome === 'object') return outcome;
      if (outcome === 'none-due') return undefined;
      if (outcome === 'blocked') break;
    }
    this.idleUntilMs = this.clock.monotonicMs() + IDLE_MS;
    return undefined;
  }

  /** Frees the permit of a claim whose commit got no confirmation, because only this process knows that it is unused. */
  private async rollBack(claim: Claim): Promise<void> {
    const rolledBack = retryUntilStored(() => this.results.rollBack(claim), this.clock);
    await rolledBack.finally(() => this.done(claim.lease));
  }

  /**
   * @returns `none-due` if no person is due and permitted, `blocked` if those that are cannot be claimed now (locked, or not the
   *   next to probe), `decided` if those who were due need no call now
   */
  private async decideNext(tx: PoolClient): Promise<Claim | 'none-due' | 'blocked' | 'decided'> {
    await this.calls.awaitGrants(tx);
    const queues = await this.readQueues(tx);
    const { window, gates, heads } = queues;
    const { now } = window;
    const phaseOfQueue = new Map(gates.map(({ queue, phase }) => [queue, phase]));
    const closed = gates.filter(({ phase }) => phase === 'closed').map(({ queue }) => queue);
    const halfOpen = gates.filter(({ phase }) => phase === 'half-open');
    const lanes = LANES.filter((lane) => earliest(lane, window, this.calls.limit) <= now);
    for (let decisions = 0; decisions < DECISIONS_PER_CLAIM; decisions++) {
      let prober: string | undefined;
      for (const gate of halfOpen) prober ??= await this.due.takeProber(tx, lanes, gate, now);
      const id = prober ?? (await this.due.take(tx, lanes, closed, heads, now));
      const row = id === undefined ? undefined : await this.people.find({ id }, tx);
      if (!row && decisions > 0) return 'decided';
      if (!row) return this.waitMs(queues) === 0 ? 'blocked' : 'none-due';
      const { step, code } = await this.people.decide(tx, row, row.person);
      if (step.do === 'call' && !(step.notBefore && step.notBefore > now)) {
        const phase = phaseOfQueue.get(queueOf(step, row.person));
        const isOpen = phase === 'closed' || (phase === 'half-open' && prober !== undefined);
        if (isOpen) {
          const isKnown = decisions === 0 && halfOpen.length === 0 && row.step !== BLIND_CREATE;
          const nextInMs = isKnown ? this.waitMs(withoutFirst(queues, row, this.calls.limit)) : undefined;
          return this.grant(tx, window, row, step, code, nextInMs);
        }
      }
      await this.people.save(tx, row, row.person, { step, code });
    }
    return 'decided';
  }

  private async grant(
    tx: PoolClient,
    window: CallWindow,
    row: PersonRow,
    step: CallStep,
    code: string | null,
    nextInMs: number | null | undefined,
  ): Promise<Claim> {
    const { operation } = step;
    const sendBeforeMs = this.clock.monotonicMs() + SEND_WITHIN_MS;
    const grant = await this.calls.grant(tx, window, { personId: row.id, operation, lane: row.lane });
    if (isAboutClient(row, step))
      await this.audit.system(sendingOf(operation), { client: [row.externalId] }, BEGUN, await this.prisma.in(tx));
    const { grantedAt } = grant;
    const lookUpAt = new Date(grantedAt.getTime() + this.lookUpAfterMs);
    const person = applyGrant(row.person, step, { callId: grant.id, now: grantedAt, lookUpAt });
    // After a crash, only the lease of a create lasts until the call can no longer take effect: no create is repeated.
    const { owner } = this.due;
    const safeAt = safeAtOf(grantedAt, isCreate(step) ? this.callMs : 0);
    const no = await this.people.save(tx, row, person, { step, code }, {}, { owner, safeAt });
    for (const probed of new Set([operation, operationOf(queueOf(step, row.person))])) {
      if (!breakerOf(row.context.breakers, probed).block) continue;
      await this.breakers.markProbe(tx, probed, { id: grant.id, person: row.id }, grantedAt, this.callMs);
    }
    const call = { person: { ...row, person }, step, grant, sendBeforeMs, nextInMs };
    return { row: call, lease: { key: row.id, owner, no } };
  }

  /**
   * The wait until a person is due and a permit for its lane is free. Reads without locks, so that it delays no grant.
   *
   * @returns milliseconds, computed only from the database clock; null if nothing is due until something changes
   */
  async nextInMs(): Promise<number | null> {
    const waitMs = this.waitMs(await this.readQueues(this.database.pool));
    return waitMs === null ? null : Math.max(waitMs, this.idleUntilMs - this.clock.monotonicMs());
  }

  private waitMs({ window, gates, heads }: Queues): number | null {
    const openAt = new Map(gates.map(({ queue, phase, until }) => [queue, phase === 'open' ? until : 0]));
    const moments = heads.map(({ lane, queue, dueAtMs }) => {
      const permittedAt = earliest(lane, window, this.calls.limit).getTime();
      return Math.max(dueAtMs, permittedAt, openAt.get(queue ?? '') ?? 0);
    });
    const next = Math.min(...moments);
    return next === Number.POSITIVE_INFINITY ? null : Math.max(0, Math.ceil(next - window.now.getTime()));
  }

  /** Reads the window, the gates and the first people of each queue in one statement. */
  private async readQueues(sql: Pick<PoolClient, 'query'>): Promise<Queues> {
    const values = this.due.leaseParameters();
    const more = { name: 'people-queues', columns: this.columns, values };
    const read = await this.calls.readWindow<{ breakers: Breakers; isHeld: boolean; heads: Head[] }>(sql, more);
    const { breakers, isHeld, heads, ...window } = read;
    return { window, gates: gatesOf(breakers, window.now.getTime(), isHeld), heads };
  }
}

/** The queues that remain after the first person of one has taken a permit. */
function withoutFirst(
  { window, gates, heads }: Queues,
  { lane, step }: Pick<PersonRow, 'lane' | 'step'>,
  limit: CallLimit,
): Queues {
  const first = heads.findIndex((head) => head.lane === lane && head.queue === step);
  const bulkNextAt = lane === 'bulk' ? nextBulkAt(window, limit) : window.bulkNextAt;
  return {
    gates,
    heads: heads.filter((_, place) => place !== first),
    window: { ...window, bulkNextAt, occupied: window.occupied + 1 },
  };
}
