import { RESET_ON_WRITE } from '../model/person.js';
import { applyLink, applyResolve } from '../model/resolve-rule.js';
import type { PlatformModel } from './platform-model.spec-support.js';
import { ReconcilerTables } from './reconciler-tables.spec-support.js';
import { ReconcilerWitness } from './reconciler-witness.spec-support.js';

const EMAIL_CONFLICTS = ['email-taken', 'platform-user-taken', 'role-mismatch'];

/** Changes from outside: by the EHR, by an operator, and by events of the platform. */
export abstract class ReconcilerChanges {
  readonly tables = new ReconcilerTables();
  /** True if an operator linked a person, so that two people may claim one user. */
  linkedManually = false;
  protected readonly witness: ReconcilerWitness;

  protected constructor(readonly platform: PlatformModel) {
    this.witness = new ReconcilerWitness(this.tables, platform);
  }

  putProvider(id: string, email: string): void {
    this.tables.afterChange(this.tables.wantPerson(id, 'provider', email));
  }

  /** Names only providers that the EHR sent before, as the API requires. */
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
    row.person = { ...row.person, ...RESET_ON_WRITE };
    row.wantedAt = this.tables.now;
    this.tables.afterChange(row);
  }

  /** Deletes a person, except a provider that clients still name (409). */
  remove(id: string): void {
    const row = this.tables.people.get(id);
    if (!row || this.tables.clientsNaming(id).length > 0) return;
    this.tables.wantAbsence(row);
    this.tables.afterChange(row);
  }

  /** `LegalHolds`: sets or releases a legal hold. */
  hold(id: string, isHeld: boolean): void {
    const row = this.tables.people.get(id);
    if (!row) return;
    row.isHeld = isHeld;
    if (!row.person.wanted && row.state !== 'deleted') this.tables.afterChange(row);
  }

  /** An operator looks at the platform and resolves a person, but never within the grace period. */
  resolve(id: string): void {
    const row = this.tables.people.get(id);
    if (!row || this.platform.nextCommitAt !== null) return;
    // The API answers 409 while the service may still settle the call itself.
    if (row.person.attempt && row.state !== 'needs-review' && row.state !== 'failed') return;
    const user = this.platform.userOf(id);
    const { platformUserId } = row.person;
    const isGone = this.platform.removedByOthers.has(platformUserId ?? '');
    const resolveAs = (action: Parameters<typeof applyResolve>[1]) => {
      row.person = applyResolve(row.person, action, this.tables.context(row));
    };
    const linkOr = (action: 'create' | 'ignore') => {
      if (user) row.person = applyLink(row.person, user.id, 'resolved');
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
    this.linkedManually ||= user !== undefined;
    if (row.person.attempt === null) this.witness.cleared(row);
    this.tables.afterChange(row);
  }

  /** `UserCreatedHandler`: the platform reports a created user, at any time and any number of times. */
  userCreated(choice: number): void {
    const users = [...this.platform.users.values()];
    const user = users[choice % Math.max(1, users.length)];
    if (!user) return;
    const holder = this.tables.all().find(({ person }) => person.platformUserId === user.id);
    if (holder) {
      this.tables.reportedRoles.set(user.id, user.role);
      this.tables.afterChange(holder);
      return;
    }
    const row = this.tables.people.get(user.partnerUserId ?? '');
    if (!row) this.tables.reportedRoles.set(user.id, user.role);
    if (!row || this.tables.heldByAnother(row, user.id) || row.person.platformUserId !== null) return;
    if (!row.person.wanted && row.person.attempt === null) return;
    row.person = applyLink(row.person, user.id, 'event');
    this.witness.cleared(row);
    this.tables.afterChange(row);
  }

  /** An operator resolves every person, and gives people with a shared email their own. */
  settleManually(): void {
    for (const row of this.tables.all()) {
      this.hold(row.id, false);
      if (EMAIL_CONFLICTS.includes(row.code ?? '')) {
        this.tables.wantPerson(row.id, row.kind, ownEmail(row.id));
        this.tables.afterChange(row);
      } else this.resolve(row.id);
    }
  }

  /** Removes a user as the platform's own application does. */
  removeByOthers(choice: number): void {
    const users = [...this.platform.users.keys()];
    const user = users[choice % Math.max(1, users.length)];
    if (user) this.platform.removeByOthers(user);
  }
}

/** A unique email, in hex like a fingerprint. */
function ownEmail(id: string): string {
  return Buffer.from(`own-${id}`).toString('hex');
}
