import { Injectable } from '@nestjs/common';
import type { Pool, PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import { Problem } from '../../http/problem/problem.js';
import type { PersonKind } from '../model/person.js';
import type { PersonKey } from '../model/profile.js';
import { FormerIdsRepository } from './former-ids.repository.js';
import type { StoredPerson } from './person-row.js';
import { UpcomingPeople } from './upcoming-people.js';

/** The current state of a person that a request names. */
export type NamedPerson = Pick<StoredPerson, 'id' | 'kind' | 'externalId' | 'state' | 'errorCode' | 'wanted'> &
  Pick<StoredPerson, 'platformUserId' | 'providersKnown' | 'appliedProviders'>;

const FIND = `SELECT id, kind, external_id AS "externalId", state, error_code AS "errorCode", wanted,
    platform_user_id AS "platformUserId", providers_known AS "providersKnown", applied_providers AS "appliedProviders"
  FROM people WHERE kind = $1 AND external_id = $2`;

/** A provider, and its client if the request names one. */
export type ResolvedParties = ReturnType<typeof checkParties>;

/** Finds and checks the people of a request. */
@Injectable()
export class ResolvedPartiesRepository {
  constructor(
    private readonly database: Database,
    private readonly formerIds: FormerIdsRepository,
    private readonly upcoming: UpcomingPeople,
  ) {}

  /**
   * Finds a provider and its client by the ids of the EHR.
   *
   * @param tx the transaction that relies on the result, if any
   * @throws {Problem} as {@link checkParties}; 409 `renamed` or `merged` if one of the ids is a former one
   */
  async require(names: { provider: string; client?: string | undefined }, tx?: PoolClient): Promise<ResolvedParties> {
    await this.formerIds.refuse('provider', [names.provider], tx, () => '/provider');
    await this.formerIds.refuse('client', names.client === undefined ? [] : [names.client], tx, () => '/client');
    const sql = tx ?? this.database.pool;
    const provider = await this.find(sql, { kind: 'provider', externalId: names.provider });
    const client =
      names.client === undefined ? undefined : await this.find(sql, { kind: 'client', externalId: names.client });
    const treats = await sql.query('SELECT 1 FROM client_providers WHERE client_id = $1 AND provider_id = $2', [
      client?.id ?? null,
      provider?.id ?? null,
    ]);
    return checkParties(provider, client, treats.rowCount === 1);
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
    const known = requireKnown(await this.find(this.database.pool, person, pointer), person.kind, pointer);
    return requireMirrored(known, pointer).platformUserId;
  }

  /** @throws {Problem} 409 if an import will bring the person */
  private async find(sql: Pick<Pool, 'query'>, key: PersonKey, pointer?: string): Promise<NamedPerson | null> {
    const [known] = (await sql.query<NamedPerson>(FIND, [key.kind, key.externalId])).rows;
    if (known && known.state !== 'deleted') return known;
    if (await this.upcoming.find(key))
      throw notMirrored({ ...key, state: 'pending', errorCode: 'waits-in-import' }, pointer);
    return known ?? null;
  }
}

/**
 * Checks that a provider may act for a client on the platform. Pure.
 *
 * @param client undefined if the request names none, null if it is unknown
 * @param treats true if the EHR's list of the client's providers contains the provider
 * @throws {Problem} 422 `unknown-provider`, `unknown-client` or `not-treated`; 409 `provider-not-mirrored` or
 *   `client-not-mirrored` with the person's `sync` state
 */
export function checkParties(provider: NamedPerson | null, client: NamedPerson | null | undefined, treats: boolean) {
  const knownProvider = requireKnown(provider, 'provider');
  const knownClient = client === undefined ? null : requireKnown(client, 'client');
  if (knownClient && !treats) {
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

function requireKnown(person: NamedPerson | null, kind: PersonKind, pointer = `/${kind}`): NamedPerson {
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
