import { Injectable } from '@nestjs/common';
import { Audit, BEGUN } from '../../audit/audit.js';
import { Env } from '../../config/env.js';
import { Random } from '../../config/random.js';
import { PrismaService, type Tx, toBytes } from '../../database/prisma.service.js';
import { NOT_SENT as NOTHING_SENT, sendingOf } from '../../platform/clients/sent-data.js';
import { CONNECT_TIMEOUT_MS } from '../../platform/http/platform-http.js';
import { USER_MANAGEMENT } from '../../platform/pauses/apis.js';
import { CallJudge } from '../../platform/pauses/call-judge.js';
import { CallLog } from '../../platform/pauses/call-log.repository.js';
import { isProbed, type Pause, type Verdict } from '../../platform/pauses/pause-rule.js';
import { type Pauses, PausesRepository } from '../../platform/pauses/pauses.repository.js';
import { backoff } from '../../queue/work/backoff.js';
import { Sending } from '../../sending/sending.js';
import { type Answer, applyAnswer, applyLate, type Result, takeBack } from '../rules/apply-answer.js';
import { abandon, applyCall, type SentCall } from '../rules/apply-call.js';
import type { CallResult } from '../rules/call-result.js';
import { type CallStep, isReading } from '../rules/next-step.js';
import { isCreate, type Person } from '../rules/person.js';
import { ProfileSeal } from '../rules/profile.js';
import { isStandingStill } from './due-people.repository.js';
import { type MoreFields, PeopleRepository } from './people.repository.js';
import type { PersonRow } from './person-row.js';
import { PlatformUsersRepository } from './platform-users.repository.js';

/** How late a call may leave after its job was taken, because the limiter counts the job and the platform the call. */
export const LEAVES_WITHIN_MS = 1_000;

/** A call that transaction 1 marked, with its person as it was then. */
export interface TakenCall {
  row: PersonRow;
  call: SentCall;
  beganAt: Date;
  /** The APIs and operations that this call probes. */
  probes: readonly string[];
}

/** The two transactions of a call: the first marks it, the second stores its answer. */
@Injectable()
export class CallsRepository {
  /** Maximum duration of a call, from the mark on. */
  private readonly callMs: number;
  private readonly graceMs: number;

  constructor(
    env: Env,
    private readonly prisma: PrismaService,
    private readonly judge: CallJudge,
    private readonly people: PeopleRepository,
    private readonly users: PlatformUsersRepository,
    private readonly pauses: PausesRepository,
    private readonly log: CallLog,
    private readonly sending: Sending,
    private readonly seal: ProfileSeal,
    private readonly random: Random,
    private readonly audit: Audit,
  ) {
    this.callMs = LEAVES_WITHIN_MS + CONNECT_TIMEOUT_MS + env.PLATFORM_TIMEOUT_SECONDS * 1_000;
    this.graceMs = env.UNKNOWN_OUTCOME_GRACE_SECONDS * 1_000;
  }

  /**
   * Transaction 1: decides the person's next call and marks it. The call may be sent once this has committed.
   *
   * @param id of the person
   * @param callId unique
   * @returns undefined if no call may leave now: none is due, one is in flight, calls pause, or sending is held
   */
  take(id: string, callId: string): Promise<TakenCall | undefined> {
    return this.prisma.transaction(async (tx) => {
      const row = await this.people.lock(tx, { id });
      if (!row || row.dueAt === null || row.dueAt > row.context.now) return undefined;
      const { now } = row.context;
      // The time of a call in flight is over, so that its process has died or could not store the answer.
      const person = row.person.call ? abandon(row.person, now) : row.person;
      const step = await this.people.decide(tx, row, person);
      const isDue = step.do === 'call' && step.dueAt <= now && !(await this.isStopped(tx, row, step));
      const pauses = isDue ? await this.pauses.read(tx) : undefined;
      const sent = isDue && pauses ? probeOf(pauses, step) : undefined;
      const probes = sent && pauses && (await this.judge.admit(tx, pauses, sent.operation, now, this.callMs));
      if (!sent || !probes) {
        await this.people.save(tx, row, person, step);
        return undefined;
      }
      const call = this.callOf(callId, person, sent, now);
      const graceMs = isCreate(call) || call.operation === 'setClientProviders' ? this.graceMs : 0;
      const marked = applyCall(person, call, new Date(call.lookUpAt.getTime() + graceMs), now);
      const isNew = marked.unsettled !== null && marked.unsettled.call !== row.person.unsettled?.call;
      const unsettledProfile = isCreate(call) && row.profile ? toBytes(row.profile) : null;
      // From now on, no cancel of an import takes the deletion back.
      if (call.operation === 'deleteUser' && !row.person.wanted && row.profile !== null)
        await this.people.erase(tx, row);
      await this.people.save(tx, row, marked, step, isNew ? { unsettledProfile } : {});
      if (isAboutClient(row, call))
        await this.audit.system(sendingOf(call.operation), { client: [row.externalId] }, BEGUN, tx);
      return { row: { ...row, person: marked }, call, beganAt: now, probes };
    });
  }

  /**
   * Transaction 2: stores the answer and decides the next step.
   *
   * @returns true if the person is due again and someone waits for it
   */
  settle(taken: TakenCall, result: CallResult): Promise<boolean> {
    const { call, beganAt } = taken;
    return this.prisma.transaction(async (tx) => {
      const own = await this.people.lock(tx, { id: taken.row.id });
      const row = own ?? (await this.survivorOf(tx, taken.row));
      const personId = row?.id ?? taken.row.id;
      const now = row?.context.now ?? new Date();
      const { operation } = call;
      const isCurrent = row?.person.call?.id === call.id;
      // The commit of an earlier try was not confirmed.
      if (!isCurrent && (await this.log.has(tx, { personId, operation, at: beganAt }))) return false;
      const { refused: last, fault } = own?.person ?? taken.row.person;
      const refused = last && { ...last, hasFailed: fault !== null };
      const judged = { operation, subject: taken.row.id, beganAt, probes: taken.probes, refused };
      const { verdict, limitedUntil, pauses } = await this.judge.judge(tx, judged, result, now);
      const { status, durationMs, reason } = result;
      const outcome = result.said?.kind ?? result.kind;
      await this.log.add(tx, { personId, operation, at: beganAt, status, outcome, durationMs, reason });
      const isUnsent = ['unsent', 'unreachable', 'unreadable'].includes(verdict);
      if (isUnsent && isAboutClient(taken.row, call))
        await this.audit.system(sendingOf(operation), { client: [taken.row.externalId] }, NOTHING_SENT, tx);
      if (!row) return false;
      const answer: Answer = { verdict, status, result: await this.resultOf(tx, row, result) };
      const tried = call.subject === 'attempted' ? row.person.unsettled?.operation : operation;
      const succeededAt = pauses.get(tried ?? operation)?.succeededAt ?? null;
      const facts = { now, limitedUntil, succeededAt, fraction: this.random.fraction() };
      const person = isCurrent
        ? applyAnswer(row.person, call, answer, facts)
        : applyLate(row.person, call, answer, !own);
      if (person.platformUserId === null) await this.users.saveLost(tx, row);
      if (!isCurrent && person === row.person) return false;
      const errorCode = isCurrent ? codeOf(verdict, result, call) : row.errorCode;
      const isNews = isCurrent || person.platformUserId !== row.person.platformUserId;
      const texts = isNews ? this.texts(row, person, result) : {};
      const step = await this.people.update(tx, { ...row, step: row.step ?? operation, errorCode }, person, texts);
      return row.urgent && step.do === 'call' && step.dueAt <= now && person.call === null;
    });
  }

  /** Locks the client into which a called one was merged meanwhile, if it was. */
  private async survivorOf(tx: Tx, { kind, externalId }: PersonRow): Promise<PersonRow | undefined> {
    const former = await tx.formerId.findUnique({ where: { kind_externalId: { kind, externalId } } });
    return former ? this.people.lock(tx, { id: former.personId }) : undefined;
  }

  /** Closes a call whose mark may have been stored although its commit was not confirmed. Nothing was sent. */
  async close(id: string, callId: string): Promise<void> {
    await this.prisma.transaction(async (tx) => {
      const row = await this.people.lock(tx, { id });
      const { call } = row?.person ?? {};
      if (!row || call?.id !== callId) return;
      await this.people.update(tx, row, takeBack(row.person, callId, row.context.now));
    });
  }

  /** Stores that the work on a person threw an error. A call in flight keeps its time. */
  async postpone(id: string): Promise<void> {
    await this.prisma.transaction(async (tx) => {
      const [locked] = await tx.$queryRaw<{ now: Date; dueAt: Date | null; failures: number }[]>`
        SELECT clock_timestamp() AS now, due_at AS "dueAt", failures FROM people WHERE id = ${id}::uuid FOR UPDATE`;
      if (!locked?.dueAt) return;
      const failures = locked.failures + 1;
      const dueAt = new Date(Math.max(locked.dueAt.getTime(), backoff(failures, locked.now).getTime()));
      await tx.person.update({ where: { id }, data: { failures, dueAt, errorCode: 'internal' } });
    });
  }

  /** True if sending is held, and the call changes something, or if the import that stated the person stands still. */
  private async isStopped(tx: Tx, { importId }: PersonRow, { operation }: CallStep): Promise<boolean> {
    const [stop] = await tx.$queryRawUnsafe<[{ isHeld: boolean; isPaused: boolean }]>(
      `SELECT ${this.sending.heldSql} AS "isHeld", ${isStandingStill('$1::uuid')} AS "isPaused"`,
      importId,
    );
    return (stop.isHeld && !isReading(operation)) || stop.isPaused;
  }

  private callOf(id: string, person: Person, step: CallStep, now: Date): SentCall {
    const { operation, subject, providerUserIds } = step;
    const emails = { wanted: person.email, attempted: person.unsettled?.email ?? null, any: null };
    return {
      ...{ id, operation, version: person.version, lookUpAt: new Date(now.getTime() + this.callMs) },
      ...{ email: isCreate(step) ? person.email : subject ? emails[subject] : null },
      ...(subject && { subject }),
      ...(providerUserIds && { providerUserIds }),
    };
  }

  private async resultOf(tx: Tx, row: PersonRow, { said }: CallResult): Promise<Result | null> {
    if (!said || !('userId' in said)) return said as Result | null;
    return { ...said, ...(await this.users.fit(tx, said.userId, row)) };
  }

  private texts(row: PersonRow, person: Person, { errorText, inviteUrl }: CallResult): MoreFields {
    // The message of a rejection stays while the call is repeated.
    const isKept = person.fault !== null && errorText === undefined;
    const sealed = errorText ? toBytes(this.seal.sealText(row, 'error_text', errorText)) : null;
    return {
      ...(!isKept && { errorText: sealed }),
      ...(inviteUrl && { inviteUrl: toBytes(this.seal.sealText(row, 'invite_url', inviteUrl)) }),
      ...(person.platformUserId === null && { inviteUrl: null }),
    };
  }
}

/** While all calls pause, a check goes in place of a call that may lose something. */
function probeOf(pauses: Pauses, step: CallStep): CallStep {
  if (step.operation === 'checkUser' || !isProbed(pauses.get(USER_MANAGEMENT) as Pause)) return step;
  return { ...step, operation: 'checkUser', subject: 'any' };
}

/** True if a call sends data about a client, which the accounting of its disclosures lists. */
const isAboutClient = ({ kind }: PersonRow, { subject }: SentCall): boolean => kind === 'client' && subject !== 'any';

/** The code that is shown while the person waits for its next call. */
function codeOf(verdict: Verdict, { status, errorCode }: CallResult, call: SentCall): string | null {
  switch (verdict) {
    case 'limited':
      return 'rate-limited';
    case 'unauthorized':
    case 'elsewhere':
      return status === 401 || status === 403 ? 'platform-unauthorized' : 'platform-address';
    case 'lost':
      return isCreate(call) ? 'outcome-unknown' : 'platform-fault';
    case 'unreachable':
      return 'platform-unreachable';
    case 'unsent':
    case 'unreadable':
      return errorCode ?? null;
    default:
      return null;
  }
}
