import { USER_MANAGEMENT } from '../../platform/pauses/apis.js';
import type { Pause } from '../../platform/pauses/pause-row.js';
import {
  isClosed,
  isProbed,
  judge,
  type PausingCall,
  pauseAfter,
  probing,
  type Verdict,
} from '../../platform/pauses/pause-rule.js';
import { open } from '../../platform/pauses/pauses.spec-support.js';
import type { Answer } from './apply-answer.js';
import type { SentCall } from './apply-call.js';
import { MirrorPeople, type Row } from './mirror-people.spec-support.js';
import type { CallStep } from './next-step.js';
import { isCreate } from './person.js';
import { law, PlatformModel, type Reply, type Weather } from './platform-model.spec-support.js';
import type { Rules } from './rules.spec-support.js';

const CALL_MS = 11_000;
const GRACE_MS = 60_000;

/** How long a success proves that the platform answers. */
const PROOF_MS = 60_000;

/** A call whose answer is not stored. */
interface Flight {
  rowId: string;
  call: SentCall;
  beganAt: Date;
  probes: readonly string[];
  reply: Reply;
}

/** Workers between stored people and the platform: one transaction marks a call, and another stores its answer. */
export class Mirror extends MirrorPeople {
  private readonly flights: Flight[] = [];
  private readonly pauses = new Map<string, Pause>();
  private taken = 0;

  constructor(rules: Rules, others: readonly string[]) {
    super(new PlatformModel(GRACE_MS, others), rules);
  }

  /** A worker takes the nth due person. @param dies its process ends before the call is sent, or before the answer is stored */
  take(nth: number, weather: Weather, dies: 'before' | 'after' | null = null): void {
    this.wait(1);
    const due = this.due();
    const row = due[nth % Math.max(1, due.length)];
    if (!row) return;
    const person = row.person.call ? this.rules.abandon(row.person, this.moment()) : row.person;
    this.decide({ ...row, person });
    const step = this.decide(this.row(row.id));
    if (step.do !== 'call' || step.dueAt > this.moment()) return;
    const sent = isProbed(this.pause(USER_MANAGEMENT)) && !isCheck(step) ? asCheck(step) : step;
    if (this.isClosed(sent.operation)) return;
    const call = this.callOf(this.row(row.id), sent);
    const probes = [USER_MANAGEMENT, call.operation].filter((key) => isProbed(this.pause(key)));
    for (const key of probes) this.pauses.set(key, probing(this.pause(key), this.moment(), CALL_MS));
    const graceMs = isCreate(call) || call.operation === 'setClientProviders' ? GRACE_MS : 0;
    const settledAt = new Date(call.lookUpAt.getTime() + graceMs);
    this.store(row.id, this.rules.applyCall(this.row(row.id).person, call, settledAt, this.moment()));
    if (dies === 'before') return;
    const { platformUserId } = person;
    const arrival = { call, role: row.kind, partnerUserId: row.id, platformUserId };
    const reply = this.platform.arrive(arrival, weather, this.now);
    if (dies === null) this.flights.push({ rowId: row.id, call, beganAt: this.moment(), probes, reply });
  }

  /** A worker stores the answer of the nth call in flight, perhaps late. */
  settle(nth: number): void {
    const [flight] = this.flights.splice(nth % Math.max(1, this.flights.length), 1);
    if (!flight) return;
    const { rowId, call, reply } = flight;
    const { person } = this.row(rowId);
    const { succeededAt } = this.pause(call.operation);
    const verdict = this.verdictOf(flight);
    for (const key of [USER_MANAGEMENT, call.operation]) this.pauses.set(key, this.heard(key, verdict, flight));
    const answer: Answer = { verdict, status: reply.status, result: this.resultOf(flight) };
    const { limitedUntil } = this.pause(USER_MANAGEMENT);
    const facts = { now: this.moment(), limitedUntil, succeededAt, fraction: 0.5 };
    const isCurrent = person.call?.id === call.id;
    const after = isCurrent
      ? this.rules.applyAnswer(person, call, answer, facts)
      : this.rules.applyLate(person, call, answer);
    this.store(rowId, after);
    this.judgeAnswer(flight, person.platformUserId);
  }

  /** Lets time pass, in which late calls take effect. */
  wait(ms: number): void {
    this.now += ms;
    this.platform.passTo(this.now);
  }

  /** Completes all work with a platform that answers. */
  drain(): void {
    for (let steps = 0; ; steps++) {
      law(steps < 2_000, 'the work never ends');
      if (this.flights.length > 0) this.settle(0);
      else if (this.due().length > 0) this.take(0, 'fair');
      else {
        const next = Math.min(this.nextTime(), this.platform.nextEffectAt);
        if (next === Number.POSITIVE_INFINITY) return;
        this.wait(Math.max(1, next - this.now));
      }
    }
  }

  /** Checks what holds once operators have decided and no work is left: the platform has the desired state. */
  judgeEnd(): void {
    for (const { id, kind, person, state, code, providers } of this.rows.values()) {
      law(state === (person.wanted ? 'synced' : 'deleted'), `${id} ends as ${state} (${code ?? person.fault})`);
      const own = this.platform.userOf(id);
      const user = this.platform.users.get(person.platformUserId ?? '');
      law(person.wanted || !own, `${id} is deleted here but not on the platform`);
      if (!person.wanted) continue;
      law(user !== undefined && (!own || own === user), `${id} is not mapped to its user`);
      const wanted = providers.map((provider) => this.row(provider).person.platformUserId);
      law(kind === 'provider' || `${wanted}` === `${user.providers}`, `${id} has another list on the platform`);
    }
  }

  /** An answer that names a user is never dropped, and a user that was found only by an email is linked only by that one. */
  private judgeAnswer({ rowId, call, reply }: Flight, before: string | null): void {
    const { said } = reply;
    if (!said || !('userId' in said)) return;
    const { person } = this.row(rowId);
    const user = this.platform.users.get(said.userId);
    const isKnown = person.platformUserId === said.userId || person.others.some(({ id }) => id === said.userId);
    // The user may have been deleted meanwhile, by a call that was in flight together with this one.
    law(said.kind === 'exists' || isKnown || !user, `the user that was created for ${rowId} was dropped`);
    const isLinked = before === null && person.platformUserId === said.userId && person.origin === 'linked';
    law(!isLinked || call.email === person.email, `${rowId} was linked by an email that it no longer has`);
  }

  private due(): Row[] {
    if (isClosed(this.pause(USER_MANAGEMENT), this.moment())) return [];
    const now = this.moment();
    return [...this.rows.values()].filter((row) => {
      if (row.person.dueAt === null || row.person.dueAt > now) return false;
      const step = this.rules.nextStep(row.person, this.contextOf(row));
      if (row.person.call || step.do !== 'call') return true;
      return !this.isClosed(isProbed(this.pause(USER_MANAGEMENT)) ? 'checkUser' : step.operation);
    });
  }

  private nextTime(): number {
    const dues = [...this.rows.values()].map(({ person }) => person.dueAt?.getTime() ?? Number.POSITIVE_INFINITY);
    const isWaiting = dues.some((due) => due <= this.now);
    const ends = [...this.pauses.values()].flatMap(({ limitedUntil, pausedUntil }) => [limitedUntil, pausedUntil]);
    const later = ends.map((end) => end?.getTime() ?? 0).filter((end) => isWaiting && end > this.now);
    return Math.min(...later, ...dues.filter((due) => due > this.now));
  }

  private callOf({ person }: Row, { operation, subject, providerUserIds }: CallStep): SentCall {
    const emails = { wanted: person.email, attempted: person.unsettled?.email ?? null, any: null };
    return {
      ...{ id: `${++this.taken}`, operation, version: person.version, lookUpAt: this.moment(CALL_MS) },
      ...{ email: isCreate({ operation }) ? person.email : subject ? emails[subject] : null },
      ...(subject && { subject }),
      ...(providerUserIds && { providerUserIds }),
    };
  }

  private verdictOf({ rowId, call: { operation }, reply }: Flight): Verdict {
    const { refused } = this.row(rowId).person;
    const { succeededAt } = this.pause(operation);
    const isSame = refused?.operation === operation && refused.code === reply.status;
    return judge(reply, {
      namesSubject: operation === 'setClientProviders' || operation === 'deleteUser',
      addressWorks:
        succeededAt !== null ||
        [...this.pauses.values()].some((pause) => this.now - (pause.succeededAt?.getTime() ?? 0) < PROOF_MS),
      isBuiltIn: true,
      isRepeated: isSame && succeededAt !== null && succeededAt > refused.at,
    });
  }

  private heard(key: string, verdict: Verdict, { rowId, beganAt, probes, reply }: Flight): Pause {
    const call: PausingCall = { subject: rowId, beganAt, probes };
    const pause = pauseAfter(this.pause(key), verdict, call, reply, this.moment());
    return verdict === 'ok' && key !== USER_MANAGEMENT ? { ...pause, succeededAt: this.moment() } : pause;
  }

  private resultOf({ rowId, reply: { said } }: Flight): Answer['result'] {
    if (!said || !('userId' in said)) return said as Answer['result'];
    const holder = [...this.rows.values()].find(({ person }) => person.platformUserId === said.userId);
    return { ...said, heldByAnother: holder !== undefined && holder.id !== rowId, role: null };
  }

  private pause(key: string): Pause {
    return this.pauses.get(key) ?? open(key);
  }

  private isClosed(operation: string): boolean {
    return [USER_MANAGEMENT, operation].some((key) => isClosed(this.pause(key), this.moment()));
  }
}

const isCheck = ({ operation }: CallStep): boolean => operation === 'checkUser';

const asCheck = (step: CallStep): CallStep => ({ ...step, operation: 'checkUser', subject: 'any' });
