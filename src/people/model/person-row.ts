import type { Lane } from '../../platform/rate-limit/pacing.js';
import { newestOutcomes, UNANSWERED } from '../../platform/rate-limit/rate-limiter.repository.js';
import type { Lease } from '../../queue/due-rows/lease.js';
import type { DecisionContext, Operation, Person, PersonKind, PersonState, WantedProvider } from './person.js';

/** How a person came by its user: made here, found by the email, named by an event, or linked manually. */
export type Origin = 'created' | 'linked' | 'event' | 'resolved';

/** A person's row with everything that its next step depends on. */
export interface PersonRow {
  id: string;
  kind: PersonKind;
  externalId: string;
  lane: Lane;
  state: PersonState;
  step: string | null;
  errorCode: string | null;
  updatedAt: Date;
  person: Person;
  context: DecisionContext;
  /** A client's list on the platform as last known, also while a change of it is under way. */
  listed: string[];
  wantedAt: Date;
  /** Null while it has none. */
  origin: Origin | null;
  /** The emails that no other person may be looked up or created by. */
  emailClaims: string[];
  lease: Lease | null;
  sealed: {
    profile: Buffer;
    appliedProfile: Buffer | null;
    attemptProfile: Buffer | null;
    inviteUrl: Buffer | null;
    /** Of a client without an email and a user: its primary provider's. */
    primaryProfile: Buffer | null;
    errorText: Buffer | null;
  };
}

/** The observed side of a person: what the EHR says is never stored with it. */
type Known = Omit<Person, 'kind' | 'wanted' | 'email'>;

/** The observed side in its columns. @param listed the list as last known, kept while it is not known */
export function toColumns({ attempt, refusal, ...known }: Known, listed: string[]) {
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
    refused_operation: refusal?.operation ?? null,
    refused_at: refusal?.at ?? null,
    failures: known.failures,
    retry_at: known.retryAt,
  };
}

export type KnownColumns = ReturnType<typeof toColumns>;

/** The observed side from its columns. */
export function fromColumns(columns: KnownColumns): Known {
  const { attempt_call_id: callId, attempt_operation: operation, attempt_look_up_at: lookUpAt } = columns;
  const isOpen = callId !== null && operation !== null && lookUpAt !== null;
  const { refused_operation: refused, refused_at: refusedAt } = columns;
  return {
    platformUserId: columns.platform_user_id,
    roleKnown: columns.role_known,
    givenPrimary: columns.given_primary,
    attempt: isOpen ? { callId, operation, email: columns.attempt_email?.toString('hex') ?? null, lookUpAt } : null,
    lostCreates: columns.lost_creates,
    conflicted: columns.conflicted,
    checkedAbsentAt: columns.checked_absent_at,
    appliedProviders: columns.providers_known ? columns.applied_providers : null,
    fault: columns.fault,
    review: columns.review,
    refusal: refused === null || refusedAt === null ? null : { operation: refused, at: refusedAt },
    retryAt: columns.retry_at,
    failures: columns.failures,
  };
}

/** Reads a person with everything that its next step depends on; append a WHERE about `p`. */
export const SELECT_PERSON = `
  SELECT p.*, encode(p.email_fingerprint, 'hex') AS email, clock_timestamp() AS now,
    (SELECT c.person_id FROM email_claims c WHERE c.fingerprint = p.email_fingerprint) AS claim_holder,
    ARRAY(SELECT encode(c.fingerprint, 'hex') FROM email_claims c WHERE c.person_id = p.id) AS email_claims,
    p.kind = 'client' AND p.email_fingerprint IS NULL AND p.platform_user_id IS NULL AND (
      SELECT count(*) = ${UNANSWERED} AND bool_and(outcome = 'unknown-outcome')
      FROM ${newestOutcomes('true')}) AS answers_missing,
    CASE WHEN p.kind = 'client' AND p.email_fingerprint IS NULL AND p.platform_user_id IS NULL THEN (
      SELECT q.profile FROM client_providers cp JOIN people q ON q.id = cp.provider_id
      WHERE cp.client_id = p.id ORDER BY cp.position LIMIT 1) END AS primary_profile,
    CASE WHEN p.kind = 'client' THEN (
      SELECT json_agg(json_build_object(
          'externalId', q.external_id,
          'platformUserId', CASE WHEN q.wanted AND q.attempt_call_id IS NULL THEN q.platform_user_id END) ORDER BY cp.position)
      FROM client_providers cp JOIN people q ON q.id = cp.provider_id WHERE cp.client_id = p.id) END AS wanted_providers,
    p.kind = 'provider' AND NOT p.wanted AND p.platform_user_id IS NOT NULL AND EXISTS (
      SELECT 1 FROM people c
      WHERE c.applied_providers @> ARRAY[p.platform_user_id] AND c.platform_user_id IS NOT NULL
        AND c.state IN ('pending', 'waiting')) AS still_listed
  FROM people p`;

/** A row of `SELECT_PERSON` as PostgreSQL gives it. */
export interface SelectedPerson extends KnownColumns {
  id: string;
  kind: PersonKind;
  external_id: string;
  lane: Lane;
  state: PersonState;
  wanted: boolean;
  now: Date;
  email: string | null;
  email_claims: string[];
  wanted_at: Date;
  origin: Origin | null;
  claim_holder: string | null;
  wanted_providers: WantedProvider[] | null;
  still_listed: boolean;
  answers_missing: boolean | null;
  step: Operation | null;
  error_code: string | null;
  updated_at: Date;
  lease_owner: string | null;
  lease_no: number;
  profile: Buffer;
  applied_profile: Buffer | null;
  attempt_profile: Buffer | null;
  primary_profile: Buffer | null;
  invite_url: Buffer | null;
  error_text: Buffer | null;
}

/** Takes a row of `SELECT_PERSON` apart into what is wanted, what is known, and the context of the decision. */
export function toPersonRow(selected: SelectedPerson): PersonRow {
  const { id, kind, lane, state, step, ...row } = selected;
  return {
    id,
    kind,
    lane,
    state,
    step,
    listed: row.applied_providers,
    externalId: row.external_id,
    errorCode: row.error_code,
    updatedAt: row.updated_at,
    person: { kind, wanted: row.wanted, email: row.email, ...fromColumns(selected) },
    context: {
      now: row.now,
      claim: row.claim_holder === null ? 'free' : row.claim_holder === id ? 'held' : 'taken',
      providers: row.wanted_providers ?? [],
      stillListed: row.still_listed,
      answersMissing: row.answers_missing ?? false,
    },
    wantedAt: row.wanted_at,
    origin: row.platform_user_id === null ? null : row.origin,
    emailClaims: row.email_claims,
    lease: row.lease_owner === null ? null : { key: id, owner: row.lease_owner, no: row.lease_no },
    sealed: {
      profile: row.profile,
      appliedProfile: row.applied_profile,
      attemptProfile: row.attempt_profile,
      inviteUrl: row.invite_url,
      primaryProfile: row.primary_profile,
      errorText: row.error_text,
    },
  };
}
