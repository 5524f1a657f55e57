import type { Fault, Review } from './person-codes.js';

/** A provider (a clinician) or a client (a patient), as the platform distinguishes them. */
export type PersonKind = 'provider' | 'client';
export const PERSON_KINDS: PersonKind[] = ['provider', 'client'];

/** The progress of mirroring a person, as shown to the EHR. */
export type PersonState = 'pending' | 'waiting' | 'synced' | 'failed' | 'needs-review' | 'deleting' | 'deleted';
export const PERSON_STATES: PersonState[] = [
  'pending',
  'waiting',
  'synced',
  'failed',
  'needs-review',
  'deleting',
  'deleted',
];

/** The calls that mirror people; each is one HTTP attempt (spec, User management). */
export const OPERATIONS = ['checkUser', 'createProvider', 'createClient', 'setClientProviders', 'deleteUser'] as const;
export type Operation = (typeof OPERATIONS)[number];

/** The keyed fingerprint of an email address, in hex. */
type Fingerprint = string;

/** A create, a list or a delete that may have reached the platform and whose outcome is not settled. */
export interface Attempt {
  /** Its row in the log of calls. */
  callId: string;
  operation: Operation;
  /** The email that a create sent; null if none, so that no lookup can find the person. */
  email: Fingerprint | null;
  /** Earliest lookup: until then the call may be in flight, or the platform may commit it late. */
  lookUpAt: Date;
}

/** A refusal caused by the key, by the address, or by this person. */
export interface Refusal {
  operation: Operation;
  at: Date;
}

/** The desired and the known state of a person. Contains no personal data. */
export interface Person {
  kind: PersonKind;
  /** False if it must be deleted. */
  wanted: boolean;
  email: Fingerprint | null;
  platformUserId: string | null;
  /** Whether the role of the user is known: created here, named by an event, or confirmed by an operator. */
  roleKnown: boolean;
  attempt: Attempt | null;
  /** Consecutive creates without an answer; a check that finds no user does not reset it. */
  lostCreates: number;
  /** Whether the last create got a 409, and no check has found the email since. */
  conflicted: boolean;
  /** When the platform last reported the desired email as unknown. */
  checkedAbsentAt: Date | null;
  /** A client's list on the platform, as last applied; null if unknown. */
  appliedProviders: string[] | null;
  fault: Fault | null;
  review: Review | null;
  /** The last refusal that may affect all people; null once the operation gets another answer. */
  refusal: Refusal | null;
  /** Earliest retry after a transient fault. */
  retryAt: Date | null;
  /** Consecutive transient faults. */
  failures: number;
}

/** Everything besides the person that its next step depends on. */
export interface DecisionContext {
  now: Date;
  /** Whether this person may use its email on the platform. */
  claim: 'held' | 'free' | 'taken';
  /** The desired providers of a client, primary first, each with its `listableUser`. */
  providers: { externalId: string; platformUserId: string | null }[];
  /** True if the latest calls got no readable answer, so that a call may take effect without an answer. */
  answersMissing: boolean;
  /** True if a client's list on the platform still contains this provider and is about to change. */
  stillListed: boolean;
}

/** Whether a change made a provider listable, or listable as another user. */
export function becameListable(before: Person | undefined, after: Person): boolean {
  const listable = listableUser(after);
  return listable !== null && listable !== (before ? listableUser(before) : null);
}

/** The user of a provider that clients' lists may name; null if not mirrored, or if being deleted. */
export function listableUser(provider: Person): string | null {
  return provider.wanted && !provider.attempt ? provider.platformUserId : null;
}
