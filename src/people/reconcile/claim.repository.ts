import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { Database } from '../../database/database.js';
import { type CallWindow, earliest } from '../../platform/rate-limit/pacing.js';
import {
  type CallGrant,
  RateLimiterRepository,
  SEND_WITHIN_MS,
} from '../../platform/rate-limit/rate-limiter.repository.js';
import { type Lease, leaseColumns } from '../../queue/due-rows/lease.js';
import { applyGrant } from '../model/apply-answer.js';
import { type CallStep, isCreate } from '../model/next-step.js';
import { CircuitsRepository } from '../store/circuits.repository.js';
import { DuePeopleRepository, LANES } from '../store/due-people.repository.js';
import { PeopleRepository } from '../store/people.repository.js';
import type { PersonRow } from '../store/person-row.js';

/** A claimed person with its next call, and the permit and the lease for this call. */
export interface Claim {
  row: PersonRow;
  step: CallStep;
  grant: CallGrant;
  lease: Lease;
  /** The latest time to send the call, on the monotonic clock of this process. */
  sendBeforeMs: number;
}

/** The outcome of an attempt to claim a person. */
export interface ClaimOutcome {
  claim: Claim | null;
  /** True if no unlocked person was due. A due person locked by another transaction does not count. */
  noneDue: boolean;
}

/** Thrown when the commit of a claim got no confirmation. The claim may be stored, but its call must not be sent. */
export class UnconfirmedCommit extends Error {
  /** @param fault the error of the commit, or of an earlier statement */
  constructor(
    readonly claim: Claim,
    readonly fault: unknown,
  ) {
    super('The commit of a claim was not confirmed.');
  }
}

/** Maximum decisions without a call in one transaction, because it holds the budget's lock. */
const DECISIONS_PER_CLAIM = 50;

/**
 * Claims people. One transaction locks the call budget, picks the most urgent due person, decides its next step, and
 * commits permit, intent and lease together. If the commit fails, nothing is sent.
 */
@Injectable()
export class ClaimRepository {
  /** Maximum duration of a call, including the time before it is sent. */
  private readonly callMs: number;
  private readonly lookUpAfterMs: number;

  constructor(
    env: Env,
    private readonly clock: Clock,
    private readonly database: Database,
    private readonly calls: RateLimiterRepository,
    private readonly people: PeopleRepository,
    private readonly circuits: CircuitsRepository,
    private readonly due: DuePeopleRepository,
  ) {
    this.callMs = SEND_WITHIN_MS + env.PLATFORM_TIMEOUT_SECONDS * 1_000;
    this.lookUpAfterMs = this.callMs + env.UNKNOWN_OUTCOME_GRACE_SECONDS * 1_000;
  }

  /** Claims the next person. @throws {UnconfirmedCommit} or a database error, after which nothing is granted */
  async claimNext(): Promise<ClaimOutcome> {
    if (!this.due.mayLease()) return { claim: null, noneDue: true };
    let attempted: Claim | null = null;
    const committed = this.database.transaction(async (tx) => {
      if (attempted) this.due.release((attempted as Claim).row.id);
      attempted = null;
      const outcome = await this.claim(tx);
      attempted = outcome.claim;
      if (attempted) this.due.hold(attempted.row.id);
      return outcome;
    });
    return committed.catch((error: unknown) => {
      throw attempted ? new UnconfirmedCommit(attempted, error) : error;
    });
  }

  private async claim(tx: PoolClient): Promise<ClaimOutcome> {
    const window = await this.calls.lockWindow(tx);
    const { blocked, probing } = await this.circuits.open(window.now, tx);
    const lanes = LANES.filter((lane) => earliest(lane, window, this.calls.limit) <= window.now);
    const stopped = [...blocked, ...probing];
    for (let decisions = 0; decisions < DECISIONS_PER_CLAIM; decisions++) {
      let prober: string | undefined;
      for (const operation of probing) prober ??= await this.due.takeProber(tx, lanes, operation, window.now);
      const id = prober ?? (await this.due.take(tx, lanes, stopped, window.now));
      const row = id === undefined ? undefined : await this.people.find({ id }, tx);
      if (!row) return { claim: null, noneDue: decisions === 0 };
      if (row.lane === 'bulk' && (await this.due.pauseWithImport(tx, row.id))) continue;
      const { step, code } = await this.people.decide(tx, row, row.person);
      const isCallable =
        step.do === 'call' &&
        !(step.notBefore && step.notBefore > window.now) &&
        !(prober ? blocked : stopped).includes(step.operation);
      if (isCallable) return { claim: await this.grant(tx, window, row, step, code, probing), noneDue: false };
      await this.people.save(tx, row, row.person, { step, code });
    }
    return { claim: null, noneDue: false };
  }

  private async grant(
    tx: PoolClient,
    window: CallWindow,
    row: PersonRow,
    step: CallStep,
    code: string | null,
    probing: string[],
  ): Promise<Claim> {
    const { operation } = step;
    const sendBeforeMs = this.clock.monotonicMs() + SEND_WITHIN_MS;
    const grant = await this.calls.grant(tx, window, { personId: row.id, operation, lane: row.lane });
    const lookUpAt = new Date(grant.grantedAt.getTime() + this.lookUpAfterMs);
    const person = applyGrant(row.person, step, { callId: grant.id, now: grant.grantedAt, lookUpAt });
    // After a crash, only the lease of a create lasts until the call can no longer take effect: no create is repeated.
    const { owner } = this.due;
    const leased = leaseColumns(owner, isCreate(step) ? this.callMs : 0, grant.grantedAt);
    const no = await this.people.save(tx, row, person, { step, code }, leased);
    if (probing.includes(operation)) await this.circuits.probe(tx, operation);
    return { row: { ...row, person }, step, grant, lease: { key: row.id, owner, no }, sendBeforeMs };
  }

  /**
   * The wait until a person is due and a permit for its lane is free. Reads without locks, so that it delays no grant.
   *
   * @returns milliseconds, computed only from the database clock; null if nothing is due until something changes
   */
  async nextInMs(): Promise<number | null> {
    const sql = this.database.pool;
    const window = await this.calls.readWindow(sql);
    const { blocked, probesAt } = await this.circuits.open(window.now);
    const heads = await this.due.heads(sql, blocked);
    const moments = heads.map(({ lane, dueAt }) =>
      Math.max(dueAt.getTime(), earliest(lane, window, this.calls.limit).getTime()),
    );
    const next = Math.min(...moments, ...probesAt);
    return next === Number.POSITIVE_INFINITY ? null : Math.max(0, next - window.now.getTime());
  }
}
