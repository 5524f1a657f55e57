import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { Database } from '../../database/database.js';
import type { CallWindow, Lane } from '../../platform/rate-limit/pacing.js';
import {
  type CallGrant,
  RateLimiterRepository,
  SEND_WITHIN_MS,
} from '../../platform/rate-limit/rate-limiter.repository.js';
import type { Lease } from '../../queue/due-rows/lease.js';
import { applyGrant } from '../model/apply-answer.js';
import { type CallStep, isCreate } from '../model/next-step.js';
import type { PersonRow } from '../model/person-row.js';
import { CircuitRepository, type OpenCircuits } from '../store/circuit.repository.js';
import { DuePeopleRepository, LANES } from '../store/due-people.repository.js';
import { StoppedImportsRepository } from '../store/paused-imports.repository.js';
import { PeopleRepository } from '../store/people.repository.js';

/** A person's turn: the step to take, the slot for it, and the lease under which it is taken. */
export interface Turn {
  row: PersonRow;
  step: CallStep;
  grant: CallGrant;
  lease: Lease;
  /** By this process's monotonic clock, in milliseconds: later than this the call must not leave. */
  sendBeforeMs: number;
}

/** What came of asking for a turn. */
export interface ClaimOutcome {
  turn: Turn | null;
  /** Nobody could be had: who is due all the same is locked by somebody else. */
  nobody: boolean;
}

/** The commit of a turn was not confirmed: whether it stands is not known, so its call must not be sent. */
export class UnconfirmedCommit extends Error {
  /** @param fault what the commit, or a statement before it, threw */
  constructor(
    readonly turn: Turn,
    readonly fault: unknown,
  ) {
    super('The commit of a turn was not confirmed.');
  }
}

/** People without a call to make that one transaction decides on before it lets others have the lock. */
const DECISIONS_PER_TURN = 50;

/**
 * Grants turns: one transaction locks the call budget, picks the most urgent due person, decides its next step, and
 * commits slot, intent and lease together. When it can't commit, nothing is sent.
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
    private readonly circuits: CircuitRepository,
    private readonly due: DuePeopleRepository,
    private readonly stopped: StoppedImportsRepository,
  ) {
    this.callMs = SEND_WITHIN_MS + env.PLATFORM_TIMEOUT_SECONDS * 1_000;
    this.unknownAfterMs = this.callMs + env.UNKNOWN_OUTCOME_GRACE_SECONDS * 1_000;
  }

  /** Asks for a turn. @throws {UnconfirmedCommit}, or the database's error; then nothing was granted */
  async next(): Promise<ClaimOutcome> {
    if (!this.due.mayLease()) return { turn: null, nobody: true };
    let offered: Turn | null = null;
    const offer = this.database.transaction(async (tx) => {
      if (offered) this.due.done((offered as Turn).lease);
      offered = null;
      const granted = await this.offer(tx);
      offered = granted.turn;
      if (offered) this.due.hold(offered.lease);
      return granted;
    });
    return offer.catch((error: unknown) => {
      throw offered ? new UnconfirmedCommit(offered, error) : error;
    });
  }

  private async offer(tx: PoolClient): Promise<ClaimOutcome> {
    const window = await this.calls.lockWindow(tx);
    const open = await this.circuits.open(tx, window.now);
    for (let decisions = 0; decisions < DECISIONS_PER_TURN; decisions++) {
      const prober = await this.prober(tx, window, open);
      const row = prober ?? (await this.pick(tx, window, open));
      if (!row) return { turn: null, nobody: decisions === 0 };
      if (row.lane === 'bulk' && (await this.stopped.holdBack(tx, row.id))) continue;
      const step = await this.people.decide(tx, row);
      if (step.do !== 'call' || (step.notBefore && step.notBefore > window.now)) continue;
      if (open.blocked.includes(step.operation) || (!prober && open.probing.includes(step.operation))) continue;
      return { turn: await this.grant(tx, window, open, row, step), nobody: false };
    }
    return { turn: null, nobody: false };
  }

  /**
   * Who probes an open circuit: whoever was refused longest ago or never, in either lane, so that people whom the
   * platform refuses for themselves do not take every probe.
   */
  private async prober(tx: PoolClient, window: CallWindow, open: OpenCircuits): Promise<PersonRow | undefined> {
    for (const operation of open.probing) {
      const id = await this.due.takeProber(tx, this.lanes(window), operation, window.now);
      if (id !== undefined) return this.people.load(tx, id);
    }
    return undefined;
  }

  /** The lanes that may call now, the most urgent first. */
  private lanes(window: CallWindow): Lane[] {
    return LANES.filter((lane) => this.calls.earliest(lane, window) <= window.now);
  }

  private async pick(tx: PoolClient, window: CallWindow, open: OpenCircuits): Promise<PersonRow | undefined> {
    const id = await this.due.take(tx, this.lanes(window), [...open.blocked, ...open.probing], window.now);
    return id === undefined ? undefined : this.people.load(tx, id);
  }

  private async grant(
    tx: PoolClient,
    window: CallWindow,
    open: OpenCircuits,
    row: PersonRow,
    step: CallStep,
  ): Promise<Turn> {
    const sendBeforeMs = this.clock.monotonicMs() + SEND_WITHIN_MS;
    const call = { personId: row.id, operation: step.operation, lane: row.lane };
    const grant = await this.calls.grant(tx, window, call);
    const lookUpAt = new Date(grant.grantedAt.getTime() + this.unknownAfterMs);
    const person = applyGrant(row.person, step, { callId: grant.id, now: grant.grantedAt, lookUpAt });
    await this.people.saveKnown(tx, row, person);
    // All but a create may be done again: whoever goes on for a process that died need not wait for its last call.
    const lease = await this.due.lease(tx, row.id, isCreate(step) ? this.callMs : 0);
    if (open.probing.includes(step.operation)) await this.circuits.probe(tx, step.operation);
    return { row: { ...row, person, lease }, step, grant, lease, sendBeforeMs };
  }

  /**
   * When the next turn can be had: somebody must be due, and a slot free for that lane. Asked for without locks, apart
   * from any grant, whose call has a second to leave.
   *
   * @returns milliseconds from now, by the database's clock alone; null: when something changes
   */
  async nextInMs(): Promise<number | null> {
    const sql = this.database.pool;
    const window = await this.calls.readWindow(sql);
    const open = await this.circuits.open(sql, window.now);
    const heads = await this.due.soonest(sql, open.blocked);
    const moments = heads.map(({ lane, dueAt }) =>
      Math.max(dueAt.getTime(), this.calls.earliest(lane, window).getTime()),
    );
    if (open.nextProbeAt) moments.push(open.nextProbeAt.getTime());
    return moments.length > 0 ? Math.max(0, Math.min(...moments) - window.now.getTime()) : null;
  }
}
