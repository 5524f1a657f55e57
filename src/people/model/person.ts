import { type CodeOf, codesOf, WORDS } from '../../words/words.js';
import type { Breakers } from './circuit-breaker.js';
import type { Fault, Review } from './person-codes.js';

/** A provider (a clinician) or a client (a patient), as the platform distinguishes them. */
export type PersonKind = 'provider' | 'client';
export const PERSON_KINDS: PersonKind[] = ['provider', 'client'];

/** The progress of mirroring a person, as shown to the EHR. */
export type PersonState = CodeOf<'personState'>;
export const PERSON_STATES = codesOf(WORDS.personState);

/** The calls that mirror people; each is one HTTP attempt (spec, User management). */
export const OPERATIONS = ['checkUser', 'createProvider', 'createClient', 'setClientProviders', 'deleteUser'] as const;
export type Operation = (typeof OPERATIONS)[number];

/** The keyed fingerprint of an email address, in hex. */
type Fingerprint = string;

/** A create, a list or a delete that may have reached the platform and whose outcome is not settled. */
export interface Attempt {
  /** Its row in the log of calls, or `RESTORED_CALL`. */
  callId: string;
  operation: Operation;
  /** The email that a create sent; null if none, so that no lookup can find the person. */
  email: Fingerprint | null;
  /** Earliest lookup: until then the call may be in flight, or the platform may commit it late. */
  lookUpAt: Date;
}

/** Stands for a create that may have been sent between a backup and its restore. The log of calls has no such row. */
export const RESTORED_CALL = '0';

/** The origin of a person's user: created here, found by its email, named by an event, or linked manually. */
export type Origin = 'created' | 'linked' | 'event' | 'resolved';

/**
 * The latest refusal of an operation, until the operation gets another answer. `rejected`: a 4xx about this person.
 * `stopped`: an answer that stops the operation for everyone. `doubtful`: a 404 that may come from a wrong URL.
 */
export interface Refusal {
  operation: Operation;
  kind: 'rejected' | 'stopped' | 'doubtful';
  at: Date;
  /** Refusals in a row. */
  count: number;
}

/** The desired and the known state of a person. Contains no personal data. */
export interface Person {
  kind: PersonKind;
  /** False if it must be deleted. */
  wanted: boolean;
  email: Fingerprint | null;
  platformUserId: string | null;
  /** Null without a user. */
  origin: Origin | null;
  attempt: Attempt | null;
  /** When the platform last reported the desired email as unknown; without an email, when an operator reported it. */
  checkedAbsentAt: Date | null;
  /** A client's list on the platform, as last applied; null if unknown. */
  appliedProviders: string[] | null;
  fault: Fault | null;
  review: Review | null;
  refusal: Refusal | null;
  /** Earliest retry after a transient fault or a refusal. */
  retryAt: Date | null;
  /** Consecutive transient faults. A check that does not find the user of a lost create keeps them. */
  failures: number;
}

/** The outcomes of earlier calls, which every write by the EHR and every decision of an operator resets. */
export const RESET_ON_WRITE = { fault: null, refusal: null, retryAt: null, failures: 0 } as const;

/** Everything besides the person that its next step depends on. */
export interface DecisionContext {
  now: Date;
  /** True while a legal hold defers the deletion of a client. */
  held: boolean;
  /** The claim to this person's email on the platform: `held` by this person, `free`, or `taken` by another. */
  claim: 'held' | 'free' | 'taken';
  /** The desired providers of a client, primary first, each with its `assignableUser`. */
  providers: { externalId: string; platformUserId: string | null }[];
  /** True if a client's list on the platform still contains this provider and is about to change. */
  stillListed: boolean;
  /** The role that the platform reported for the user of a person to delete; null if none. */
  role: 'fits' | 'differs' | null;
  /** True if the platform has another user with the external id of a person to delete. */
  hasSecondUser: boolean;
  /** True if the database may be a restored backup, until the release: creates may have been sent after the backup. */
  restored: boolean;
  breakers: Breakers;
  /** The digest of the base URL to which calls are sent. */
  base: string;
}

/** True if a change made a provider assignable, or assignable as another user. */
export function becameAssignable(before: Person | undefined, after: Person): boolean {
  const assignable = assignableUser(after);
  return assignable !== null && assignable !== (before ? assignableUser(before) : null);
}

/** The user of a provider that clients' lists may name; null if not mirrored, or if being deleted. */
export function assignableUser(provider: Person): string | null {
  return provider.wanted && !provider.attempt ? provider.platformUserId : null;
}
