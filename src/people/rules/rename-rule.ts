import { Problem } from '../../http/problem/problem.js';
import { isCreate, type Person } from './person.js';
import { applyLink } from './resolve-rule.js';

/** A person as far as its ids go. */
export interface NamedPerson {
  id: string;
  externalId: string;
  /** The unmerged client that represents this one; null if this one is not merged. */
  mergedInto: string | null;
}

/** An id that is never used for another person. */
export interface FormerId {
  externalId: string;
  /** The person that had the id, and still has it if it was merged. */
  personId: string;
  /** The client that the person was merged into; null if it was renamed. */
  intoId: string | null;
  /** The platform user of a merged client at the merge. */
  userId: string | null;
}

/** People with all their former ids. */
export interface Identities {
  people: NamedPerson[];
  formerIds: FormerId[];
}

/** Gives a person another id. Pure. */
export function renamed({ people, formerIds }: Identities, id: string, externalId: string): Identities {
  const former = people.filter((person) => person.id === id).map((person) => person.externalId);
  return {
    people: people.map((person) => (person.id === id ? { ...person, externalId } : person)),
    formerIds: [...formerIds, ...former.map((old) => ({ externalId: old, personId: id, intoId: null, userId: null }))],
  };
}

/** Lets one client represent another, and those that were merged into that one. Pure. */
export function merged(
  { people, formerIds }: Identities,
  id: string,
  intoId: string,
  userId: string | null,
): Identities {
  const former = people.filter((person) => person.id === id).map(({ externalId }) => externalId);
  return {
    people: people.map((person) =>
      person.id === id || person.mergedInto === id ? { ...person, mergedInto: intoId } : person,
    ),
    formerIds: [...formerIds, ...former.map((externalId) => ({ externalId, personId: id, intoId, userId }))],
  };
}

/** Undoes a merge. The clients that were merged into this one before leave with it. Pure. */
export function unmerged({ people, formerIds }: Identities, id: string): Identities {
  const leaving = new Set([id]);
  // A set grows while it is iterated, so that this reaches merges of merges.
  for (const parent of leaving) for (const one of formerIds) if (one.intoId === parent) leaving.add(one.personId);
  return {
    people: people.map((person) =>
      leaving.has(person.id) ? { ...person, mergedInto: person.id === id ? null : id } : person,
    ),
    formerIds: formerIds.filter(({ personId, intoId }) => personId !== id || intoId === null),
  };
}

/** The outcome for the platform user of a merged client. */
export type MergedUser = 'none' | 'taken-over' | 'kept' | 'deleted';

/**
 * Decides about the platform user of a merged client. A survivor with a user, or with a create that may make one, keeps
 * its own, because a person has at most one. Pure.
 */
export function mergedUser(client: Person, survivor: Person, deletePlatformUser: boolean): MergedUser {
  if (client.platformUserId === null) return 'none';
  if (survivor.platformUserId === null && !survivor.unsettled) return 'taken-over';
  return deletePlatformUser ? 'deleted' : 'kept';
}

/** Gives the user of a merged client to its survivor, with everything known about it. Pure. */
export function takeOver(survivor: Person, { platformUserId, ...client }: Person): Person {
  if (platformUserId === null) return survivor;
  const { origin, unsettled, appliedProviders, review } = client;
  return { ...applyLink(survivor, platformUserId, origin ?? 'resolved'), unsettled, appliedProviders, review };
}

/** Takes a user away that is given back to the client it came from. Pure. */
export function giveBack(survivor: Person): Person {
  const nothing = { platformUserId: null, origin: null, unsettled: null, checkedAbsentAt: null, review: null };
  return { ...survivor, ...nothing, appliedProviders: null };
}

/** Reasons why clients cannot be merged now. */
const REFUSALS = {
  'client-deleted': 'This client was deleted. PUT it again first.',
  'call-under-way': 'A create or deletion of this client is not settled. Repeat the merge once it is.',
  'session-requested': 'A session of this client was requested, and is not settled. Repeat the merge once it is.',
};

/**
 * Checks that a client can be merged: no create may make a user later, and no session be made for the wrong client.
 *
 * @throws {Problem} 409 `client-deleted`, `call-under-way` or `session-requested`
 */
export function checkMerge(client: Person, isSessionRequested: boolean): void {
  const refusal = mergeRefusal(client, isSessionRequested);
  if (refusal) throw new Problem(refusal, REFUSALS[refusal]);
}

function mergeRefusal({ wanted, unsettled }: Person, isSessionRequested: boolean): keyof typeof REFUSALS | null {
  if (!wanted) return 'client-deleted';
  if (unsettled && (isCreate(unsettled) || unsettled.operation === 'deleteUser')) return 'call-under-way';
  return isSessionRequested ? 'session-requested' : null;
}
