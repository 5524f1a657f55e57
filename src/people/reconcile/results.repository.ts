import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Env } from '../../config/env.js';
import { Random } from '../../config/random.js';
import { Database } from '../../database/database.js';
import { toBytes } from '../../database/prisma.service.js';
import { RateLimiterRepository } from '../../platform/rate-limit/rate-limiter.repository.js';
import { backoffMs } from '../../queue/backend/backoff.js';
import { isHeld } from '../../queue/due-rows/lease.js';
import { type Answer, applyAnswer } from '../model/apply-answer.js';
import { isCreate } from '../model/next-step.js';
import type { Operation, Person } from '../model/person.js';
import type { StopCode } from '../model/person-codes.js';
import { ProfileSeal } from '../model/profile.js';
import { CircuitsRepository } from '../store/circuits.repository.js';
import { type MoreColumns, PeopleRepository } from '../store/people.repository.js';
import type { PersonRow } from '../store/person-row.js';
import { PlatformUsersRepository, ROLES } from '../store/platform-users.repository.js';
import type { Claim } from './claim.repository.js';
import type { CallResult } from './platform-people.js';

/** Limits of the backoff after a transient fault of a person's call. */
const RETRY_BACKOFF = { baseMs: 1_000, maxMs: 300_000 };

/** Limits of the backoff after a create that got no answer and had no effect. */
const CREATE_BACKOFF = { baseMs: 2_000, maxMs: 3_600_000 };

/** Answers that prove the key and the address valid, because the operation is done or was done before. */
const DONE: string[] = ['absent', 'exists', 'created', 'applied', 'deleted', 'not-found'] satisfies Answer['kind'][];

/** Records the result of a call in one transaction: its log row, the person, and its dependents. */
@Injectable()
export class CallResultsRepository {
  constructor(
    private readonly env: Env,
    private readonly database: Database,
    private readonly calls: RateLimiterRepository,
    private readonly people: PeopleRepository,
    private readonly circuits: CircuitsRepository,
    private readonly users: PlatformUsersRepository,
    private readonly seal: ProfileSeal,
    private readonly random: Random,
  ) {}

  /** @returns the person's state afterwards */
  async record(claim: Claim, result: CallResult): Promise<{ state: string; code: string | null }> {
    const { step, grant, lease } = claim;
    return this.database.transaction(async (tx) => {
      await this.calls.settle(tx, grant, result.outcome);
      const row = await this.people.lock(tx, { id: claim.row.id });
      if (!row) return { state: 'gone', code: null };
      // After a lost lease, only the answer to a create still counts, because a create is never sent twice.
      const isOurs = row.leaseOwner === lease.owner && row.leaseNo === lease.no;
      if (!isOurs && !(isCreate(step) && row.person.attempt?.callId === grant.id))
        return { state: row.state, code: row.errorCode };
      const { answer, errorCode } = await this.interpret(tx, claim, row, result);
      const person = this.merge(claim, row, answer);
      await this.saveUsers(tx, row, person, answer);
      const { step: next, code } = await this.people.update(tx, { ...row, errorCode }, person, {
        ...this.columns(claim, row, result, person),
        ...(isOurs && { leaseOwner: null, leaseSafeAt: null }),
      });
      return { state: next.state, code };
    });
  }

  /** Rolls back a claim with an unconfirmed commit, if it is stored. @param result the result of a call not sent */
  async rollBack(claim: Claim, result: CallResult): Promise<void> {
    // The lock waits for a commit that is still running on a lost connection.
    const { key, owner, no } = claim.lease;
    const { rows } = await this.database.pool.query<{ ours: boolean }>(
      `SELECT ${isHeld('$2', '$3')} AS ours FROM people WHERE id = $1 FOR UPDATE`,
      [key, owner, no],
    );
    // Compares the lease, because the id of an uncommitted call may be reused. The lease number is unique: until this
    // ends, the process holds the person and cannot lease it again.
    if (rows[0]?.ours) await this.record(claim, result);
  }

  /** Adds from the database who holds the user of an answer, and whether a refusal affects only this person. */
  private async interpret(
    tx: PoolClient,
    { step: { operation }, grant }: Claim,
    row: PersonRow,
    { answer, errorCode = null }: { answer: CallResult['answer']; errorCode?: string | null },
  ): Promise<{ answer: Answer; errorCode: string | null }> {
    const code = await this.stopCode(tx, operation, answer.kind);
    if (code !== null) {
      const scope = await this.circuits.refused(tx, operation, grant, code, row.person.refusal);
      // A wrong address fails no person. If other people's calls succeed, only this person is retried later.
      const own = code === 'platform-address' ? 'unreachable' : 'forbidden';
      return { answer: { kind: scope === 'own' ? own : 'refused-for-all' }, errorCode: code };
    }
    // A lost create without an email needs review, so unanswered creates continue only as single probes.
    if (answer.kind === 'unknown' && operation === 'createClient' && (await this.calls.isUnanswered(tx, operation))) {
      await this.circuits.refused(tx, operation, grant, 'platform-fault');
    }
    const isDone = DONE.includes(answer.kind);
    if (isDone || answer.kind === 'rejected' || answer.kind === 'conflict') {
      await this.circuits.answered(tx, operation, isDone);
    }
    if (answer.kind !== 'exists' && answer.kind !== 'created') return { answer: answer as Answer, errorCode };
    return { answer: { ...answer, ...(await this.users.fit(tx, answer.userId, row)) }, errorCode };
  }

  /** The code with which an answer may stop its operation. A 404 means a missing user only at a proven address. */
  private async stopCode(tx: PoolClient, operation: Operation, kind: string): Promise<StopCode | null> {
    if (kind === 'unauthorized') return 'platform-unauthorized';
    if (kind === 'wrong-address') return 'platform-address';
    if (kind !== 'not-found') return null;
    const isAboutUser = operation === 'setClientProviders' || operation === 'deleteUser';
    return isAboutUser && (await this.circuits.isAddressGood(tx, operation)) ? null : 'platform-address';
  }

  private merge({ step, grant }: Claim, row: PersonRow, answer: Answer): Person {
    const { now } = row.context;
    const inMs = (ms: number) => new Date(now.getTime() + ms);
    const { lostCreates, failures } = row.person;
    return applyAnswer(row.person, step, answer, {
      callId: grant.id,
      outdated: row.wantedAt >= grant.grantedAt,
      now,
      createAgainAt: inMs(backoffMs(lostCreates, this.random.fraction(), CREATE_BACKOFF)),
      retryAt: inMs(backoffMs(failures + 1, this.random.fraction(), RETRY_BACKOFF)),
      lookUpAt: inMs(this.env.UNKNOWN_OUTCOME_GRACE_SECONDS * 1_000),
    });
  }

  /** Stores a second user of the person, and a deleted one. */
  private async saveUsers(tx: PoolClient, row: PersonRow, person: Person, answer: Answer): Promise<void> {
    const isFound = answer.kind === 'created' || answer.kind === 'exists';
    if (isFound && person.review === 'second-user' && answer.userId !== person.platformUserId) {
      const { kind, externalId: externalUserId } = row;
      await this.users.save(tx, { platformUserId: answer.userId, role: ROLES[kind], externalUserId });
    }
    if (person.platformUserId === null && row.person.platformUserId !== null) {
      await this.users.saveDeleted(tx, row.person.platformUserId, row.id);
    }
  }

  /** The other columns of a result: invite URL, applied profile, and the error message of the platform. */
  private columns({ step, row: sent }: Claim, row: PersonRow, result: CallResult, person: Person): MoreColumns {
    const isAttempted = step.subject === 'attempted';
    const { errorText, inviteUrl } = result;
    return {
      errorText: errorText ? toBytes(this.seal.sealText(row, 'error_text', errorText)) : null,
      ...(inviteUrl && { inviteUrl: toBytes(this.seal.sealText(row, 'invite_url', inviteUrl)) }),
      ...(person.platformUserId === null && { inviteUrl: null }),
      ...(row.person.platformUserId === null &&
        person.platformUserId !== null && {
          origin: isAttempted || result.answer.kind === 'created' ? 'created' : 'linked',
          appliedProfile: isAttempted ? sent.attemptProfile : sent.profile,
        }),
    };
  }
}
