import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { Random } from '../../config/random.js';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import type { OperationName } from '../../platform/contract/operations.js';
import { faultOf, type PlatformError } from '../../platform/contract/platform-errors.js';
import { CallJudge } from '../../platform/pauses/call-judge.js';
import { type Ending, type Gate, gateOf, type Verdict } from '../../platform/pauses/pause-rule.js';
import { PausesRepository } from '../../platform/pauses/pauses.repository.js';
import { endingOf } from '../../platform/pauses/request-calls.js';
import { backoffMs, FAULT_BACKOFF, NOT_FOUND_BACKOFF } from '../../queue/work/backoff.js';
import type { Failure } from '../model/apply-fetch.js';
import type { SessionRow } from '../model/session-row.js';

/** How long after the platform's timeout an attempt may take to be sent and to store its outcome. */
const MARGIN_MS = 10_000;

/** How long a call waits that a cause of all calls stopped; the pause decides when the next one goes. */
const STOPPED_MS = 5_000;

/** A call that goes out, as its answer is judged. */
export interface GatedCall {
  /** Of its row. */
  id: string;
  at: Date;
  /** The pauses that it probes. */
  probes: readonly string[];
  /** The last refusal for the same row that may concern all. */
  refusedAt: Date | null;
  refusedStatus: number | null;
}

/** What stops all calls, so that the row is not to blame. */
const STOPS: readonly Verdict[] = ['limited', 'unauthorized', 'elsewhere', 'unreachable', 'unsent'];

/** The pauses of calls about sessions and compliance jobs: which calls go out, and what their answers mean. */
@Injectable()
export class CallGate {
  /** After which a call has surely ended. */
  readonly callMs: number;

  constructor(
    env: Env,
    private readonly prisma: PrismaService,
    private readonly pauses: PausesRepository,
    private readonly calls: CallJudge,
    private readonly random: Random,
  ) {
    this.callMs = env.PLATFORM_TIMEOUT_SECONDS * 1_000 + MARGIN_MS;
  }

  /** Whether calls go out: `probe` if one does, to find out. */
  async gates<Operation extends OperationName>(...operations: Operation[]): Promise<Record<Operation, Gate>> {
    const { now, pauses } = await this.pauses.readNow();
    const gates = operations.map((operation) => [operation, gateOf(pauses, operation, now)]);
    return Object.fromEntries(gates) as Record<Operation, Gate>;
  }

  /**
   * Lets a call go out, unless calls pause.
   *
   * @param given the transaction that marks the call, if one does
   * @returns the pauses that it probes; undefined if it must not go
   */
  async admit(operation: OperationName, now: Date, given?: Tx): Promise<string[] | undefined> {
    const pauses = await this.pauses.read(given);
    if (gateOf(pauses, operation, now) === 'open') return [];
    const admit = (tx: Tx) => this.calls.admit(tx, pauses, operation, now, this.callMs);
    return given ? admit(given) : this.prisma.transaction(admit);
  }

  /**
   * Judges the end of a call, and stores what it says about all.
   *
   * @returns `retryAt`: when a call that was stopped for a cause of all calls may go again; null for a fault of its row.
   *   `succeededAt`: when the operation last succeeded
   */
  async judge(
    tx: Tx,
    operation: OperationName,
    { id, at, probes, refusedAt, refusedStatus }: GatedCall,
    ending: Ending,
    now: Date,
  ): Promise<{ verdict: Verdict; retryAt: Date | null; succeededAt: Date | null }> {
    const isRefused = refusedAt !== null && refusedStatus !== null;
    const refused = isRefused ? { operation, code: refusedStatus, at: refusedAt, hasFailed: false } : null;
    const call = { operation, subject: id, beganAt: at, probes, refused };
    const { verdict, limitedUntil, pauses } = await this.calls.judge(tx, call, ending, now);
    const stopped = new Date(Math.max(now.getTime() + STOPPED_MS, limitedUntil?.getTime() ?? 0));
    const succeededAt = pauses.get(operation)?.succeededAt ?? null;
    return { verdict, retryAt: STOPS.includes(verdict) ? stopped : null, succeededAt };
  }

  /**
   * Judges a fetch that failed. Of the first 404 of a row it is not known whether the platform, or another server, has
   * answered; a later one is about the row, if the operation has succeeded for another row since.
   *
   * @returns what the row remembers; `retryAt` is when it is called again
   */
  async failed(
    tx: Tx,
    operation: OperationName,
    call: GatedCall,
    {
      fault: last,
      failures,
      refusedAt,
      notFoundAt,
    }: Pick<SessionRow, 'fault' | 'failures' | 'refusedAt' | 'notFoundAt'>,
    error: PlatformError,
    now: Date,
  ): Promise<Failure> {
    const { verdict, retryAt, succeededAt } = await this.judge(tx, operation, call, endingOf(error), now);
    const first = last === 'maybe-gone' ? refusedAt : null;
    const isKnownGone = notFoundAt !== null || (first !== null && succeededAt !== null && succeededAt > first);
    const isGone = verdict === 'gone' && isKnownGone;
    const fault = isGone ? 'gone' : faultOf(error);
    const bounds = isGone ? NOT_FOUND_BACKOFF : FAULT_BACKOFF;
    const waitMs = backoffMs(failures + 1, this.random.fraction(), bounds);
    const isRefused = isRefusal(verdict) || fault === 'maybe-gone';
    return {
      ...{ fault, failures: failures + (retryAt ? 0 : 1), retryAt: retryAt ?? new Date(now.getTime() + waitMs) },
      ...(isRefused && { refusedAt: first ?? now, refusedStatus: error.status ?? null }),
      ...(isGone && { notFoundAt: notFoundAt ?? now }),
    };
  }
}

/** True if an answer may be that of a wrong key or URL, so that its repetition for one row says that the row is to blame. */
export const isRefusal = (verdict: Verdict): boolean => verdict === 'unauthorized' || verdict === 'elsewhere';
