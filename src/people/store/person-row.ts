import type { Person as PrismaPerson } from '../../generated/prisma/client.js';
import {
  type DecisionContext,
  type Operation,
  type Origin,
  type OtherUser,
  type Person,
  type PersonState,
} from '../rules/person.js';
import type { Fault, Review } from '../rules/person-codes.js';
import { roleFit } from './platform-users.repository.js';

/** A row of `people`. */
export type StoredPerson = Omit<PrismaPerson, 'state'> & { state: PersonState };

/** Everything besides its own row that the next step of a person depends on. */
export type Surroundings = Omit<DecisionContext, 'held'> & {
  /** The role that the platform reported for its user. */
  role: string | null;
  others: (Omit<OtherUser, 'role'> & { role: string | null })[];
  /** The emails claimed by this person. No other person may be looked up or created with them. */
  emailClaims: string[];
  /** Why its newest call got no readable answer. */
  answerFault: string | null;
};

/** A row of `people` with everything that its next step depends on. */
export interface PersonRow extends StoredPerson, Pick<Surroundings, 'answerFault' | 'emailClaims'> {
  /** External ids of a client's providers, in order. */
  providers: string[];
  person: Person;
  context: DecisionContext;
}

/** Converts the known state to fields. @param listed the last known list, kept while the list is unknown */
export function toFields({ call, unsettled, refused, appliedProviders, ...known }: Person, listed: string[]) {
  return {
    platformUserId: known.platformUserId,
    ...{ origin: known.origin, checkedAbsentAt: known.checkedAbsentAt },
    ...{ fault: known.fault, review: known.review, failures: known.failures },
    appliedProviders: appliedProviders ?? listed,
    providersKnown: appliedProviders !== null,
    callId: call?.id ?? null,
    callOperation: call?.operation ?? null,
    callVersion: call?.version ?? null,
    callLookUpAt: call?.lookUpAt ?? null,
    unsettledCall: unsettled?.call ?? null,
    unsettledOperation: unsettled?.operation ?? null,
    unsettledEmail: unsettled?.email == null ? null : fromHex(unsettled.email),
    unsettledLookUpAt: unsettled?.lookUpAt ?? null,
    refusedOperation: refused?.operation ?? null,
    refusedCode: refused?.code ?? null,
    refusedAt: refused?.at ?? null,
  };
}

/** Reads the desired and the known state of a row. */
export function toPerson(row: StoredPerson): Omit<Person, 'role' | 'others'> {
  const { callId, unsettledCall, refusedAt, kind, wanted, wantedAt } = row;
  const call = { operation: row.callOperation as Operation, version: row.callVersion ?? 0 };
  const unsettled = { operation: row.unsettledOperation as Operation, email: toHex(row.unsettledEmail) };
  return {
    ...{ kind, wanted, wantedAt, version: row.wantedVersion, email: toHex(row.emailFingerprint) },
    platformUserId: row.platformUserId,
    origin: row.platformUserId === null ? null : (row.origin as Origin),
    call: callId === null ? null : { id: callId, ...call, lookUpAt: row.callLookUpAt as Date },
    unsettled:
      unsettledCall === null ? null : { call: unsettledCall, ...unsettled, lookUpAt: row.unsettledLookUpAt as Date },
    checkedAbsentAt: row.checkedAbsentAt,
    appliedProviders: row.providersKnown ? row.appliedProviders : null,
    fault: row.fault as Fault | null,
    review: row.review as Review | null,
    refused: refusedAt && { operation: row.refusedOperation as Operation, code: row.refusedCode ?? 0, at: refusedAt },
    failures: row.failures,
    dueAt: row.dueAt,
  };
}

/** A row with what its next step depends on. */
export function toPersonRow(
  stored: StoredPerson,
  { emailClaims, answerFault, role, others, ...context }: Surroundings,
): PersonRow {
  return {
    ...stored,
    providers: context.providers.map(({ externalId }) => externalId),
    person: {
      ...toPerson(stored),
      role: roleFit(stored.kind, role),
      others: others.map((other) => ({ ...other, role: roleFit(stored.kind, other.role) })),
    },
    context: { ...context, held: stored.heldAt !== null },
    emailClaims,
    answerFault,
  };
}

export function toHex(fingerprint: Uint8Array | null): string | null {
  return fingerprint === null ? null : Buffer.from(fingerprint).toString('hex');
}

const fromHex = (text: string): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.from(text, 'hex'));

/**
 * The claims of a person that it no longer needs. One with a user keeps all of them, and one without keeps the desired email
 * and the one that an open create may have sent to the platform.
 */
export function strayClaims({ emailClaims, person }: PersonRow): string[] {
  const { platformUserId, wanted, email, unsettled } = person;
  if (platformUserId !== null) return [];
  return emailClaims.filter((claim) => claim !== unsettled?.email && !(wanted && claim === email));
}
