import { type Answer, applyAnswer, applyGrant } from './apply-answer.js';
import { isCreate, MirrorTables, type Row } from './mirror-tables.spec-support.js';
import { isAnswered, MirrorWitness, RIGHT_ADDRESS } from './mirror-witness.spec-support.js';
import type { CallStep } from './next-step.js';
import { listableUser, type Person } from './person.js';
import { law, nothingThere, PlatformModel, type Reply, type Weather } from './platform-model.spec-support.js';

const SEND_WITHIN_MS = 1_000;
const TIMEOUT_MS = 10_000;
const GRACE_MS = 60_000;
const LEASE_MS = SEND_WITHIN_MS + TIMEOUT_MS + 5_000;
const RETRY_MS = 1_000;
const PAUSE_MS = 2_000;

/** A call under way: granted, perhaps arrived, not settled. */
interface Flight {
  id: string;
  row: Row;
  /** The person as the call left. */
  left: Person;
  step: CallStep;
  weather: Weather;
  grantedAt: number;
  reply: Reply | null;
  address: string;
  /** The worker hangs and stores the answer whenever it wakes up. */
  hangs: boolean;
}

/** The mirror between an EHR and a platform, in memory, one step of one worker at a time. */
export class MirrorModel {
  readonly tables = new MirrorTables();
  readonly platform: PlatformModel;
  readonly flights: Flight[] = [];
  calls = 0;
  /** Whether a human being linked somebody: then two people may mean one user. */
  linkedByHand = false;
  /** Where the service believes the platform to be, and where it saw user management work. */
  private address = RIGHT_ADDRESS;
  private readonly worked = new Set<string>();
  private grants = 0;
  private pausedUntil = 0;
  private readonly witness: MirrorWitness;

  constructor(existingEmails: string[]) {
    this.platform = new PlatformModel(GRACE_MS, existingEmails);
    this.witness = new MirrorWitness(this.tables, this.platform);
  }

  get now(): number {
    return this.tables.now;
  }

  putProvider(id: string, email: string): void {
    this.tables.afterChange(this.tables.wantPerson(id, 'provider', email));
  }

  /** Names only providers that the EHR named before, as the API demands. */
  putClient(id: string, email: string | null, providers: string[]): void {
    const named = providers.filter((provider) => this.tables.people.has(provider));
    if (named.length === 0) return;
    const row = this.tables.wantPerson(id, 'client', email);
    row.wantedProviders = named;
    this.tables.afterChange(row);
  }

  putList(id: string, providers: string[]): void {
    const row = this.tables.people.get(id);
    const named = providers.filter((provider) => this.tables.people.has(provider));
    if (!row?.person.wanted || named.length === 0) return;
    row.wantedProviders = named;
    row.person = { ...row.person, fault: null };
    row.wantedAt = this.now;
    this.tables.afterChange(row);
  }

  /** A provider that clients still name stays (409). */
  remove(id: string): void {
    const row = this.tables.people.get(id);
    if (!row || this.tables.clientsNaming(id).length > 0) return;
    this.tables.wantAbsence(row);
    this.tables.afterChange(row);
  }

  /** A human being who looks at the platform settles what the service could not. Nobody does within the grace. */
  resolve(id: string): void {
    const row = this.tables.people.get(id);
    if (!row || this.platform.nextCommitAt !== null) return;
    // The API answers 409 while the service may still find out itself.
    if (row.person.attempt && row.state !== 'needs-review' && row.state !== 'failed') return;
    const user = this.platform.userOf(id);
    const isGone = this.platform.removedByOthers.has(row.person.platformUserId ?? '');
    if (isGone && row.person.wanted) this.tables.resolve(row, 'create');
    else if (row.state === 'failed') this.tables.resolve(row, 'retry');
    else if (row.code === 'platform-user-taken') this.tables.resolve(row, 'retry');
    else if (row.code === 'create-unknown') this.tables.resolve(row, user ? 'link' : 'create', user?.id);
    else if (row.code === 'delete-unknown') this.tables.resolve(row, user ? 'link' : 'ignore', user?.id);
    else return;
    this.linkedByHand ||= user !== undefined;
    if (row.person.attempt === null) this.witness.cleared(row);
    this.tables.afterChange(row);
  }

  /** `UserCreatedHandler`: the platform tells, at any time and any number of times, that a user was created. */
  userCreated(choice: number): void {
    const told = [...this.platform.users.values()].filter((user) => user.partnerUserId !== null);
    const user = told[choice % Math.max(1, told.length)];
    const row = user && this.tables.people.get(user.partnerUserId ?? '');
    if (!user || !row || this.tables.heldByAnother(row, user.id) || row.person.platformUserId !== null) return;
    if (!row.person.wanted && row.person.attempt === null) return;
    this.tables.resolve(row, 'link', user.id);
    this.witness.cleared(row);
    this.tables.afterChange(row);
  }

  /** A human being settles everything that is left, and gives whoever shares an email one of its own. */
  settleByHand(): void {
    for (const row of this.tables.all()) {
      if (row.code === 'email-taken' || row.code === 'platform-user-taken') {
        this.tables.wantPerson(row.id, row.kind, ownEmail(row.id));
        this.tables.afterChange(row);
      } else this.resolve(row.id);
    }
  }

  /** Somebody removes a user in the platform's own application. */
  removeByOthers(choice: number): void {
    const users = [...this.platform.users.keys()];
    const user = users[choice % Math.max(1, users.length)];
    if (user) this.platform.removeByOthers(user);
  }

  /** The service starts anew with a base URL under which nothing lives, or with the right one. */
  moveTo(isRight: boolean): void {
    this.address = isRight ? RIGHT_ADDRESS : 'wrong';
  }

  /** One worker asks for a turn and gets the `choice`th of the people who are due. */
  turn(choice: number, weather: Weather, hangs: boolean): void {
    this.wait(1);
    const due = this.due();
    const row = due[choice % Math.max(1, due.length)];
    if (!row) return;
    const step = this.tables.decide(row);
    if (step.do !== 'call' || (step.notBefore && step.notBefore.getTime() > this.now)) return;
    if (this.tables.blocked(step.operation)) return;
    const othersUnderWay = this.flights.some((flight) => flight.row === row && !flight.hangs);
    const id = `call-${++this.grants}`;
    this.witness.granted(row, step, id, othersUnderWay);
    const lookUpAt = this.moment(SEND_WITHIN_MS + TIMEOUT_MS + GRACE_MS);
    const left = applyGrant(row.person, step, { callId: id, now: this.moment(0), lookUpAt });
    this.tables.saveKnown(row, left);
    row.lease = id;
    row.leaseUntil = this.now + LEASE_MS;
    this.tables.probe(step.operation);
    const { address } = this;
    this.flights.push({ id, row, left, step, weather, grantedAt: this.now, reply: null, address, hangs });
  }

  /** A call reaches the platform. */
  arrive(choice: number): void {
    const waiting = this.flights.filter((flight) => flight.reply === null);
    const flight = waiting[choice % Math.max(1, waiting.length)];
    if (flight) this.reach(flight);
  }

  /** A worker stores what its call came to. */
  settle(choice: number): void {
    const flight = this.flights[choice % Math.max(1, this.flights.length)];
    if (flight) this.land(flight);
  }

  /** A worker dies with its call on the way. @param arrives whether the call reaches the platform all the same */
  crash(choice: number, arrives: boolean): void {
    const [flight] = this.flights.splice(choice % Math.max(1, this.flights.length), 1);
    if (flight && arrives && flight.reply === null) this.reach(flight);
  }

  /** Time passes; late commits are done and calls time out on the way. */
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

  /** From now on the platform answers and nobody dies; everything is done that can be done. */
  drain(): void {
    this.moveTo(true);
    for (let rounds = 0; ; rounds++) {
      law(rounds < 3_000, 'the mirror never comes to rest');
      if (this.flights.length > 0) this.settle(0);
      else if (this.due().length > 0) this.turn(0, { kind: 'fair' }, false);
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
      return isDue && row.leaseUntil < this.now && !this.tables.blocked(row.step);
    });
  }

  private nextMoment(): number | null {
    const moments = this.tables.all().flatMap((row) => {
      if (row.dueAt === null) return [];
      return Math.max(row.dueAt, row.lease === null ? 0 : row.leaseUntil + 1, this.pausedUntil);
    });
    const commit = this.platform.nextCommitAt;
    const all = [...moments, ...this.tables.nextProbeAt(), ...(commit === null ? [] : [commit])];
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
    const email = step.subject === 'attempted' ? (left.attempt?.email ?? null) : left.email;
    const { kind: role, id: partnerUserId } = row;
    const { platformUserId } = left;
    const providerUserIds = step.providerUserIds ?? [];
    const arrival = { operation: step.operation, role, partnerUserId, email, platformUserId, providerUserIds };
    const isThere = flight.address === RIGHT_ADDRESS;
    flight.reply = isThere ? this.platform.arrive(arrival, flight.weather, this.now) : nothingThere(step.operation);
  }

  /** `SettleRepository.settle` */
  private land(flight: Flight): void {
    this.flights.splice(this.flights.indexOf(flight), 1);
    if (flight.reply === null) this.reach(flight);
    const { row, step, reply } = flight;
    if (reply === null) return;
    if (reply.kind === 'rate-limited') this.pausedUntil = Math.max(this.pausedUntil, this.now + PAUSE_MS);
    const stillOurs = row.lease === flight.id || (isCreate(step) && row.person.attempt?.callId === flight.id);
    if (!stillOurs) return;
    const wasListable = listableUser(row.person) !== null;
    const answer = this.judge(flight, reply);
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
    this.tables.saveKnown(row, person);
    if (row.lease === flight.id) {
      row.lease = null;
      row.leaseUntil = 0;
    }
    row.code = null;
    this.tables.decide(row, listedBefore);
    if (row.kind === 'provider' && !wasListable && listableUser(person) !== null) this.tables.wakeClientsOf(row);
  }

  /** `SettleRepository.judge` */
  private judge({ row, step, grantedAt, address }: Flight, reply: Reply): Answer {
    const { operation } = step;
    if (reply.kind === 'unauthorized') return this.tables.refused(operation, row.person.refusal, grantedAt);
    const isElsewhere = reply.kind === 'not-found' && !this.worked.has(address);
    if (reply.kind === 'wrong-address' || isElsewhere) return this.tables.refused(operation, null, grantedAt);
    if (isAnswered(reply)) this.tables.succeeded(operation);
    if (isAnswered(reply) && reply.kind !== 'rejected') this.worked.add(address);
    if (reply.kind !== 'exists' && reply.kind !== 'created') return reply as Answer;
    return { ...reply, heldByAnother: this.tables.heldByAnother(row, reply.userId) };
  }

  private moment(inMs: number): Date {
    return new Date(this.now + inMs);
  }
}

/** An email that is nobody else's; in hex, as fingerprints are. */
function ownEmail(id: string): string {
  return Buffer.from(`own-${id}`).toString('hex');
}
