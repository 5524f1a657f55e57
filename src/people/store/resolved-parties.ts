import { Injectable } from '@nestjs/common';
import type { Tx } from '../../database/prisma.service.js';
import { Problem } from '../../http/problem/problem.js';
import type { PersonKind } from '../rules/person.js';
import type { PersonKey } from '../rules/profile.js';
import { FormerIdsRepository } from './former-ids.repository.js';
import { PeopleRepository } from './people.repository.js';
import type { PersonRow } from './person-row.js';

/** The current state of a person that a request names. */
export type NamedPerson = Pick<PersonRow, 'id' | 'kind' | 'externalId' | 'state' | 'errorCode' | 'wanted'> &
  Pick<PersonRow, 'platformUserId' | 'providersKnown' | 'appliedProviders' | 'providers'>;

/** A provider, and its client if the request names one. */
export type ResolvedParties = ReturnType<typeof checkParties>;

/** Finds and checks the people of a request. */
@Injectable()
export class ResolvedPartiesRepository {
  constructor(
    private readonly people: PeopleRepository,
    private readonly formerIds: FormerIdsRepository,
  ) {}

  /**
   * Finds a provider and its client by the ids of the EHR.
   *
   * @param tx the transaction that relies on the result, if any
   * @throws {Problem} as {@link checkParties}; 409 `renamed` or `merged` if one of the ids is a former one
   */
  async require(names: { provider: string; client?: string | undefined }, tx?: Tx): Promise<ResolvedParties> {
    await this.formerIds.refuse('provider', [names.provider], tx, () => '/provider');
    await this.formerIds.refuse('client', names.client === undefined ? [] : [names.client], tx, () => '/client');
    const provider = await this.people.find({ kind: 'provider', externalId: names.provider }, tx);
    if (names.client === undefined) return checkParties(provider);
    const client = await this.people.find({ kind: 'client', externalId: names.client }, tx);
    return checkParties(provider, client ?? null);
  }

  /**
   * Finds the platform user of a person.
   *
   * @param pointer of the person in the body
   * @throws {Problem} 422 `unknown-provider` or `unknown-client`; 409 `provider-not-mirrored`, `client-not-mirrored`,
   *   `renamed` or `merged`
   */
  async userOf(person: PersonKey, pointer: string): Promise<string> {
    await this.formerIds.refuse(person.kind, [person.externalId], undefined, () => pointer);
    const { kind, externalId } = person;
    const known = requireKnown(await this.people.find({ kind, externalId }), kind, pointer);
    return requireMirrored(known, pointer).platformUserId;
  }
}

/**
 * Checks that a provider may act for a client on the platform. Pure.
 *
 * @param client undefined if the request names none, null if it is unknown
 * @throws {Problem} 422 `unknown-provider`, `unknown-client` or `not-treated`; 409 `provider-not-mirrored` or
 *   `client-not-mirrored` with the person's `sync` state
 */
export function checkParties(provider: NamedPerson | undefined, client?: NamedPerson | null) {
  const knownProvider = requireKnown(provider, 'provider');
  const knownClient = client === undefined ? null : requireKnown(client, 'client');
  if (knownClient && !knownClient.providers.includes(knownProvider.externalId)) {
    const detail = 'The provider does not treat this client. First PUT the client with a list that names the provider.';
    throw new Problem('not-treated', detail, { pointer: '/client' });
  }
  const mirroredProvider = requireMirrored(knownProvider);
  if (!knownClient) return { provider: mirroredProvider, client: null };
  const mirroredClient = requireMirrored(knownClient);
  const { providersKnown, appliedProviders, state } = knownClient;
  const isListed = providersKnown && appliedProviders.includes(mirroredProvider.platformUserId);
  if (state !== 'synced' && !isListed) throw notMirrored(knownClient);
  return { provider: mirroredProvider, client: mirroredClient };
}

function requireKnown(person: NamedPerson | null | undefined, kind: PersonKind, pointer = `/${kind}`): NamedPerson {
  if (person && person.state !== 'deleted') return person;
  const detail = `The ${kind} is unknown. PUT /v1/${kind}s/{externalId} first, or correct the id.`;
  throw new Problem(`unknown-${kind}`, detail, { pointer });
}

function requireMirrored(person: NamedPerson, pointer = `/${person.kind}`) {
  const { id, externalId, platformUserId } = person;
  if (!person.wanted || platformUserId === null) throw notMirrored(person, pointer);
  return { id, externalId, platformUserId };
}

function notMirrored(
  { kind, state, errorCode }: Pick<NamedPerson, 'kind' | 'state' | 'errorCode'>,
  pointer = `/${kind}`,
): Problem {
  const detail = `The ${kind} is not on the platform yet (${state}). Repeat the request once its sync state is synced.`;
  return new Problem(`${kind}-not-mirrored`, detail, {
    pointer,
    extensions: { sync: { state, code: errorCode } },
  });
}
