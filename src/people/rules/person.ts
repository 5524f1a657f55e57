import { USER_OPERATIONS } from '../../platform/contract/capabilities.js';
import { type CodeOf, codesOf, WORDS } from '../../words/words.js';
import type { Fault, Review } from './person-codes.js';

/** A provider (a clinician) or a client (a patient), as the platform distinguishes them. */
export type PersonKind = 'provider' | 'client';
export const PERSON_KINDS: PersonKind[] = ['provider', 'client'];

/** The progress of mirroring a person, as shown to the EHR. */
export type PersonState = CodeOf<'personState'>;
export const PERSON_STATES = codesOf(WORDS.personState);

/** The calls that mirror people; each is one HTTP attempt (spec, User management). */
export const OPERATIONS = USER_OPERATIONS;
export type Operation = (typeof OPERATIONS)[number];

/** The keyed fingerprint of an email address, in hex. */
type Fingerprint = string;

/** The call in flight. */
export interface Call {
  /** Unique. Only the answer of this call changes the person's state, backoff and records. */
  id: string;
  operation: Operation;
  /** The version of the desired state that it was decided for. */
  version: number;
  /** When it has surely ended, with or without an answer. */
  lookUpAt: Date;
}

/** A create, a list or a deletion that may have reached the platform, and whose outcome is not known. */
export interface Unsettled {
  /** The id of its call. */
  call: string;
  operation: Operation;
  /** The email that a create sent; null if none, so that no lookup can find its user. */
  email: Fingerprint | null;
  /** Earliest lookup: until then it may still take effect. */
  lookUpAt: Date;
}

/** Stands for a create that may have been sent between a backup and its restore. */
export const RESTORED_CALL = '00000000-0000-0000-0000-000000000000';

/** The origin of a person's user: created here, found by its email, named by an event, or linked manually. */
export type Origin = 'created' | 'linked' | 'event' | 'resolved';

/** Whether the role that the platform reported for a user fits its person; null if it reported none. */
export type RoleFit = 'fits' | 'differs' | null;

/** A user on the platform that belongs to a person, besides the one of its row. */
export interface OtherUser {
  id: string;
  origin: Origin;
  role: RoleFit;
}

/** The latest refusal of an operation, until the operation gets another answer. */
export interface Refusal {
  operation: Operation;
  /** The HTTP status. */
  code: number;
  at: Date;
}

/** The desired and the known state of a person. Contains no personal data. */
export interface Person {
  kind: PersonKind;
  /** False if it must be deleted. */
  wanted: boolean;
  /** When the desired state was stored: the person's place among those that are due. */
  wantedAt: Date;
  /** Raised with each change of the desired state. */
  version: number;
  email: Fingerprint | null;
  platformUserId: string | null;
  /** Null without a user. */
  origin: Origin | null;
  /** Of the user. */
  role: RoleFit;
  /** Its other users, such as those of clients merged into it. They are deleted with it, one after the other. */
  others: readonly OtherUser[];
  call: Call | null;
  unsettled: Unsettled | null;
  /** When the platform last reported the desired email as unknown; without an email, when an operator reported it. */
  checkedAbsentAt: Date | null;
  /** A client's list on the platform, as last applied; null if unknown. */
  appliedProviders: string[] | null;
  /** Why the person failed. It is tried once more if `dueAt` is set. */
  fault: Fault | null;
  review: Review | null;
  refused: Refusal | null;
  /** Calls in a row without a result. A check that does not find the user of a lost create keeps them. */
  failures: number;
  /** Not before this time; null: now, at the person's place. */
  dueAt: Date | null;
}

export const NO_USER = { platformUserId: null, origin: null, role: null } as const;

/** The outcomes of earlier calls, which every write by the EHR and every decision of an operator resets. */
export const RESET_ON_WRITE = { fault: null, refused: null, failures: 0, dueAt: null } as const;

/** A provider of a client. */
export interface ListedProvider {
  externalId: string;
  /** Its user, if clients' lists may name it. */
  platformUserId: string | null;
}

/** Everything besides the person that its next step depends on. */
export interface DecisionContext {
  now: Date;
  /** True while a legal hold defers the deletion of a client. */
  held: boolean;
  /** The claim to this person's email: `held` by this person, `free` until it is claimed, or `taken` by another. */
  claim: 'held' | 'free' | 'taken';
  /** The desired providers of a client, primary first. */
  providers: ListedProvider[];
  /** True if a client's list on the platform still contains this provider and is about to change. */
  stillListed: boolean;
}

/** True if a person must claim its email, because a call may be made with it. */
export const needsClaim = ({ wanted, email, platformUserId, unsettled }: Person): boolean =>
  wanted && email !== null && platformUserId === null && !unsettled;

/** True if a call creates a user. Only creates must never be repeated. */
export const isCreate = ({ operation }: Pick<Call, 'operation'>): boolean =>
  operation === 'createProvider' || operation === 'createClient';

/**
 * A person without a user goes on with the next of its others, once no create can name one. Pure. What failed, and what
 * an operator had to decide, was about another user.
 */
export function withNextUser(person: Person): Person {
  const [next, ...others] = person.others;
  if (!next || person.platformUserId !== null || person.unsettled) return person;
  const { id: platformUserId, origin, role } = next;
  const user = { platformUserId, origin, role, others, appliedProviders: null, checkedAbsentAt: null };
  return { ...person, ...RESET_ON_WRITE, ...user, review: null };
}

/** True if a change made a provider assignable, or assignable as another user. */
export function becameAssignable(before: Person | undefined, after: Person): boolean {
  const assignable = assignableUser(after);
  return assignable !== null && assignable !== (before ? assignableUser(before) : null);
}

/** The user of a provider that clients' lists may name; null if not mirrored, or if being deleted. */
export function assignableUser({ wanted, unsettled, platformUserId }: Person): string | null {
  return wanted && !unsettled ? platformUserId : null;
}
