import { type Answer, applyAnswer, applyGrant } from '../model/apply-answer.js';
import { interpretAnswer } from '../model/interpret-answer.js';
import { type CallStep, isCreate, QUEUES, queueOf } from '../model/next-step.js';
import { assignableUser, type Person } from '../model/person.js';
import { law, PlatformModel, type Reply, type Weather, wrongServerReply } from './platform-model.spec-support.js';
import { ReconcilerChanges } from './reconciler-changes.spec-support.js';
import { BASE, type Row } from './reconciler-tables.spec-support.js';

const SEND_WITHIN_MS = 1_000;
const TIMEOUT_MS = 10_000;
const GRACE_MS = 60_000;
const LEASE_MS = SEND_WITHIN_MS + TIMEOUT_MS + 5_000;
const RETRY_MS = 1_000;
const PAUSE_MS = 2_000;

/** A call in flight: granted, perhaps arrived, not settled. */
interface Flight {
  id: string;
  row: Row;
  /** The person when the call was sent. */
  left: Person;
  step: CallStep;
  weather: Weather;
  grantedAt: number;
  reply: Reply | null;
  address: string;
  /** The worker hangs and stores the answer late. */
  hangs: boolean;
}

/** The service between an EHR and the platform, in memory, one worker step at a time. */
export class ReconcilerModel extends ReconcilerChanges {
  readonly flights: Flight[] = [];
  calls = 0;
  private grants = 0;
  private pausedUntil = 0;

  constructor(existingEmails: string[]) {
    super(new PlatformModel(GRACE_MS, existingEmails));
  }

  get now(): number {
    return this.tables.now;
  }

  /** Restarts the service with a wrong base URL, or with the right one. */
  moveTo(isRight: boolean): void {
    this.tables.base = isRight ? BASE : 'wrong';
  }

  /** A worker claims the `choice`th due person. */
  claim(choice: number, weather: Weather, hangs: boolean): void {
    this.wait(1);
    const due = this.due();
    const row = due[choice % Math.max(1, due.length)];
    if (!row) return;
    const step = this.tables.decide(row);
    if (step.do !== 'call' || (step.notBefore && step.notBefore.getTime() > this.now)) return;
    if (this.tables.gateOf(queueOf(step, row.person))?.phase === 'open') return;
    const othersInFlight = this.flights.some((flight) => flight.row === row && !flight.hangs);
    const id = String(++this.grants);
    this.witness.granted(row, step, id, othersInFlight);
    const lookUpAt = this.moment(SEND_WITHIN_MS + TIMEOUT_MS + GRACE_MS);
    const left = applyGrant(row.person, step, { callId: id, now: this.moment(0), lookUpAt });
    row.person = left;
    row.lease = id;
    row.leaseUntil = this.now + LEASE_MS;
    this.tables.probe(row, step, id);
    const address = this.tables.base;
    this.flights.push({ id, row, left, step, weather, grantedAt: this.now, reply: null, address, hangs });
  }

  /** A call reaches the platform. */
  arrive(choice: number): void {
    const waiting = this.flights.filter((flight) => flight.reply === null);
    const flight = waiting[choice % Math.max(1, waiting.length)];
    if (flight) this.reach(flight);
  }

  /** A worker stores the result of its call. */
  record(choice: number): void {
    const flight = this.flights[choice % Math.max(1, this.flights.length)];
    if (flight) this.land(flight);
  }

  /** A worker crashes with its call in flight. @param arrives true if the call still reaches the platform */
  crash(choice: number, arrives: boolean): void {
    const [flight] = this.flights.splice(choice % Math.max(1, this.flights.length), 1);
    if (flight && arrives && flight.reply === null) this.reach(flight);
  }

  /** Lets time pass, with its late commits and timeouts of calls. */
  wait(milliseconds: number): void {
    const end = this.now + milliseconds;
    for (let next = this.nextEventAt(); next <= end; next = this.nextEventAt()) {
      this.tables.now = Math.max(this.now, next);
      this.platform.commitUntil(this.now);
      for (const flight of this.flights.filter((one) => this.deadline(one) <= this.now)) {
        if (flight.reply === null) this.reach(flight);
        if (!flight.hangs) this.land(flight);
      }
    }
    this.tables.now = end;
  }

  /** Completes all work, with a working platform and without crashes. */
  drain(): void {
    this.moveTo(true);
    for (let rounds = 0; ; rounds++) {
      law(rounds < 3_000, 'the work never ends');
      if (this.flights.length > 0) this.record(0);
      else if (this.due().length > 0) this.claim(0, { kind: 'fair' }, false);
      else {
        const next = this.nextMoment();
        if (next === null) return;
        this.wait(Math.max(1, next - this.now));
      }
    }
  }

  private due(): Row[] {
    if (this.now < this.pausedUntil) return [];
    return this.tables.all().filter((row) => {
      const isDue = row.dueAt !== null && row.dueAt <= this.now;
      return isDue && row.leaseUntil < this.now && this.tables.gateOf(row.step)?.phase !== 'open' && !isHourly(row);
    });
  }

  private nextMoment(): number | null {
    const moments = this.tables.all().flatMap((row) => {
      if (row.dueAt === null || isHourly(row)) return [];
      return Math.max(row.dueAt, row.lease === null ? 0 : row.leaseUntil + 1, this.pausedUntil);
    });
    const commit = this.platform.nextCommitAt;
    const probes = QUEUES.map((queue) => this.tables.gateOf(queue)?.until ?? 0);
    const all = [...moments, ...probes, ...(commit === null ? [] : [commit])];
    const later = all.filter((moment) => moment > this.now);
    return later.length === 0 ? null : Math.min(...later);
  }

  private nextEventAt(): number {
    const running = this.flights.filter((flight) => flight.reply === null || !flight.hangs);
    return Math.min(this.platform.nextCommitAt ?? Infinity, ...running.map((flight) => this.deadline(flight)));
  }

  private deadline(flight: Flight): number {
    return flight.grantedAt + SEND_WITHIN_MS + TIMEOUT_MS;
  }

  private reach(flight: Flight): void {
    this.calls++;
    law(this.calls <= this.grants, 'a call left without a grant');
    const { row, left, step } = flight;
    const email = emailOf(flight);
    const { kind: role, id: partnerUserId } = row;
    const { platformUserId } = left;
    const providerUserIds = step.providerUserIds ?? [];
    const arrival = { operation: step.operation, role, partnerUserId, email, platformUserId, providerUserIds };
    const isThere = flight.address === BASE;
    flight.reply = isThere ? this.platform.arrive(arrival, flight.weather, this.now) : wrongServerReply(step.operation);
  }

  /** `CallResultsRepository.record` */
  private land(flight: Flight): void {
    this.flights.splice(this.flights.indexOf(flight), 1);
    if (flight.reply === null) this.reach(flight);
    const { row, step, reply } = flight;
    if (reply === null) return;
    if (reply.kind === 'rate-limited') this.pausedUntil = Math.max(this.pausedUntil, this.now + PAUSE_MS);
    const answer = this.judge(flight, reply);
    const isOurs = row.lease === flight.id || (isCreate(step) && row.person.attempt?.callId === flight.id);
    if (!isOurs) return;
    const wasAssignable = assignableUser(row.person) !== null;
    const outdated = row.wantedAt >= flight.grantedAt;
    const times = {
      callId: flight.id,
      now: this.moment(0),
      retryAt: this.moment(RETRY_MS),
      lookUpAt: this.moment(GRACE_MS),
    };
    const person = applyAnswer(row.person, step, answer, { outdated, ...times });
    this.witness.answered(row, step, answer, flight, person);
    const listedBefore = row.listed;
    row.person = person;
    if (row.lease === flight.id) {
      row.lease = null;
      row.leaseUntil = 0;
    }
    row.code = null;
    this.tables.decide(row, listedBefore);
    if (row.kind === 'provider' && !wasAssignable && assignableUser(person) !== null) this.tables.requeueClientsOf(row);
  }

  /** `CallResultsRepository.interpret` */
  private judge({ id, row, step, grantedAt, address }: Flight, reply: Reply): Answer {
    const at = { url: `${address}/${step.operation}`, base: address };
    const { answer, signal } = interpretAnswer(reply, step, row.person, this.tables.breakers, at, this.now);
    if (signal) this.tables.record({ id, person: row.id, grantedAt, ...at }, step.operation, signal);
    if (!('userId' in answer)) return answer;
    const reported = this.tables.reportedRoles.get(answer.userId);
    const role = reported === undefined ? null : reported === row.kind ? 'fits' : 'differs';
    return { ...answer, heldByAnother: this.tables.heldByAnother(row, answer.userId), role };
  }

  private moment(inMs: number): Date {
    return new Date(this.now + inMs);
  }
}

/** True if a rejection is retried every hour, perhaps forever, because the operation succeeds for no one. */
function isHourly({ person }: Row): boolean {
  return person.refusal?.kind === 'rejected' && person.refusal.count > 4;
}

/** The email that a check looks up. */
function emailOf({ left, step }: Flight): string | null {
  if (step.subject === 'any') return null;
  return step.subject === 'attempted' ? (left.attempt?.email ?? null) : left.email;
}
