import { type Fields, PERSON_COLUMNS } from '../../database/columns.js';
import type { Breakers } from '../model/circuit-breaker.js';
import {
  type DecisionContext,
  type Operation,
  type Origin,
  type Person,
  type PersonState,
  RESET_ON_WRITE,
  RESTORED_CALL,
  type Refusal,
} from '../model/person.js';
import type { Fault, Review } from '../model/person-codes.js';

/** A row of `people` as read by SQL. */
export type StoredPerson = Omit<Fields<'Person'>, 'state'> & { state: PersonState };

const { refusal: _, ...RESET } = RESET_ON_WRITE;
const RESET_FIELDS = { ...RESET, refusedOperation: null, refusalKind: null, refusedAt: null, refusals: 0 };

/** SQL assignments of `RESET_ON_WRITE`. */
export const RESET_ASSIGNMENTS = Object.entries(RESET_FIELDS)
  .map(([field, value]) => `${PERSON_COLUMNS[field as keyof StoredPerson]} = ${value ?? 'NULL'}`)
  .join(', ');

/** SQL assignments of a create that may have been sent between a backup and its restore. */
export const RESTORED_ATTEMPT = `attempt_call_id = ${RESTORED_CALL}, attempt_operation = 'createClient', attempt_email = NULL,
  attempt_profile = NULL, attempt_look_up_at = clock_timestamp()`;

/** Everything besides its own row that the next step of a person depends on, and the emails that it claims. */
type Surroundings = Omit<DecisionContext, 'base' | 'held'> & { emailClaims: string[] };

/** The fields of a person that the API shows. */
export const SHOWN_FIELDS = [
  ...(['id', 'kind', 'externalId', 'wanted', 'platformUserId', 'origin', 'state', 'step', 'updatedAt'] as const),
  ...(['heldAt', 'inviteUrl', 'profile', 'appliedProfile', 'errorCode', 'errorText'] as const),
];

/** The fields of a person that the API shows. */
export type ShownPerson = Pick<StoredPerson, (typeof SHOWN_FIELDS)[number]> & {
  /** External ids of a client's providers, in order. */
  providers: string[];
  /** Why its newest call got no readable answer. */
  answerFault: string | null;
};

/** A row of `people` with everything that its next step depends on. */
export interface PersonRow extends StoredPerson, Pick<ShownPerson, 'answerFault'> {
  providers: string[];
  person: Person;
  context: DecisionContext;
  /** The emails claimed by this person. No other person may be looked up or created with them. */
  emailClaims: string[];
}

/** The known state of a person, which is stored without the desired state. */
type Known = Omit<Person, 'kind' | 'wanted' | 'email'>;

/** Converts the known state to fields. @param listed the last known list, kept while the list is unknown */
export function toFields({ attempt, refusal, appliedProviders, ...known }: Known, listed: string[]) {
  return {
    ...known,
    appliedProviders: appliedProviders ?? listed,
    providersKnown: appliedProviders !== null,
    attemptCallId: attempt?.callId ?? null,
    attemptOperation: attempt?.operation ?? null,
    attemptEmail: attempt?.email == null ? null : Buffer.from(attempt.email, 'hex'),
    attemptLookUpAt: attempt?.lookUpAt ?? null,
    refusedOperation: refusal?.operation ?? null,
    refusalKind: refusal?.kind ?? null,
    refusedAt: refusal?.at ?? null,
    refusals: refusal?.count ?? 0,
  };
}

export type KnownFields = Pick<StoredPerson, keyof ReturnType<typeof toFields>>;

/** Converts fields to the known state. */
export function fromFields(fields: KnownFields): Known {
  const { attemptCallId: callId, attemptLookUpAt: lookUpAt, refusedAt } = fields;
  const operation = fields.attemptOperation as Operation;
  const email = toHex(fields.attemptEmail);
  return {
    platformUserId: fields.platformUserId,
    origin: fields.platformUserId === null ? null : (fields.origin as Origin),
    attempt: callId === null || lookUpAt === null ? null : { callId, operation, email, lookUpAt },
    checkedAbsentAt: fields.checkedAbsentAt,
    appliedProviders: fields.providersKnown ? fields.appliedProviders : null,
    fault: fields.fault as Fault | null,
    review: fields.review as Review | null,
    refusal: refusedAt && {
      operation: fields.refusedOperation as Operation,
      kind: fields.refusalKind as Refusal['kind'],
      at: refusedAt,
      count: fields.refusals,
    },
    retryAt: fields.retryAt,
    failures: fields.failures,
  };
}

/** @param base the digest of the platform's base URL */
export function toPersonRow(
  read: StoredPerson & Surroundings & { breakers: Breakers | null } & Pick<ShownPerson, 'answerFault'>,
  base: string,
): PersonRow {
  const { now, claim, providers, stillListed, role, hasSecondUser, restored, breakers, emailClaims, ...stored } = read;
  const { kind, wanted, emailFingerprint } = stored;
  return {
    ...stored,
    providers: providers.map(({ externalId }) => externalId),
    person: { kind, wanted, email: toHex(emailFingerprint), ...fromFields(stored) },
    context: {
      now,
      held: stored.heldAt !== null,
      claim,
      providers,
      stillListed,
      role,
      hasSecondUser,
      restored,
      breakers: breakers ?? {},
      base,
    },
    emailClaims,
  };
}

function toHex(fingerprint: Buffer | null): string | null {
  return fingerprint?.toString('hex') ?? null;
}
