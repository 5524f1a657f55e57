import { newcomer } from './newcomer.spec-support.js';
import { dueAtOf, type Step } from './next-step.js';
import { assignableUser, type DecisionContext, type Person, type PersonKind, RESET_ON_WRITE } from './person.js';
import { law, type PlatformModel } from './platform-model.spec-support.js';
import type { ResolveAction } from './resolve-rule.js';
import type { Rules } from './rules.spec-support.js';

/** A person with what is stored beside it. */
export interface Row {
  id: string;
  kind: PersonKind;
  person: Person;
  state: string;
  code: string | null;
  providers: readonly string[];
  /** The list on the platform, as last known. */
  listed: readonly string[];
}

/** People as they are stored, with the writes of the EHR, the events of the platform and the decisions of operators. */
export class MirrorPeople {
  readonly rows = new Map<string, Row>();
  now = 0;

  constructor(
    readonly platform: PlatformModel,
    protected readonly rules: Rules,
  ) {}

  moment(inMs = 0): Date {
    return new Date(this.now + inMs);
  }

  /** @param providers of a client; those that the EHR does not have are left out */
  put(id: string, kind: PersonKind, email: string | null, providers: readonly string[] = []): void {
    const named = providers.filter((provider) => this.rows.get(provider)?.person.wanted);
    if (kind === 'client' && named.length === 0) return;
    const person: Person = { ...newcomer(kind), version: 0 };
    const row: Row = this.rows.get(id) ?? { id, kind, person, state: 'new', code: null, providers, listed: [] };
    const other = row.person.email === email ? {} : { email, review: null, checkedAbsentAt: null };
    this.rows.set(id, { ...row, providers: named });
    this.write(id, { wanted: true, ...other });
  }

  /** A provider that clients name is not deleted (409). */
  remove(id: string): void {
    const isNamed = [...this.rows.values()].some(({ person, providers }) => person.wanted && providers.includes(id));
    if (this.rows.has(id) && !isNamed) {
      this.write(id, { wanted: false, email: null, review: null, checkedAbsentAt: null });
    }
  }

  private write(id: string, change: Partial<Person>): void {
    const { person } = this.row(id);
    const version = person.version + 1;
    const dueAt = person.call ? person.dueAt : null;
    this.store(id, { ...person, ...RESET_ON_WRITE, dueAt, ...change, version, wantedAt: this.moment() });
  }

  /** The platform reports a user that was created, at any time and any number of times. */
  userCreated(id: string): void {
    const user = this.platform.userOf(id);
    const row = this.rows.get(id);
    if (!user || !row || row.person.platformUserId === user.id) return;
    if (row.person.others.some((other) => other.id === user.id)) return;
    const isOpen = row.person.wanted || row.person.unsettled || row.person.platformUserId !== null;
    if (isOpen) this.store(id, this.rules.applyEvent(row.person, user.id));
  }

  /** Operators look at the platform and decide about everyone who needs it. */
  resolveAll(): void {
    for (const { id, state } of [...this.rows.values()])
      if (state === 'needs-review' || state === 'failed') this.resolve(id);
  }

  private resolve(id: string): void {
    const row = this.row(id);
    const user = this.platform.userOf(id);
    const action = actionFor(row, user !== undefined);
    const refusal = this.rules.refusalOf(action, row.state as 'failed', row.person);
    law(refusal === null, `${action} is refused for ${row.code}: ${refusal}`);
    const resolved =
      action === 'link'
        ? this.rules.applyLink(row.person, user?.id ?? '', 'resolved')
        : this.rules.applyResolve(row.person, action, { now: this.moment() });
    const version = row.person.version + 1;
    this.store(id, { ...resolved, version, wantedAt: this.moment(), dueAt: null });
  }

  row(id: string): Row {
    return this.rows.get(id) as Row;
  }

  /** Decides about a person and stores it, and then about those who depend on it. */
  protected store(id: string, known: Person): void {
    const before = this.row(id);
    const person = this.rules.withNextUser(known);
    this.decide({ ...before, person });
    const { state, listed } = this.row(id);
    const isMoved = state !== before.state || listed !== before.listed;
    if (!isMoved && assignableUser(before.person) === assignableUser(person)) return;
    for (const other of this.rows.values()) if (other.id !== id) this.decide(other);
  }

  decide(row: Row): Step {
    const step = this.rules.nextStep(row.person, this.contextOf(row));
    const listed = row.person.appliedProviders ?? row.listed;
    const code = step.do === 'rest' ? step.code : null;
    const person = { ...row.person, dueAt: dueAtOf(row.person, step) };
    this.rows.set(row.id, { ...row, person, listed, state: step.state, code });
    return step;
  }

  protected contextOf({ person, providers }: Row): DecisionContext {
    const isChanging = ({ state }: Row) => state === 'pending' || state === 'waiting';
    const user = person.platformUserId ?? '';
    return {
      ...{ now: this.moment(), held: false, claim: 'held' },
      stillListed: [...this.rows.values()].some((row) => isChanging(row) && row.listed.includes(user)),
      providers: providers.map((externalId) => {
        return { externalId, platformUserId: assignableUser(this.row(externalId).person) };
      }),
    };
  }
}

/** What a careful operator chooses. */
function actionFor({ code, person, state }: Row, hasUser: boolean): ResolveAction {
  if (state === 'failed') return 'retry';
  if (code === 'delete-linked') return 'ignore';
  if (hasUser) return 'link';
  return person.wanted ? 'create' : 'ignore';
}
