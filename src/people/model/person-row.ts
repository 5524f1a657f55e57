import type { Lane } from '../../platform/rate-limit/pacing.js';
import { newestOutcomes, UNANSWERED } from '../../platform/rate-limit/rate-limiter.repository.js';
import type { Lease } from '../../queue/due-rows/lease.js';
import type { DecisionContext, Person, PersonKind, PersonState, WantedProvider } from './person.js';
import { fromColumns, type KnownColumns } from './person-columns.js';

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
  around: DecisionContext;
  /** A client's list on the platform as last known, also while a change of it is under way. */
  listed: string[];
  wantedAt: Date;
  /** Null while it has none. */
  origin: Origin | null;
  /** Whether it holds the claim of an email that it neither wants nor may have given to the platform. */
  hasStrayClaims: boolean;
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

/** Reads a person with everything that its next step depends on; append a WHERE about `p`. */
export const SELECT_PERSON = `
  SELECT p.*, encode(p.email_fingerprint, 'hex') AS email, clock_timestamp() AS now,
    (SELECT c.person_id FROM email_claims c WHERE c.fingerprint = p.email_fingerprint) AS claim_holder,
    p.platform_user_id IS NULL AND EXISTS (SELECT 1 FROM email_claims c WHERE c.person_id = p.id
      AND c.fingerprint IS DISTINCT FROM p.email_fingerprint AND c.fingerprint IS DISTINCT FROM p.attempt_email) AS has_stray_claims,
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

/** How a person came by its user: made here, found by the email, told by the platform, or linked by a human being. */
export const ORIGINS = ['created', 'linked', 'event', 'resolved'] as const;
export type Origin = (typeof ORIGINS)[number];

/** A row as PostgreSQL gives it. */
export interface RawPerson extends KnownColumns {
  id: string;
  kind: PersonKind;
  external_id: string;
  lane: Lane;
  state: PersonState;
  wanted: boolean;
  now: Date;
  email: string | null;
  has_stray_claims: boolean;
  wanted_at: Date;
  origin: Origin | null;
  claim_holder: string | null;
  wanted_providers: WantedProvider[] | null;
  still_listed: boolean;
  answers_missing: boolean | null;
  primary_profile: Buffer | null;
  step: string | null;
  error_code: string | null;
  updated_at: Date;
  lease_owner: string | null;
  lease_no: number;
  profile: Buffer;
  applied_profile: Buffer | null;
  attempt_profile: Buffer | null;
  invite_url: Buffer | null;
  error_text: Buffer | null;
}

/** A row of `SELECT_PERSON`, taken apart into what is wanted, known and around. */
export function toPersonRow(raw: RawPerson): PersonRow {
  return {
    id: raw.id,
    kind: raw.kind,
    externalId: raw.external_id,
    lane: raw.lane,
    state: raw.state,
    step: raw.step,
    errorCode: raw.error_code,
    updatedAt: raw.updated_at,
    person: { kind: raw.kind, wanted: raw.wanted, email: raw.email, ...fromColumns(raw) },
    around: {
      now: raw.now,
      claim: raw.claim_holder === null ? 'free' : raw.claim_holder === raw.id ? 'held' : 'taken',
      providers: raw.wanted_providers ?? [],
      stillListed: raw.still_listed,
      answersMissing: raw.answers_missing ?? false,
    },
    listed: raw.applied_providers,
    wantedAt: raw.wanted_at,
    origin: raw.platform_user_id === null ? null : raw.origin,
    hasStrayClaims: raw.has_stray_claims,
    lease: raw.lease_owner === null ? null : { key: raw.id, owner: raw.lease_owner, no: raw.lease_no },
    sealed: {
      profile: raw.profile,
      appliedProfile: raw.applied_profile,
      attemptProfile: raw.attempt_profile,
      inviteUrl: raw.invite_url,
      primaryProfile: raw.primary_profile,
      errorText: raw.error_text,
    },
  };
}
