import { applyAnswer } from './apply-answer.js';
import { afterCall, afterProbe, type Breakers, breakerOf, type Signal } from './circuit-breaker.js';
import { interpretAnswer, type RawAnswer } from './interpret-answer.js';
import { newcomer } from './newcomer.spec-support.js';
import { type CallStep, gatesOf, queueOf } from './next-step.js';
import { OPERATIONS, type Operation, type Person } from './person.js';

/** A fault of the platform that affects some operations for everyone. */
export interface Outage {
  operations: Operation[];
  signal: Signal;
}

/** A person who needs one call of one operation. */
interface Caller {
  name: string;
  isBad: boolean;
  step: CallStep;
  person: Person;
  dueAt: number;
  finishedAt: number | null;
}

interface Flight {
  id: string;
  caller: Caller;
  grantedAt: number;
  answer: RawAnswer;
  endsAt: number;
}

const CALL_MS = 200;
const PROBE_ANSWER_MS = 11_000;
/** The operations that people need: one whose unanswered calls are risky, and one for which they are not. */
export const MODEL_OPERATIONS: Operation[] = ['createClient', 'deleteUser'];

/** Long enough for the longest block, the longest Retry-After, and the hourly retry of a rejection. */
const RECOVERY_MS = 3 * 3_600_000;

const SUCCESS: Record<Operation, RawAnswer> = {
  checkUser: { kind: 'absent' },
  createProvider: { kind: 'created', userId: 'u' },
  createClient: { kind: 'created', userId: 'u' },
  setClientProviders: { kind: 'applied' },
  deleteUser: { kind: 'deleted' },
};

/** People, breakers and a clock: each person's call goes out as soon as its breaker allows it. Checks the laws at each step. */
export class BreakerModel {
  readonly callMs = CALL_MS;
  private breakers: Breakers = {};
  private now = Date.UTC(2026, 0, 1);
  private readonly callers: Caller[] = [];
  private flights: Flight[] = [];
  private calls = 0;
  private elapsedMs = 0;
  private outage: Outage | null = null;

  /** @param people of each operation; `seed` shuffles them */
  constructor({ good, bad, seed = 0 }: { good: number; bad: number; seed?: number }) {
    for (const operation of MODEL_OPERATIONS) {
      for (let n = 0; n < good + bad; n++) this.callers.push(this.caller(operation, n, n < bad));
    }
    const rank = ({ name }: Caller) =>
      ([...name].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), seed) >>> 0) % 997;
    if (seed > 0) this.callers.sort((one, other) => rank(one) - rank(other));
  }

  /**
   * Lets the platform fail for some time. An operation that works again does so until everyone has called it, because
   * nothing tells a person who is rejected before and after the success of all others from one whose own data
   * are rejected.
   */
  during(outage: Outage, ms: number): void {
    const isEnding = this.outage?.operations.some((operation) => !outage.operations.includes(operation));
    if (isEnding) {
      this.recover();
      this.rearm();
    }
    this.outage = outage;
    this.run(ms, () => false);
  }

  /** Gives everyone who has finished another call to make. */
  rearm(): void {
    for (const caller of this.callers) {
      if (caller.finishedAt !== null)
        Object.assign(caller, { finishedAt: null, dueAt: this.now, person: this.newPerson() });
    }
  }

  /** Kills the process: its calls are never recorded, and their people are due again. */
  crash(): void {
    for (const { caller } of this.flights) caller.dueAt = this.now;
    this.flights = [];
  }

  /** Ends every outage. @returns the milliseconds until everyone had finished */
  recover(): number {
    this.outage = null;
    const startedMs = this.elapsedMs;
    const isDone = () => this.callers.every(({ finishedAt, isBad }) => finishedAt !== null || isBad);
    this.run(RECOVERY_MS, isDone);
    const late = this.callers.filter(({ finishedAt, isBad }) => finishedAt === null && !isBad);
    law(late.length === 0, `${late.map(({ name }) => name)} did not continue: ${JSON.stringify(this.breakers)}`);
    return this.elapsedMs - startedMs;
  }

  /** When the last person without a fault had finished, in milliseconds since the start. */
  get othersFinishedAfterMs(): number {
    return Math.max(
      ...this.callers.map(({ finishedAt, isBad }) => (isBad ? 0 : (finishedAt ?? Number.POSITIVE_INFINITY))),
    );
  }

  private caller(operation: Operation, n: number, isBad: boolean): Caller {
    const step: CallStep = { do: 'call', operation, state: 'pending', notBefore: null };
    return { name: `${operation}-${n}`, isBad, step, person: this.newPerson(), dueAt: this.now, finishedAt: null };
  }

  private newPerson(): Person {
    return { ...newcomer('client'), email: 'e' };
  }

  private run(ms: number, isDone: () => boolean): void {
    const end = this.elapsedMs + ms;
    while (this.elapsedMs < end && !isDone()) {
      this.land();
      this.send();
      const next = Math.min(this.nextAt() - this.now, end - this.elapsedMs);
      const stepMs = Math.max(1, Math.ceil(next));
      this.now += stepMs;
      this.elapsedMs += stepMs;
    }
  }

  private send(): void {
    // A restart between any two steps loses nothing, because the state is stored as JSON.
    this.breakers = JSON.parse(JSON.stringify(this.breakers));
    for (const gate of gatesOf(this.breakers, this.now)) {
      if (gate.phase === 'open') continue;
      const waiting = this.callers.filter(
        (caller) => this.isDue(caller) && queueOf(caller.step, caller.person) === gate.queue,
      );
      const another = waiting.filter(({ name }) => name !== gate.person);
      const unrefused = another.filter(({ person }) => person.refusal === null);
      const probers = [unrefused, another, waiting].find((some) => some.length > 0) ?? [];
      for (const caller of gate.phase === 'half-open' ? probers.slice(0, 1) : waiting.slice(0, 3)) this.sendFor(caller);
    }
  }

  private sendFor(caller: Caller): void {
    const { operation } = caller.step;
    const id = String(++this.calls);
    const breaker = breakerOf(this.breakers, operation);
    const inFlight = this.flights.filter((flight) => flight.caller.step.operation === operation);
    law(!breaker.block || !inFlight.some((flight) => breaker.block?.probe === flight.id), `two probes of ${operation}`);
    this.breakers[operation] = afterProbe(breaker, { id, person: caller.name }, this.now, PROBE_ANSWER_MS);
    this.flights.push({ id, caller, grantedAt: this.now, answer: this.answerOf(caller), endsAt: this.now + CALL_MS });
  }

  private answerOf({ isBad, step: { operation } }: Caller): RawAnswer {
    if (this.outage?.operations.includes(operation)) {
      const { signal } = this.outage;
      if (signal.kind === 'unanswered') return { kind: signal.sent ? 'unknown' : 'unreachable' };
      if (signal.kind !== 'success' && signal.kind !== 'answered') return signal;
    }
    return isBad ? { kind: 'rejected', status: 400 } : SUCCESS[operation];
  }

  private land(): void {
    const ended = this.flights.filter(({ endsAt }) => endsAt <= this.now);
    this.flights = this.flights.filter(({ endsAt }) => endsAt > this.now);
    for (const flight of ended) this.record(flight);
  }

  private record({ id, caller, grantedAt, answer: raw }: Flight): void {
    const { step, person } = caller;
    const { operation } = step;
    const at = { url: operation, base: 'base' };
    const { answer, signal } = interpretAnswer(raw, step, person, this.breakers, at, this.now);
    const others = OPERATIONS.filter((other) => other !== operation);
    const before = others.map((other) => breakerOf(this.breakers, other));
    if (signal) {
      const call = { id, person: caller.name, grantedAt, ...at };
      const isBlocked = breakerOf(this.breakers, operation).block !== null;
      const { breaker } = afterCall(breakerOf(this.breakers, operation), operation, call, signal, this.now, 0.5);
      if (isBlocked && !breaker.block) this.retryRejected(operation);
      this.breakers[operation] = breaker;
      const blockMs = breaker.block ? breaker.block.until - this.now : 0;
      law(blockMs <= (raw.kind === 'rate-limited' ? 3_600_000 : 600_000), `${operation} is blocked for ${blockMs} ms`);
    }
    law(
      others.every((other, place) => breakerOf(this.breakers, other) === before[place]),
      'another operation was stopped',
    );
    const isFinal = answer.kind === 'forbidden' || (answer.kind === 'rejected' && answer.isFinal);
    law(!isFinal || caller.isBad, `${caller.name} failed permanently`);
    if (['exists', 'created', 'absent', 'applied', 'deleted'].includes(answer.kind) || isFinal) {
      caller.finishedAt = this.elapsedMs;
      return;
    }
    const heard = { callId: id, now: new Date(this.now), outdated: false, lookUpAt: new Date(this.now) };
    const retryAt = new Date(this.now + 1_000);
    const merged = 'userId' in answer ? person : applyAnswer(person, step, answer, { ...heard, retryAt });
    caller.person = merged;
    caller.dueAt = merged.retryAt?.getTime() ?? this.now;
  }

  /** `DependentsRepository.requeueRejected` */
  private retryRejected(operation: Operation): void {
    for (const caller of this.callers) {
      if (caller.step.operation === operation && caller.person.refusal?.kind === 'rejected') caller.dueAt = this.now;
    }
  }

  private isDue({ finishedAt, dueAt, name }: Caller): boolean {
    return finishedAt === null && dueAt <= this.now && !this.flights.some(({ caller }) => caller.name === name);
  }

  private nextAt(): number {
    const open = gatesOf(this.breakers, this.now).map(({ until }) => until);
    const due = this.callers.flatMap(({ finishedAt, dueAt }) => (finishedAt === null ? [dueAt] : []));
    const moments = [...open, ...due, ...this.flights.map(({ endsAt }) => endsAt)];
    return Math.min(...moments.filter((moment) => moment > this.now), this.now + 60_000);
  }
}

function law(holds: boolean, text: string): asserts holds {
  if (!holds) throw new Error(text);
}
