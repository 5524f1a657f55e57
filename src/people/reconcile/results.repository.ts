import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Audit } from '../../audit/audit.js';
import { Env } from '../../config/env.js';
import { Random } from '../../config/random.js';
import { Database } from '../../database/database.js';
import { PrismaService } from '../../database/prisma.service.js';
import { backoffMs } from '../../due-rows/backoff.js';
import { isHeld } from '../../due-rows/lease.js';
import { RateLimiterRepository } from '../../platform/rate-limit/rate-limiter.repository.js';
import { NOT_SENT as NOTHING_SENT, sendingOf } from '../../platform/send/sent-data.js';
import { type Answer, applyAnswer, secondUserOf } from '../model/apply-answer.js';
import { interpretAnswer, type RawAnswer } from '../model/interpret-answer.js';
import { type CallStep, isCreate } from '../model/next-step.js';
import type { Person } from '../model/person.js';
import { ProfileSeal } from '../model/profile.js';
import { BreakersRepository } from '../store/breakers.repository.js';
import { type MoreFields, PeopleRepository } from '../store/people.repository.js';
import type { PersonRow } from '../store/person-row.js';
import { PlatformUsersRepository, ROLES } from '../store/platform-users.repository.js';
import type { Claim, ClaimedCall } from './claim.repository.js';
import { type CallResult, NOT_SENT } from './platform-people.js';

/** The state of a person after a call. */
interface RecordedCall {
  state: string;
  code: string | null;
  /** How long all calls pause, in milliseconds, because of a 429; 0 if they do not. */
  pauseMs: number;
}

/** Answers after which no error of the call is shown. */
const DONE: string[] = [
  'absent',
  'exists',
  'created',
  'applied',
  'deleted',
  'not-found',
  'doubtful',
] satisfies Answer['kind'][];

/** Limits of the backoff after a transient fault of a person's call. */
const RETRY_BACKOFF = { baseMs: 1_000, maxMs: 300_000 };

/** True if a call sends data about a client, which the accounting of its disclosures lists. */
export function isAboutClient({ kind }: Pick<PersonRow, 'kind'>, { subject }: CallStep): boolean {
  return kind === 'client' && subject !== 'any';
}

/** Records the result of a call in one transaction: its log row, the person, and its dependents. */
@Injectable()
export class CallResultsRepository {
  constructor(
    private readonly prisma: PrismaService,
    private readonly env: Env,
    private readonly database: Database,
    private readonly calls: RateLimiterRepository,
    private readonly people: PeopleRepository,
    private readonly breakers: BreakersRepository,
    private readonly users: PlatformUsersRepository,
    private readonly seal: ProfileSeal,
    private readonly random: Random,
    private readonly audit: Audit,
  ) {}

  /** Records a result. @returns the person's state afterwards */
  async record(claim: Claim, result: CallResult): Promise<RecordedCall> {
    const { lease, row: call } = claim;
    const { step, grant } = call;
    return this.database.transaction(async (tx) => {
      const isLimited = result.answer.kind === 'rate-limited';
      // Locked before the breaker, as claims do.
      if (isLimited) await this.calls.awaitGrants(tx);
      await this.calls.settle(tx, grant, result.outcome);
      if (!result.outcome.reached && isAboutClient(call.person, step)) {
        await this.audit.system(
          sendingOf(step.operation),
          { client: [call.person.externalId] },
          NOTHING_SENT,
          await this.prisma.in(tx),
        );
      }
      const row = await this.people.lock(tx, { id: call.person.id });
      const { answer, pauseMs } = await this.interpret(tx, call, row ?? call.person, result.answer);
      if (!row) return { state: 'gone', code: null, pauseMs };
      // After a lost lease, only the answer to a create still counts, because a create is never sent twice.
      const isOurs = row.leaseOwner === lease.owner && row.leaseNo === lease.no;
      if (!isOurs && !(isCreate(step) && row.person.attempt?.callId === grant.id))
        return { state: row.state, code: row.errorCode, pauseMs };
      const person = this.merge(call, row, answer);
      await this.saveUsers(tx, row, step, person, answer);
      const errorCode = DONE.includes(answer.kind) ? null : (result.errorCode ?? null);
      const { step: next, code } = await this.people.update(tx, { ...row, errorCode }, person, {
        ...this.fields(call, row, result, person),
        ...(isOurs && { leaseOwner: null, leaseSafeAt: null }),
      });
      return { state: next.state, code, pauseMs };
    });
  }

  /** Rolls back a claim with an unconfirmed commit, if it is stored. */
  async rollBack(claim: Claim): Promise<void> {
    // The lock waits for a commit that is still running on a lost connection.
    const { key, owner, no } = claim.lease;
    const { rows } = await this.database.pool.query<{ ours: boolean }>(
      `SELECT ${isHeld('$2', '$3')} AS ours FROM people WHERE id = $1 FOR UPDATE`,
      [key, owner, no],
    );
    // Compares the lease, because the id of an uncommitted call may be reused. The lease number is unique: until this
    // ends, the process holds the person and cannot lease it again.
    if (rows[0]?.ours) await this.record(claim, NOT_SENT);
  }

  /**
   * Interprets an answer, records it in the breakers, delays all calls after a 429 that opened one, and looks up who
   * holds the user of the answer.
   */
  private async interpret(
    tx: PoolClient,
    { step, grant }: ClaimedCall,
    row: PersonRow,
    raw: RawAnswer,
  ): Promise<{ answer: Answer; pauseMs: number }> {
    const { operation } = step;
    const { breakers, now } = row.context;
    const address = this.breakers.addressOf(operation);
    const { answer, signal } = interpretAnswer(raw, step, row.person, breakers, address, now.getTime());
    const call = { id: grant.id, person: row.id, operation, grantedAt: grant.grantedAt };
    const delayMs = signal ? await this.breakers.record(tx, breakers, call, signal, now) : undefined;
    const pauseMs = delayMs === undefined ? 0 : await this.calls.pause(tx, delayMs);
    if ('userId' in answer)
      return { answer: { ...answer, ...(await this.users.fit(tx, answer.userId, row)) }, pauseMs };
    return { answer, pauseMs };
  }

  private merge({ step, grant }: ClaimedCall, row: PersonRow, answer: Answer): Person {
    const { now } = row.context;
    const inMs = (ms: number) => new Date(now.getTime() + ms);
    const { failures } = row.person;
    return applyAnswer(row.person, step, answer, {
      callId: grant.id,
      outdated: row.wantedAt >= grant.grantedAt,
      now,
      retryAt: inMs(backoffMs(failures + 1, this.random.fraction(), RETRY_BACKOFF)),
      lookUpAt: inMs(this.env.UNKNOWN_OUTCOME_GRACE_SECONDS * 1_000),
    });
  }

  /** Stores a second user of the person, and a deleted one. */
  private async saveUsers(
    tx: PoolClient,
    row: PersonRow,
    step: CallStep,
    person: Person,
    answer: Answer,
  ): Promise<void> {
    const platformUserId = secondUserOf(row.person, step, answer);
    if (platformUserId !== undefined) {
      const { kind, externalId: externalUserId } = row;
      await this.users.save(tx, { platformUserId, role: ROLES[kind], externalUserId });
    }
    if (person.platformUserId === null && row.person.platformUserId !== null) {
      await this.users.saveDeleted(tx, row.person.platformUserId, row.id);
    }
  }

  /** The other fields of a result: invite URL, applied profile, and the error message of the platform. */
  private fields({ step, person: sent }: ClaimedCall, row: PersonRow, result: CallResult, person: Person): MoreFields {
    const isAttempted = step.subject === 'attempted';
    const { errorText, inviteUrl } = result;
    // The message of a rejection stays while the call is retried.
    const isKept = person.refusal?.kind === 'rejected' && errorText === undefined;
    return {
      ...(!isKept && { errorText: errorText ? this.seal.sealText(row, 'error_text', errorText) : null }),
      ...(inviteUrl && { inviteUrl: this.seal.sealText(row, 'invite_url', inviteUrl) }),
      ...(person.platformUserId === null && { inviteUrl: null }),
      ...(row.person.platformUserId === null &&
        person.platformUserId !== null && { appliedProfile: isAttempted ? sent.attemptProfile : sent.profile }),
    };
  }
}
