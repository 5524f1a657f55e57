import {
  afterCall,
  afterProbe,
  type BreakerCall,
  type Breakers,
  breakerOf,
  type Signal,
} from '../model/circuit-breaker.js';
import { newcomer } from '../model/newcomer.spec-support.js';
import { type CallStep, type Gate, gatesOf, nextStep, operationOf, queueOf, type Step } from '../model/next-step.js';
import {
  assignableUser,
  type DecisionContext,
  OPERATIONS,
  type Operation,
  type Person,
  type PersonKind,
  type PersonState,
  RESET_ON_WRITE,
} from '../model/person.js';
import { fromFields, type KnownFields, toFields } from '../store/person-row.js';

/** A row of `people` with its `client_providers`. Times are in milliseconds. */
export class Row {
  wantedAt: number;
  wantedProviders: string[] = [];
  state: PersonState = 'pending';
  /** The queue of the next call. */
  step: string | null = null;
  code: string | null = null;
  dueAt: number | null = null;
  lease: string | null = null;
  leaseUntil = 0;
  isHeld = false;
  private desired: Pick<Person, 'wanted' | 'email'>;
  private columns: KnownFields;

  constructor(
    readonly id: string,
    readonly kind: PersonKind,
    now: number,
  ) {
    this.wantedAt = now;
    const { wanted, email, ...known } = newcomer(kind);
    this.desired = { wanted, email };
    this.columns = toFields(known, []);
  }

  /** The person as loaded from its columns, so that no other state survives a step. */
  get person(): Person {
    return { kind: this.kind, ...this.desired, ...fromFields(this.columns) };
  }

  set person({ wanted, email, ...known }: Person) {
    this.desired = { wanted, email };
    this.columns = toFields(known, this.listed);
  }

  /** The column `applied_providers`, which keeps its value while the list is unknown. */
  get listed(): string[] {
    return this.columns.appliedProviders;
  }
}

const PROBE_ANSWER_MS = 11_000;

/** The digest of the base URL of the platform. */
export const BASE = 'right';

/** The tables in memory, with the rules of the repositories: claims, requeues, circuits, the desired state. */
export class ReconcilerTables {
  readonly people = new Map<string, Row>();
  readonly claims = new Map<string, string>();
  /** `platform_users` */
  readonly reportedRoles = new Map<string, PersonKind>();
  /** Each operation has succeeded at the right URL before, so that a 404 there can be believed. */
  readonly breakers: Breakers = Object.fromEntries(
    OPERATIONS.map((operation) => [
      operation,
      { ...breakerOf({}, operation), url: `${BASE}/${operation}`, base: BASE },
    ]),
  );
  base = BASE;
  now = Date.UTC(2026, 0, 1);

  /** `PeopleRepository.wantPerson` */
  wantPerson(id: string, kind: PersonKind, email: string | null): Row {
    const row = this.people.get(id) ?? new Row(id, kind, this.now);
    const changed = row.person.email !== email;
    row.person = {
      ...row.person,
      wanted: true,
      email,
      ...RESET_ON_WRITE,
      review: changed ? null : row.person.review,
      checkedAbsentAt: changed ? null : row.person.checkedAbsentAt,
    };
    row.wantedAt = this.now;
    this.people.set(id, row);
    return row;
  }

  /** `PeopleRepository.wantAbsence` */
  wantAbsence(row: Row): void {
    row.person = { ...row.person, ...RESET_ON_WRITE, wanted: false, review: null, checkedAbsentAt: null };
    row.wantedAt = this.now;
  }

  /** The end of `PeopleService.change`. */
  afterChange(row: Row): void {
    this.decide(row);
    if (row.kind === 'provider') this.requeueClientsOf(row);
  }

  /** `PeopleRepository.decide` */
  decide(row: Row, listedBefore: string[] = []): Exclude<Step, { do: 'claim-email' }> {
    const context = this.context(row);
    let step = nextStep(row.person, context);
    if (step.do === 'claim-email')
      step = nextStep(row.person, { ...context, claim: this.claim(row) ? 'held' : 'taken' });
    if (step.do === 'claim-email') throw new Error('An email claim was neither held nor taken.');
    const isCall = step.do === 'call';
    const until = step.do === 'call' ? (step.notBefore ?? context.now) : step.until;
    const code = step.do === 'call' ? null : step.code;
    row.state = step.state;
    row.step = step.do === 'call' ? queueOf(step, row.person) : null;
    row.code = !isCall && until === null ? code : (code ?? row.code);
    row.dueAt = until?.getTime() ?? null;
    if (step.state === 'deleted') this.releaseClaims(row, []);
    else if (row.person.platformUserId === null) this.releaseClaims(row, wantedOrAttempted(row.person));
    if (row.kind === 'client') this.requeueClientsOfDeleted([...listedBefore, ...row.listed]);
    return step;
  }

  /** The data that the repository reads besides the row. */
  context(row: Row): DecisionContext {
    const holder = row.person.email === null ? undefined : this.claims.get(row.person.email);
    const mapped = row.kind === 'provider' && !row.person.wanted ? row.person.platformUserId : null;
    return {
      now: new Date(this.now),
      claim: holder === undefined ? 'free' : holder === row.id ? 'held' : 'taken',
      providers: row.wantedProviders.map((id) => ({
        externalId: id,
        platformUserId: assignableUser(this.row(id).person),
      })),
      role: this.roleOf(row),
      hasSecondUser: false,
      restored: false,
      held: row.isHeld,
      breakers: this.breakers,
      base: this.base,
      stillListed: mapped !== null && this.all('client').some((client) => isChangingList(client, mapped)),
    };
  }

  /** The clients that name a provider and are not deleted. */
  clientsNaming(id: string): Row[] {
    return this.all('client').filter((client) => client.person.wanted && client.wantedProviders.includes(id));
  }

  requeueClientsOf(provider: Row): void {
    for (const client of this.all('client')) {
      const isBehind = client.state === 'synced' && !client.listed.includes(provider.person.platformUserId ?? '');
      const isNamed = client.wantedProviders.includes(provider.id);
      if (isNamed && (client.state === 'waiting' || isBehind)) requeue(client, this.now);
    }
  }

  heldByAnother(row: Row, userId: string): boolean {
    return this.all().some((other) => other !== row && other.person.platformUserId === userId);
  }

  row(id: string): Row {
    const row = this.people.get(id);
    if (!row) throw new Error(`The model has no row ${id}.`);
    return row;
  }

  all(kind?: PersonKind): Row[] {
    return [...this.people.values()].filter((row) => !kind || row.kind === kind);
  }

  /** The phase of a person's queue. */
  gateOf(queue: string | null): Gate | undefined {
    return gatesOf(this.breakers, this.now).find((gate) => gate.queue === queue);
  }

  /** `BreakersRepository.markProbe` */
  probe(row: Row, step: CallStep, id: string): void {
    for (const operation of new Set([step.operation, operationOf(queueOf(step, row.person))])) {
      const breaker = breakerOf(this.breakers, operation);
      if (breaker.block) {
        this.breakers[operation] = afterProbe(breaker, { id, person: row.id }, this.now, PROBE_ANSWER_MS);
      }
    }
  }

  /** `BreakersRepository.record` */
  record(call: BreakerCall, operation: Operation, signal: Signal): void {
    const change = (of: Operation, heard: Signal) =>
      afterCall(breakerOf(this.breakers, of), of, call, heard, this.now, 0.5).breaker;
    this.breakers[operation] = change(operation, signal);
    for (const other of OPERATIONS) {
      const breaker = breakerOf(this.breakers, other);
      if (other === operation || breaker.block?.probe !== call.id) continue;
      this.breakers[other] = change(other, signal.kind === 'success' ? { kind: 'not-sent' } : signal);
    }
  }

  /** The role that the platform reported for the user of a person to delete. */
  private roleOf({ person, kind }: Row): 'fits' | 'differs' | null {
    const role = person.wanted ? undefined : this.reportedRoles.get(person.platformUserId ?? '');
    return role === undefined ? null : role === kind ? 'fits' : 'differs';
  }

  private claim(row: Row): boolean {
    const { email } = row.person;
    this.releaseClaims(row, wantedOrAttempted(row.person));
    if (email !== null && !this.claims.has(email)) this.claims.set(email, row.id);
    return email !== null && this.claims.get(email) === row.id;
  }

  private releaseClaims(row: Row, keep: (string | null)[]): void {
    for (const [email, holder] of this.claims) {
      if (holder !== row.id || keep.includes(email)) continue;
      this.claims.delete(email);
      for (const other of this.all()) {
        if (other !== row && other.person.email === email && other.code === 'email-taken') requeue(other, this.now);
      }
    }
  }

  private requeueClientsOfDeleted(platformUserIds: string[]): void {
    for (const provider of this.all('provider')) {
      const listed = platformUserIds.includes(provider.person.platformUserId ?? '');
      if (listed && provider.state === 'deleting' && provider.dueAt === null) requeue(provider, this.now);
    }
  }
}

function isChangingList({ person, listed, state }: Row, providerUserId: string): boolean {
  return person.platformUserId !== null && listed.includes(providerUserId) && ['pending', 'waiting'].includes(state);
}

function wantedOrAttempted({ email, attempt }: Person): (string | null)[] {
  return [email, attempt?.email ?? null];
}

function requeue(row: Row, now: number): void {
  row.dueAt = now;
  row.step = null;
}
