import { applyLink, applyResolve, applyUnlink } from '../model/resolve-rule.js';
import type { ModelUser, PlatformModel } from './platform-model.spec-support.js';
import { ReconcilerTables, type Row } from './reconciler-tables.spec-support.js';
import { ReconcilerWitness } from './reconciler-witness.spec-support.js';

const OWN_EMAIL_HELPS = ['email-taken', 'platform-user-taken', 'role-mismatch'];

/** What others say to the mirror: the EHR, a human being, and the platform by its events. */
export abstract class ReconcilerChanges {
  readonly tables = new ReconcilerTables();
  /** Whether a human being linked somebody: then two people may mean one user. */
  linkedByHand = false;
  protected readonly witness: ReconcilerWitness;

  protected constructor(readonly platform: PlatformModel) {
    this.witness = new ReconcilerWitness(this.tables, platform);
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
    row.wantedAt = this.tables.now;
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
    const { platformUserId } = row.person;
    const isGone = this.platform.removedByOthers.has(platformUserId ?? '');
    const resolveAs = (action: Parameters<typeof applyResolve>[1]) => {
      row.person = applyResolve(row.person, action);
    };
    const linkOr = (action: 'create' | 'ignore') => {
      if (user) row.person = applyLink(row.person, user.id);
      else resolveAs(action);
    };
    if (row.code === 'delete-linked') {
      const role = this.platform.users.get(platformUserId ?? '')?.role;
      resolveAs(role === undefined || role === row.kind ? 'delete' : 'ignore');
    } else if (isGone && row.person.wanted) resolveAs('create');
    else if (row.state === 'failed') resolveAs('retry');
    else if (row.code === 'platform-user-taken' || row.code === 'role-mismatch') resolveAs('retry');
    else if (row.code === 'create-unknown') linkOr('create');
    else if (row.code === 'delete-unknown') linkOr('ignore');
    else return;
    this.linkedByHand ||= user !== undefined;
    if (row.person.attempt === null) this.witness.cleared(row);
    this.tables.afterChange(row);
  }

  /** `UserCreatedHandler`: the platform tells, at any time and any number of times, that a user was created. */
  userCreated(choice: number): void {
    const told = [...this.platform.users.values()];
    const user = told[choice % Math.max(1, told.length)];
    if (!user) return;
    const holder = this.tables.all().find(({ person }) => person.platformUserId === user.id);
    if (holder) {
      this.compareRole(holder, user);
      return;
    }
    const row = this.tables.people.get(user.partnerUserId ?? '');
    if (!row) this.tables.toldRoles.set(user.id, user.role);
    if (!row || this.tables.heldByAnother(row, user.id) || row.person.platformUserId !== null) return;
    if (!row.person.wanted && row.person.attempt === null) return;
    row.person = applyLink(row.person, user.id);
    this.witness.cleared(row);
    this.tables.afterChange(row);
  }

  /** `UserCreatedHandler.compareRole` */
  private compareRole(row: Row, user: ModelUser): void {
    if (row.person.roleKnown) return;
    if (user.role === row.kind) row.person = { ...row.person, roleKnown: true };
    else {
      this.tables.toldRoles.set(user.id, user.role);
      row.person = applyUnlink(row.person);
    }
    this.tables.afterChange(row);
  }

  /** A human being settles everything that is left, and gives whoever shares an email one of its own. */
  settleByHand(): void {
    for (const row of this.tables.all()) {
      if (OWN_EMAIL_HELPS.includes(row.code ?? '')) {
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
}

/** An email that is nobody else's; in hex, as fingerprints are. */
function ownEmail(id: string): string {
  return Buffer.from(`own-${id}`).toString('hex');
}
