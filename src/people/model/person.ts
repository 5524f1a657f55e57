import type { Fault, Review } from './person-codes.js';

/** A provider (a clinician) or a client (a patient), as the platform distinguishes them. */
export type PersonKind = 'provider' | 'client';
export const PERSON_KINDS: PersonKind[] = ['provider', 'client'];

/** What the EHR is shown of a person's way into the platform. */
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

/** A create, a delete or a list that may have reached the platform and whose outcome is not settled. */
export interface Attempt {
  /** Its row in the log of calls. */
  callId: string;
  operation: Operation;
  /** The email that a create sent; null: none, so that no check can find the person. */
  email: Fingerprint | null;
  /** Before this moment nothing is proved by looking: the call may be under way, and the platform may commit late. */
  lookUpAt: Date;
}

/** A refusal that may be the key's or the address's, or this person's own. */
export interface Refusal {
  operation: Operation;
  at: Date;
}

/** One person: what is wanted and what is known. Nothing here is personal data. */
export interface Person {
  kind: PersonKind;
  /** False: to be deleted. */
  wanted: boolean;
  email: Fingerprint | null;
  platformUserId: string | null;
  /** Whether the user is known to be of this kind: made here, named by an event, or confirmed by a human being. */
  roleKnown: boolean;
  attempt: Attempt | null;
  /** Creates in a row that got no answer; a check that finds nobody does not end the row. */
  lostCreates: number;
  /** Whether the last create got a 409, and the email was not found since. */
  conflicted: boolean;
  /** When the platform last said that the wanted email is unknown to it. */
  checkedAbsentAt: Date | null;
  /** A client's list on the platform as last applied; null: not known. */
  appliedProviders: string[] | null;
  fault: Fault | null;
  review: Review | null;
  /** The last call that was refused as everybody's may be, and not answered otherwise since. */
  refusal: Refusal | null;
  /** Not before this moment, after a transient fault. */
  retryAt: Date | null;
  /** Transient faults in a row. */
  failures: number;
}

/** What a person's next step depends on beside the person. */
export interface DecisionContext {
  now: Date;
  /** Whether this person may speak to the platform about its email. */
  claim: 'held' | 'free' | 'taken';
  /** A client's wanted providers, the primary first, and their users as `listableUser` says. */
  providers: { externalId: string; platformUserId: string | null }[];
  /** Whether the platform's last answers were all none: what is sent now may be done unseen. */
  answersMissing: boolean;
  /** For a provider: whether the list of some client on the platform still holds it and is about to change. */
  stillListed: boolean;
}

/** Whether clients' lists may name a provider that they could not name before, or under another user. */
export function becameListable(before: Person | undefined, after: Person): boolean {
  const listable = listableUser(after);
  return listable !== null && listable !== (before ? listableUser(before) : null);
}

/** A provider's user as clients' lists may name it; null: not mirrored, or about to be deleted, or perhaps deleted. */
export function listableUser(provider: Person): string | null {
  return provider.wanted && !provider.attempt ? provider.platformUserId : null;
}
