import type { UserRole } from '../../src/platform/contract/wire-types.js';
import { type Fields, requiredText } from '../body-fields.js';
import type { SeededRandom } from '../seeded-random.js';

interface Names {
  firstName: string;
  lastName: string;
}

/** The names in a body. @throws Refusal 400 without them */
export const namesOf = (fields: Fields): Names => ({
  firstName: requiredText(fields, 'firstName'),
  lastName: requiredText(fields, 'lastName'),
});

/** A person on the platform. */
export interface User extends Names {
  userId: string;
  role: UserRole;
  email?: string;
  partnerUserId?: string;
  /** A client's providers, the primary one first; empty for all other users. */
  providerUserIds: string[];
}

/** Ids and emails with more than one user, which must never happen to the partner's people. */
interface Duplicates {
  partnerUserIds: string[];
  emails: string[];
}

/** All users of the organisation. */
export class UserDirectory {
  private readonly byId = new Map<string, User>();
  private readonly byEmail = new Map<string, User[]>();
  created = 0;
  deleted = 0;

  constructor(private readonly random: SeededRandom) {}

  add(user: Omit<User, 'userId'>): User {
    const added = { userId: this.random.uuid(), ...user };
    this.byId.set(added.userId, added);
    if (added.email) this.byEmail.set(keyOf(added.email), [...this.withEmail(added.email), added]);
    this.created += 1;
    return added;
  }

  find(userId: string): User | undefined {
    return this.byId.get(userId);
  }

  /** The user with this id and role. */
  findAs(role: UserRole, userId: string): User | undefined {
    const user = this.byId.get(userId);
    return user?.role === role ? user : undefined;
  }

  withEmail(email: string): User[] {
    return this.byEmail.get(keyOf(email)) ?? [];
  }

  /** Deletes the user, also from every client's list of providers. */
  remove(user: User): void {
    this.byId.delete(user.userId);
    if (user.email) {
      const others = this.withEmail(user.email).filter((other) => other !== user);
      this.byEmail.set(keyOf(user.email), others);
    }
    if (user.role === 'HealthcareProvider') {
      for (const client of this.byId.values()) {
        client.providerUserIds = client.providerUserIds.filter((userId) => userId !== user.userId);
      }
    }
    this.deleted += 1;
  }

  list(): User[] {
    return [...this.byId.values()];
  }

  duplicates(): Duplicates {
    return {
      partnerUserIds: repeated(this.list().flatMap(({ partnerUserId }) => partnerUserId ?? [])),
      emails: repeated(this.list().flatMap(({ email }) => (email ? keyOf(email) : []))),
    };
  }
}

/** Emails that differ only in case belong to the same person. */
function keyOf(email: string): string {
  return email.trim().toLowerCase();
}

function repeated(values: readonly string[]): string[] {
  const seen = new Set<string>();
  const twice = new Set<string>();
  for (const value of values) {
    if (seen.has(value)) twice.add(value);
    seen.add(value);
  }
  return [...twice];
}
