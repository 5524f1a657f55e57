import type { Answer } from '../model/apply-answer.js';
import { nextStep, type Step } from '../model/next-step.js';
import {
  type DecisionContext,
  listableUser,
  type Operation,
  type Person,
  type PersonKind,
  type PersonState,
  type Refusal,
} from '../model/person.js';
import { fromColumns, type KnownColumns, toColumns } from '../store/person-row.js';
import { newcomer } from './newcomer.spec-support.js';

/** A row of `people` with its `client_providers`. Times are in milliseconds. */
export class Row {
  wantedAt: number;
  wantedProviders: string[] = [];
  state: PersonState = 'pending';
  step: Operation | null = null;
  code: string | null = null;
  dueAt: number | null = null;
  lease: string | null = null;
  leaseUntil = 0;
  private desired: Pick<Person, 'wanted' | 'email'>;
  private columns: KnownColumns;

  constructor(
    readonly id: string,
    readonly kind: PersonKind,
    now: number,
  ) {
    this.wantedAt = now;
    const { wanted, email, ...known } = newcomer(kind);
    this.desired = { wanted, email };
    this.columns = toColumns(known, []);
  }

  /** The person as loaded from its columns, so that no other state survives a step. */
  get person(): Person {
    return { kind: this.kind, ...this.desired, ...fromColumns(this.columns) };
  }

  set person({ wanted, email, ...known }: Person) {
    this.desired = { wanted, email };
    this.columns = toColumns(known, this.listed);
  }

  /** The column `applied_providers`, which keeps its value while the list is unknown. */
  get listed(): string[] {
    return this.columns.appliedProviders;
  }
}

interface Circuit {
  openedAt: number | null;
  closedAt: number | null;
  probeAt: number;
}

const PROBE_MS = 5_000;
const PROBE_ANSWER_MS = 30_000;

/** The tables in memory, with the rules of the repositories: claims, requeues, circuits, the desired state. */
export class ReconcilerTables {
  readonly people = new Map<string, Row>();
  readonly claims = new Map<string, string>();
  /** The newest answers in `platform_calls`. */
  recentReplies: string[] = [];
  /** `platform_users` */
  readonly reportedRoles = new Map<string, PersonKind>();
  private readonly circuits = new Map<Operation, Circuit>();
  /** The latest creates of clients, all without an answer. */
  private lostCreates: Row[] = [];
  now = Date.UTC(2026, 0, 1);

  /** `PeopleRepository.wantPerson` */
  wantPerson(id: string, kind: PersonKind, email: string | null): Row {
    const row = this.people.get(id) ?? new Row(id, kind, this.now);
    const changed = row.person.email !== email;
    row.person = {
      ...row.person,
      wanted: true,
      email,
      fault: null,
      retryAt: null,
      failures: 0,
      review: changed ? null : row.person.review,
      checkedAbsentAt: changed ? null : row.person.checkedAbsentAt,
    };
    row.wantedAt = this.now;
    this.people.set(id, row);
    return row;
  }

  /** `PeopleRepository.wantAbsence` */
  wantAbsence(row: Row): void {
    const calm = { fault: null, review: null, retryAt: null, failures: 0, checkedAbsentAt: null };
    row.person = { ...row.person, wanted: false, ...calm };
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
    row.step = step.do === 'call' ? step.operation : null;
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
        platformUserId: listableUser(this.row(id).person),
      })),
      answersMissing: this.recentReplies.length === 3 && this.recentReplies.every((kind) => kind === 'unknown'),
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

  /** `CircuitsRepository.refused` */
  refused(operation: Operation, refusal: Refusal | null, grantedAt: number): Answer {
    const before = this.circuits.get(operation);
    const refusedAt = refusal?.operation === operation ? refusal.at.getTime() : Infinity;
    if (before?.closedAt && before.closedAt > refusedAt) return { kind: 'forbidden' };
    if (before?.openedAt && grantedAt < before.openedAt) return { kind: 'refused-for-all' };
    const openedAt = before?.openedAt ?? this.now;
    const closedAt = before?.closedAt ?? null;
    this.circuits.set(operation, { openedAt, closedAt, probeAt: this.now + PROBE_MS });
    return { kind: 'refused-for-all' };
  }

  /** Records a create; after three in a row without an answer, of different clients, creates are stopped. */
  createAnswered(row: Row, kind: string, grantedAt: number): void {
    if (kind === 'not-sent' || kind === 'unreachable') return;
    this.lostCreates = kind === 'unknown' ? [row, ...this.lostCreates].slice(0, 3) : [];
    if (new Set(this.lostCreates).size === 3) this.refused('createClient', null, grantedAt);
  }

  /** `CircuitsRepository.answered` */
  succeeded(operation: Operation): void {
    const circuit = this.circuits.get(operation);
    if (circuit?.openedAt) this.circuits.set(operation, { ...circuit, openedAt: null, closedAt: this.now });
  }

  blocked(operation: Operation | null): boolean {
    const circuit = operation && this.circuits.get(operation);
    return circuit ? circuit.openedAt !== null && circuit.probeAt > this.now : false;
  }

  /** Marks a probe as sent, so that no other call of the operation starts. */
  probe(operation: Operation): void {
    const circuit = this.circuits.get(operation);
    if (circuit?.openedAt) circuit.probeAt = this.now + PROBE_ANSWER_MS;
  }

  nextProbeAt(): number[] {
    return [...this.circuits.values()]
      .filter((one) => one.openedAt && one.probeAt > this.now)
      .map((one) => one.probeAt);
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
