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

/** A person to call the platform for: the call, its permit, and the lease under which it is made. */
export interface Claim {
  row: PersonRow;
  step: CallStep;
  grant: CallGrant;
  lease: Lease;
  /** By this process's monotonic clock, in milliseconds: later than this the call must not leave. */
  sendBeforeMs: number;
}

/** What came of asking for a claim. */
export interface ClaimOutcome {
  claim: Claim | null;
  /** No free person was due: one that is due all the same is locked by another transaction. */
  noneDue: boolean;
}

/** The commit of a claim was not confirmed: whether it stands is not known, so its call must not be sent. */
export class UnconfirmedCommit extends Error {
  /** @param fault what the commit, or a statement before it, threw */
  constructor(
    readonly claim: Claim,
    readonly fault: unknown,
  ) {
    super('The commit of a claim was not confirmed.');
  }
}

/** People without a call to make that one transaction decides on before it releases the budget's lock. */
const DECISIONS_PER_CLAIM = 50;

/**
 * Claims people: one transaction locks the call budget, picks the most urgent due person, decides its next step, and
 * commits permit, intent and lease together. When it can't commit, nothing is sent.
 */
@Injectable()
export class ClaimRepository {
  /** Milliseconds within which a call leaves and is answered or given up. */
  private readonly callMs: number;
  private readonly unknownAfterMs: number;

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
    this.unknownAfterMs = this.callMs + env.UNKNOWN_OUTCOME_GRACE_SECONDS * 1_000;
  }

  /** Claims the next person. @throws {UnconfirmedCommit}, or the database's error; then nothing was granted */
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
    const lookUpAt = new Date(grant.grantedAt.getTime() + this.unknownAfterMs);
    const person = applyGrant(row.person, step, { callId: grant.id, now: grant.grantedAt, lookUpAt });
    // All but a create may be done again: after a crash another process need not wait until the call took effect.
    const { owner } = this.due;
    const leased = leaseColumns(owner, isCreate(step) ? this.callMs : 0, grant.grantedAt);
    const no = await this.people.save(tx, row, person, { step, code }, leased);
    if (probing.includes(operation)) await this.circuits.probe(tx, operation);
    return { row: { ...row, person }, step, grant, lease: { key: row.id, owner, no }, sendBeforeMs };
  }

  /**
   * When the next person can be claimed: one must be due, and a permit free for its lane. Read without locks, apart from
   * any grant, whose call has a second to leave.
   *
   * @returns milliseconds from now, by the database's clock alone; null: when something changes
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
