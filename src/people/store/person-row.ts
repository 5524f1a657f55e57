import type { PrismaService } from '../../database/prisma.service.js';
import type { DecisionContext, Operation, Person, PersonState } from '../model/person.js';
import type { Fault, Review } from '../model/person-codes.js';

/** How a person came by its user: made here, found by the email, named by an event, or linked manually. */
export type Origin = 'created' | 'linked' | 'event' | 'resolved';

/** A row of `people` as Prisma reads it. */
export type StoredPerson = NonNullable<Awaited<ReturnType<PrismaService['person']['findFirst']>>>;

/** A person's row with everything that its next step depends on. */
export interface PersonRow extends Omit<StoredPerson, 'state' | 'origin'> {
  state: PersonState;
  /** Null while it has no user. */
  origin: Origin | null;
  person: Person;
  context: DecisionContext;
  /** The emails that no other person may be looked up or created by. */
  emailClaims: string[];
  /** Of a client without an email and a user: its primary provider's. */
  primaryProfile: Uint8Array | null;
}

/** The observed side of a person: what the EHR says is never stored with it. */
type Known = Omit<Person, 'kind' | 'wanted' | 'email'>;

/** The observed side in its columns. @param listed the list as last known, kept while it is not known */
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

/** The observed side from its columns. */
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

/** What is read of a person beside its own row. */
export type Surroundings = DecisionContext & Pick<PersonRow, 'id' | 'emailClaims' | 'primaryProfile'>;

export function toPersonRow(
  stored: StoredPerson,
  { id: _id, emailClaims, primaryProfile, ...context }: Surroundings,
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
  };
}

/** A fingerprint as persons hold it. */
function toHex(fingerprint: Uint8Array | null): string | null {
  return fingerprint && Buffer.from(fingerprint).toString('hex');
}

/** A state as the API spells it: names in Prisma have no hyphens. */
export function shownState(state: StoredPerson['state']): PersonState {
  return state === 'needs_review' ? 'needs-review' : state;
}

export function storedState(state: PersonState): StoredPerson['state'] {
  return state === 'needs-review' ? 'needs_review' : state;
}
