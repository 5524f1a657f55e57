import type { PrismaService } from '../../database/prisma.service.js';
import type { DecisionContext, Operation, Person, PersonState } from '../model/person.js';
import type { Fault, Review } from '../model/person-codes.js';

/** How a person got its user: created here, found by its email, named by an event, or linked manually. */
export type Origin = 'created' | 'linked' | 'event' | 'resolved';

/** A row of `people` as read by Prisma. */
export type StoredPerson = NonNullable<Awaited<ReturnType<PrismaService['person']['findFirst']>>>;

/** A row of `people` with everything that its next step depends on. */
export interface PersonRow extends Omit<StoredPerson, 'state' | 'origin'> {
  state: PersonState;
  /** Null without a user. */
  origin: Origin | null;
  person: Person;
  context: DecisionContext;
  /** The emails claimed by this person. No other person may be looked up or created with them. */
  emailClaims: string[];
  /** The profile of the primary provider, for a client without an email and a user. */
  primaryProfile: Uint8Array | null;
  /** The primary provider's id; null without one. */
  primaryId: string | null;
}

/** The known state of a person, which is stored without the desired state. */
type Known = Omit<Person, 'kind' | 'wanted' | 'email'>;

/** Converts the known state to columns. @param listed the last known list, kept while the list is unknown */
export function toColumns({ attempt, refusal, appliedProviders, ...known }: Known, listed: string[]) {
  return {
    ...known,
    appliedProviders: appliedProviders ?? listed,
    providersKnown: appliedProviders !== null,
    attemptCallId: attempt && BigInt(attempt.callId),
    attemptOperation: attempt?.operation ?? null,
    attemptEmail: attempt?.email == null ? null : new Uint8Array(Buffer.from(attempt.email, 'hex')),
    attemptLookUpAt: attempt?.lookUpAt ?? null,
    refusedOperation: refusal?.operation ?? null,
    refusedAt: refusal?.at ?? null,
  };
}

export type KnownColumns = Pick<StoredPerson, keyof ReturnType<typeof toColumns>>;

/** Converts columns to the known state. */
export function fromColumns(columns: KnownColumns): Known {
  const { attemptCallId: callId, attemptLookUpAt: lookUpAt, refusedAt } = columns;
  const operation = columns.attemptOperation as Operation;
  const email = toHex(columns.attemptEmail);
  return {
    platformUserId: columns.platformUserId,
    roleKnown: columns.roleKnown,
    attempt: callId === null || lookUpAt === null ? null : { callId: String(callId), operation, email, lookUpAt },
    lostCreates: columns.lostCreates,
    conflicted: columns.conflicted,
    checkedAbsentAt: columns.checkedAbsentAt,
    appliedProviders: columns.providersKnown ? columns.appliedProviders : null,
    fault: columns.fault as Fault | null,
    review: columns.review as Review | null,
    refusal: refusedAt && { operation: columns.refusedOperation as Operation, at: refusedAt },
    retryAt: columns.retryAt,
    failures: columns.failures,
  };
}

/** The data of a person that is read besides its own row. */
export type Surroundings = DecisionContext & Pick<PersonRow, 'id' | 'emailClaims' | 'primaryProfile' | 'primaryId'>;

export function toPersonRow(
  stored: StoredPerson,
  { id: _id, emailClaims, primaryProfile, primaryId, ...context }: Surroundings,
): PersonRow {
  const { kind, wanted, emailFingerprint, platformUserId } = stored;
  return {
    ...stored,
    state: shownState(stored.state),
    origin: platformUserId === null ? null : (stored.origin as Origin),
    person: { kind, wanted, email: toHex(emailFingerprint), ...fromColumns(stored) },
    context,
    emailClaims,
    primaryProfile,
    primaryId,
  };
}

function toHex(fingerprint: Uint8Array | null): string | null {
  return fingerprint && Buffer.from(fingerprint).toString('hex');
}

/** Converts a state to its name in the API, because names in Prisma cannot contain hyphens. */
export function shownState(state: StoredPerson['state']): PersonState {
  return state === 'needs_review' ? 'needs-review' : state;
}

export function storedState(state: PersonState): StoredPerson['state'] {
  return state === 'needs-review' ? 'needs_review' : state;
}
