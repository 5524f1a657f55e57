import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { Database } from '../../database/database.js';
import { type CallWindow, earliest, type Lane } from '../../platform/rate-limit/pacing.js';
import {
  type CallGrant,
  RateLimiterRepository,
  SEND_WITHIN_MS,
} from '../../platform/rate-limit/rate-limiter.repository.js';
import type { Lease } from '../../queue/due-rows/lease.js';
import { applyGrant } from '../model/apply-answer.js';
import { type CallStep, isCreate } from '../model/next-step.js';
import type { PersonRow } from '../model/person-row.js';
import { CircuitsRepository, type OpenCircuits } from '../store/circuits.repository.js';
import { DuePeopleRepository, LANES } from '../store/due-people.repository.js';
import { PeopleRepository } from '../store/people.repository.js';

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
  /** Nobody could be claimed: a person who is due all the same is locked by another transaction. */
  nobody: boolean;
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
    if (!this.due.mayLease()) return { claim: null, nobody: true };
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
    const open = await this.circuits.open(tx, window.now);
    const lanes = LANES.filter((lane) => earliest(lane, window, this.calls.limit) <= window.now);
    for (let decisions = 0; decisions < DECISIONS_PER_CLAIM; decisions++) {
      const prober = await this.prober(tx, window, lanes, open);
      const id = prober ?? (await this.due.take(tx, lanes, [...open.blocked, ...open.probing], window.now));
      const row = id === undefined ? undefined : await this.people.load(tx, id);
      if (!row) return { claim: null, nobody: decisions === 0 };
      if (row.lane === 'bulk' && (await this.due.pauseWithImport(tx, row.id))) continue;
      const step = await this.people.decide(tx, row, row.person);
      const isCallable =
        step.do === 'call' &&
        !(step.notBefore && step.notBefore > window.now) &&
        !open.blocked.includes(step.operation) &&
        (prober !== undefined || !open.probing.includes(step.operation));
      if (isCallable) return { claim: await this.grant(tx, window, open, row, step), nobody: false };
      await this.people.save(tx, row, row.person, step);
    }
    return { claim: null, nobody: false };
  }

  /** Who probes an open circuit: the person refused longest ago or never, in either lane. */
  private async prober(tx: PoolClient, window: CallWindow, lanes: Lane[], open: OpenCircuits) {
    for (const operation of open.probing) {
      const id = await this.due.takeProber(tx, lanes, operation, window.now);
      if (id !== undefined) return id;
    }
    return undefined;
  }

  private async grant(
    tx: PoolClient,
    window: CallWindow,
    open: OpenCircuits,
    row: PersonRow,
    step: CallStep,
  ): Promise<Claim> {
    const sendBeforeMs = this.clock.monotonicMs() + SEND_WITHIN_MS;
    const call = { personId: row.id, operation: step.operation, lane: row.lane };
    const grant = await this.calls.grant(tx, window, call);
    const lookUpAt = new Date(grant.grantedAt.getTime() + this.unknownAfterMs);
    const person = applyGrant(row.person, step, { callId: grant.id, now: grant.grantedAt, lookUpAt });
    // All but a create may be done again: after a crash another process need not wait until the call took effect.
    const { owner } = this.due;
    const no = await this.people.save(tx, row, person, step, {}, { owner, effectMs: isCreate(step) ? this.callMs : 0 });
    if (open.probing.includes(step.operation)) await this.circuits.probe(tx, step.operation);
    const lease = { key: row.id, owner, no };
    return { row: { ...row, person, lease }, step, grant, lease, sendBeforeMs };
  }

  /**
   * When the next person can be claimed: one must be due, and a slot free for its lane. Read without locks, apart from
   * any grant, whose call has a second to leave.
   *
   * @returns milliseconds from now, by the database's clock alone; null: when something changes
   */
  async nextInMs(): Promise<number | null> {
    const sql = this.database.pool;
    const window = await this.calls.readWindow(sql);
    const open = await this.circuits.open(sql, window.now);
    const heads = await this.due.heads(sql, open.blocked);
    const moments = heads.map(({ lane, dueAt }) =>
      Math.max(dueAt.getTime(), earliest(lane, window, this.calls.limit).getTime()),
    );
    if (open.nextProbeAt) moments.push(open.nextProbeAt.getTime());
    return moments.length > 0 ? Math.max(0, Math.min(...moments) - window.now.getTime()) : null;
  }
}
