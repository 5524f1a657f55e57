import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Env } from '../../config/env.js';
import { Random } from '../../config/random.js';
import { Database } from '../../database/database.js';
import { type CallOutcome, RateLimiterRepository } from '../../platform/rate-limit/rate-limiter.repository.js';
import { backoffMs } from '../../queue/backend/backoff.js';
import { GIVE_BACK, isHeld, type Lease } from '../../queue/due-rows/lease.js';
import { type Answer, applyAnswer } from '../model/apply-answer.js';
import { isCreate } from '../model/next-step.js';
import { becameListable, type Operation, type Person } from '../model/person.js';
import type { PersonRow } from '../model/person-row.js';
import { ProfileSeal } from '../model/profile.js';
import { CircuitRepository, type StopCode } from '../store/circuit.repository.js';
import { DependentsRepository } from '../store/dependents.repository.js';
import { PeopleRepository } from '../store/people.repository.js';
import { PlatformAddressRepository } from '../store/platform-address.repository.js';
import { PlatformUsersRepository, ROLES } from '../store/platform-users.repository.js';
import type { Turn } from './claim.repository.js';

/** What a call came to: for the person, for the log, and what is worth keeping. */
export interface CallResult {
  answer: CallAnswer;
  outcome: CallOutcome;
  /** Shown as `sync.error.code` while the person is not settled. */
  errorCode: string | null;
  /** The platform's words; may hold personal data. */
  errorText: string | null;
  inviteUrl: string | null;
}

/** An answer as the platform gives it: whose user it is, and whose a refusal is, only the database can tell. */
export type CallAnswer =
  | Exclude<Answer, { kind: 'exists' } | { kind: 'created' } | { kind: 'forbidden' } | { kind: 'refused-for-all' }>
  | { kind: 'exists'; userId: string }
  | { kind: 'created'; userId: string }
  | { kind: 'unauthorized' }
  | { kind: 'wrong-address' };

/** Bounds of the wait after a transient fault of one person's call, in milliseconds. */
const RETRY = { baseMs: 1_000, maxMs: 300_000 };

/** Bounds of the wait before a create that got no answer, and was not done, is made again, in milliseconds. */
const CREATE_AGAIN = { baseMs: 2_000, maxMs: 3_600_000 };

/** Stores what a call came to, in one transaction: the log's row, the person, and whoever depended on it. */
@Injectable()
export class CallResultsRepository {
  constructor(
    private readonly env: Env,
    private readonly database: Database,
    private readonly calls: RateLimiterRepository,
    private readonly people: PeopleRepository,
    private readonly dependents: DependentsRepository,
    private readonly circuits: CircuitRepository,
    private readonly addresses: PlatformAddressRepository,
    private readonly users: PlatformUsersRepository,
    private readonly seal: ProfileSeal,
    private readonly random: Random,
  ) {}

  /** @returns the person's state afterwards */
  async settle(turn: Turn, result: CallResult): Promise<{ state: string; code: string | null }> {
    return this.database.transaction(async (tx) => {
      await this.calls.settle(tx, turn.grant, result.outcome);
      const row = await this.people.lock(tx, turn.row.id);
      if (!row) return { state: 'gone', code: null };
      // Somebody took the person over when the lease ran out: only a create, never sent twice, still counts.
      const isOurs = isSame(row.lease, turn.lease);
      if (!isOurs && !(isCreate(turn.step) && row.person.attempt?.callId === turn.grant.id))
        return { state: row.state, code: row.errorCode };
      const { answer, errorCode } = await this.judge(tx, turn, row, result);
      const person = this.merge(turn, row, answer);
      await this.people.saveKnown(tx, row, person);
      await this.keep(tx, turn, row, { ...result, errorCode }, person);
      const isFound = answer.kind === 'created' || answer.kind === 'exists';
      if (isFound && person.review === 'second-user' && answer.userId !== person.platformUserId) {
        const second = { platformUserId: answer.userId, role: ROLES[row.kind], externalUserId: row.externalId };
        await this.users.keep(tx, second);
      }
      if (person.platformUserId === null && row.person.platformUserId !== null) {
        await this.users.wasDeleted(tx, row.person.platformUserId, row.id);
      }
      const settled = await this.people.load(tx, row.id);
      if (!settled) return { state: 'gone', code: null };
      // Providers that wait to be deleted are on the list as it was before.
      const step = await this.people.decide(tx, { ...settled, listed: [...row.listed, ...settled.listed] });
      if (row.kind === 'provider' && becameListable(row.person, person)) await this.dependents.clientsOf(tx, row.id);
      return { state: settled.state, code: step.do === 'rest' ? step.code : errorCode };
    });
  }

  /** Takes back a turn whose commit was not confirmed, should it stand: nothing was sent. @param result that says so */
  async rollBack(turn: Turn, result: CallResult): Promise<void> {
    // The lock waits for a commit that is still under way on a lost connection.
    const { key, owner, no } = turn.lease;
    const { rows } = await this.database.pool.query<{ ours: boolean }>(
      `SELECT ${isHeld('$2', '$3')} AS ours FROM people WHERE id = $1 FOR UPDATE`,
      [key, owner, no],
    );
    // The number of a call that was never committed may be another's by now. That of the lease is not: until this is
    // done the person counts as served by this process, which leases it to itself no second time.
    if (rows[0]?.ours) await this.settle(turn, result);
  }

  private async judge(
    tx: PoolClient,
    turn: Turn,
    row: PersonRow,
    { answer, errorCode }: CallResult,
  ): Promise<{ answer: Answer; errorCode: string | null }> {
    const { operation } = turn.step;
    const code = await this.stops(tx, operation, answer);
    if (code !== null) {
      const { refusal: before } = row.person;
      const whose = await this.circuits.refused(tx, { operation, grant: turn.grant, code, before });
      // What tells of a wrong address fails nobody: who meets it while others pass is put off alone.
      const own = code === 'platform-address' ? 'unreachable' : 'forbidden';
      return { answer: { kind: whose === 'own' ? own : 'refused-for-all' }, errorCode: code };
    }
    // A lost create without an email costs a human being's time: while creates alone get no answer, one at a time is risked.
    if (answer.kind === 'unknown' && operation === 'createClient' && (await this.calls.isUnanswered(tx, operation))) {
      await this.circuits.unanswered(tx, operation, turn.grant);
    }
    if (isDone(answer)) await this.addresses.worked(tx, operation);
    if (isDone(answer) || answer.kind === 'rejected' || answer.kind === 'conflict')
      await this.circuits.succeeded(tx, operation);
    if (answer.kind === 'exists' || answer.kind === 'created') {
      const heldByAnother = await this.people.isHeldByAnother(tx, row.id, answer.userId);
      if (answer.kind === 'created') return { answer: { ...answer, heldByAnother }, errorCode };
      const role = await this.users.roleFit(tx, answer.userId, row.kind);
      return { answer: { ...answer, heldByAnother, role }, errorCode };
    }
    return { answer: answer as Answer, errorCode };
  }

  /** Why an answer stops its operation, when it may: only where users were seen does a 404 tell that one is gone. */
  private async stops(tx: PoolClient, operation: Operation, { kind }: CallAnswer): Promise<StopCode | null> {
    if (kind === 'unauthorized') return 'platform-unauthorized';
    if (kind === 'wrong-address') return 'platform-address';
    if (kind !== 'not-found') return null;
    const isAboutUser = operation === 'setClientProviders' || operation === 'deleteUser';
    return isAboutUser && (await this.addresses.isKnown(tx, operation)) ? null : 'platform-address';
  }

  private merge(turn: Turn, row: PersonRow, answer: Answer): Person {
    const now = row.around.now;
    const retryMs = backoffMs(row.person.failures + 1, this.random.fraction(), RETRY);
    return applyAnswer(row.person, turn.step, answer, {
      callId: turn.grant.id,
      outdated: row.wantedAt >= turn.grant.grantedAt,
      now,
      createAgainAt: new Date(now.getTime() + backoffMs(row.person.lostCreates, this.random.fraction(), CREATE_AGAIN)),
      retryAt: new Date(now.getTime() + retryMs),
      lookUpAt: new Date(now.getTime() + this.env.UNKNOWN_OUTCOME_GRACE_SECONDS * 1_000),
    });
  }

  /** Keeps what is worth keeping beside the facts: the invite URL, what the platform was given, its words on an error. */
  private async keep(tx: PoolClient, turn: Turn, row: PersonRow, result: CallResult, person: Person): Promise<void> {
    const mappedNow = row.person.platformUserId === null && person.platformUserId !== null;
    const given = turn.step.subject === 'attempted' ? turn.row.sealed.attemptProfile : turn.row.sealed.profile;
    const origin = result.answer.kind === 'created' || turn.step.subject === 'attempted' ? 'created' : 'linked';
    await tx.query(
      `UPDATE people SET error_code = $2, error_text = $3,
         invite_url = CASE WHEN $4::text IS NULL THEN NULL ELSE coalesce($5, invite_url) END,
         origin = CASE WHEN $6 THEN $7 ELSE origin END,
         applied_profile = CASE WHEN $6 THEN $8 ELSE applied_profile END
       WHERE id = $1`,
      [
        row.id,
        result.errorCode,
        result.errorText === null ? null : this.seal.sealErrorText(row, result.errorText),
        person.platformUserId,
        result.inviteUrl === null ? null : this.seal.sealInviteUrl(row, result.inviteUrl),
        mappedNow,
        origin,
        given,
      ],
    );
    const { key, owner, no } = turn.lease;
    await tx.query(`UPDATE people SET ${GIVE_BACK} WHERE id = $1 AND ${isHeld('$2', '$3')}`, [key, owner, no]);
  }
}

/** Whether the platform did the operation, or had done it before: the key and the address are good for it. */
function isDone({ kind }: CallAnswer): boolean {
  return ['absent', 'exists', 'created', 'applied', 'deleted', 'not-found'].includes(kind);
}

function isSame(left: Lease | null, right: Lease): boolean {
  return left?.owner === right.owner && left.no === right.no;
}
