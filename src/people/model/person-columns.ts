import type { Attempt, Operation, Person, Refusal } from './person.js';

/** The columns of `people` that hold what is known of a person. */
export interface KnownColumns {
  platform_user_id: string | null;
  role_known: boolean;
  given_primary: string | null;
  lost_creates: number;
  conflicted: boolean;
  checked_absent_at: Date | null;
  /** A client's list on the platform as last known, also while `providers_known` says that it is not. */
  applied_providers: string[];
  providers_known: boolean;
  attempt_call_id: string | null;
  attempt_operation: Operation | null;
  attempt_email: Buffer | null;
  attempt_look_up_at: Date | null;
  fault: Person['fault'];
  review: Person['review'];
  refused_operation: Operation | null;
  refused_at: Date | null;
  failures: number;
  retry_at: Date | null;
}

/** The known side of a person: what the EHR says is never stored with it. */
export type Known = Omit<Person, 'kind' | 'wanted' | 'email'>;

/** A person's known side as it is stored. @param listed the list as last known, kept while it is not known */
export function toColumns(known: Known, listed: string[]): KnownColumns {
  const { attempt } = known;
  return {
    platform_user_id: known.platformUserId,
    role_known: known.roleKnown,
    given_primary: known.givenPrimary,
    lost_creates: known.lostCreates,
    conflicted: known.conflicted,
    checked_absent_at: known.checkedAbsentAt,
    applied_providers: known.appliedProviders ?? listed,
    providers_known: known.appliedProviders !== null,
    attempt_call_id: attempt?.callId ?? null,
    attempt_operation: attempt?.operation ?? null,
    attempt_email: attempt?.email == null ? null : Buffer.from(attempt.email, 'hex'),
    attempt_look_up_at: attempt?.lookUpAt ?? null,
    fault: known.fault,
    review: known.review,
    refused_operation: known.refusal?.operation ?? null,
    refused_at: known.refusal?.at ?? null,
    failures: known.failures,
    retry_at: known.retryAt,
  };
}

/** A person's known side as it was stored. */
export function fromColumns(columns: KnownColumns): Known {
  return {
    platformUserId: columns.platform_user_id,
    roleKnown: columns.role_known,
    givenPrimary: columns.given_primary,
    attempt: attemptOf(columns),
    lostCreates: columns.lost_creates,
    conflicted: columns.conflicted,
    checkedAbsentAt: columns.checked_absent_at,
    appliedProviders: columns.providers_known ? columns.applied_providers : null,
    fault: columns.fault,
    review: columns.review,
    refusal: refusalOf(columns),
    retryAt: columns.retry_at,
    failures: columns.failures,
  };
}

function attemptOf(columns: KnownColumns): Attempt | null {
  const { attempt_call_id: callId, attempt_operation: operation, attempt_look_up_at: lookUpAt } = columns;
  if (callId === null || operation === null || lookUpAt === null) return null;
  return { callId, operation, email: columns.attempt_email?.toString('hex') ?? null, lookUpAt };
}

function refusalOf({ refused_operation: operation, refused_at: at }: KnownColumns): Refusal | null {
  return operation === null || at === null ? null : { operation, at };
}
