import type { AnswerFacts } from './apply-answer.js';
import { FACTS, NOW } from './calls.spec-support.js';
import { dueAtOf, type RestStep } from './next-step.js';
import { assignableUser, type DecisionContext, type Person, RESET_ON_WRITE } from './person.js';
import type { Review } from './person-codes.js';
import { endsByRetry, RESOLVE_ACTIONS } from './resolve-rule.js';
import type { Rules } from './rules.spec-support.js';
import { answersTo, callOf, contextsOf, FUTURE, keyOf, normal, type State, withRoles } from './states.spec-support.js';

/** A state from which no time, no named cause and no operator leads on. */
export class DeadEnd extends Error {}

const UNLISTED = { now: NOW, claim: 'held', stillListed: false, held: false } as const;

/** Walks through all states that any calls, answers, writes, events, decisions of operators and waits lead to. */
export class StateWalk {
  private readonly known = new Set<string>();
  private readonly open: State[] = [];
  /** The codes of the rests that were met. */
  readonly codes = new Set<string>();

  constructor(private readonly rules: Rules) {}

  get size(): number {
    return this.known.size;
  }

  /** @throws {DeadEnd} at the first state without a way out */
  walk(...beginnings: Person[]): void {
    for (const person of beginnings) this.visit({ person, sent: null, late: null });
    // Breadth-first, so that the shortest way to a dead end is found. The list grows while it is walked.
    for (const state of this.open) this.leave(state);
  }

  private visit(state: State): void {
    const next = normal({ ...state, person: this.rules.withNextUser(state.person) });
    const key = keyOf(next);
    if (this.known.has(key)) return;
    this.known.add(key);
    this.open.push(next);
  }

  private leave(state: State): void {
    const { person, sent, late } = state;
    for (const known of withRoles(person))
      for (const context of contextsOf(person)) this.decide({ ...state, person: known }, context);
    this.write(state);
    this.link(state);
    if (sent) {
      this.answer(state);
      this.visit({ ...state, person: this.rules.abandon(person, NOW), sent: null, late: sent });
    }
    if (late)
      for (const answer of answersTo(late)) {
        this.visit({ ...state, person: this.rules.applyLate(person, late, answer), late: null });
      }
  }

  /** A decision in some surroundings: it is stored, leads to a call, or rests until an operator decides. */
  private decide(state: State, context: DecisionContext): void {
    const { person } = state;
    const step = this.rules.nextStep(person, context);
    const dueAt = dueAtOf(person, step);
    const stored = { ...state, person: { ...person, dueAt } };
    this.visit(stored);
    this.resolve(stored, step.state);
    if (person.call) {
      if (dueAt === null) throw new DeadEnd(`no one looks after a call: ${JSON.stringify(person)}`);
      return;
    }
    if (step.do === 'rest') {
      this.codes.add(step.code ?? step.state);
      this.checkRest(person, step, context);
      return;
    }
    if (dueAt === null || !(dueAt <= FUTURE)) throw new DeadEnd(`a call without a time: ${JSON.stringify(person)}`);
    const due = dueAt > NOW ? this.afterTime(stored.person) : stored.person;
    for (const call of callOf(due, step)) {
      this.visit({ ...state, person: this.rules.applyCall(due, call, FUTURE, NOW), sent: call });
    }
  }

  private checkRest(person: Person, step: RestStep, context: DecisionContext): void {
    const differs = (other: Person, where = context): boolean => {
      const after = this.rules.nextStep(other, where);
      return after.do !== 'rest' || after.state !== step.state || after.code !== step.code;
    };
    const fail = () => {
      throw new DeadEnd(`${step.state} (${step.code}) for ever: ${JSON.stringify(person)}`);
    };
    switch (step.state) {
      case 'deleted':
        return;
      case 'synced':
        if (person.kind === 'provider' && assignableUser(person) === null) fail();
        return;
      case 'waiting':
      case 'deleting': {
        const providers = context.providers.map((provider) => ({ ...provider, platformUserId: 'u-provider' }));
        if (step.code === null || !differs(person, { ...UNLISTED, providers })) fail();
        return;
      }
      case 'needs-review':
      case 'failed': {
        const choices = this.rules.resolveChoices(step.state, person, context);
        const cause = step.code === 'email-taken' && differs(person, { ...context, claim: 'free' });
        const left = choices.some(({ action }) => differs(this.resolved(person, action)));
        if (!left && !cause) fail();
        // A selection by code is retried as a whole, but who has an email is decided one by one.
        const isRetried = step.code !== 'email-taken' && choices.some(({ action }) => action === 'retry');
        if (isRetried && !endsByRetry(step.code as Review)) fail();
        return;
      }
      default:
        fail();
    }
  }

  private resolve(state: State, shown: RestStep['state']): void {
    for (const action of RESOLVE_ACTIONS) {
      if (this.rules.refusalOf(action, shown, state.person) !== null) continue;
      const resolved = this.resolved(state.person, action);
      this.visit({ ...state, person: { ...resolved, version: 2 } });
    }
  }

  private resolved(person: Person, action: (typeof RESOLVE_ACTIONS)[number]): Person {
    if (action === 'link') return { ...this.rules.applyLink(person, 'u1', 'resolved'), dueAt: null };
    return { ...this.rules.applyResolve(person, action, { now: NOW }), dueAt: null };
  }

  /** Writes of the EHR: the same or another email, none, another list, and a deletion, also under a legal hold. */
  private write(state: State): void {
    const { person } = state;
    const changed: Person = { ...person, ...RESET_ON_WRITE, version: 2, dueAt: person.call ? person.dueAt : null };
    const emails = person.kind === 'client' ? ['a1', 'c3', null] : ['a1', 'c3'];
    for (const email of emails) {
      const other = email === person.email ? {} : { email, review: null, checkedAbsentAt: null };
      this.visit({ ...state, person: { ...changed, wanted: true, ...other } });
    }
    if (person.wanted)
      this.visit({ ...state, person: { ...changed, appliedProviders: person.appliedProviders && [] } });
    const gone: Person = { ...changed, wanted: false, review: null, checkedAbsentAt: null };
    this.visit({ ...state, person: gone });
    this.visit({ ...state, person: { ...gone, email: null } });
  }

  /** An event names a user of a person. */
  private link(state: State): void {
    const { person } = state;
    if (person.others.length > 0) return;
    const isOpen = person.wanted || person.unsettled || person.platformUserId !== null;
    if (isOpen) this.visit({ ...state, person: this.rules.applyEvent(person, 'u2') });
  }

  private answer(state: State): void {
    const { person, sent } = state;
    if (!sent) return;
    for (const answer of answersTo(sent)) {
      for (const succeededAt of person.failures > 0 ? [null, NOW] : [null]) {
        const facts: AnswerFacts = { ...FACTS, limitedUntil: FUTURE, succeededAt, fraction: 0 };
        this.visit({ ...state, person: this.rules.applyAnswer(person, sent, answer, facts), sent: null });
      }
    }
  }

  /** The person once every time that is set has come. */
  private afterTime(person: Person): Person {
    const unsettled = person.unsettled && { ...person.unsettled, lookUpAt: NOW };
    return { ...person, unsettled, checkedAbsentAt: null, dueAt: NOW };
  }
}
