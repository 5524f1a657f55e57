import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import { Problem } from '../../http/problem/problem.js';
import type { PersonKind, PersonState } from '../model/person.js';

/** The people that a request names, by the ids of the EHR. */
interface PartyNames {
  provider: string;
  client?: string | undefined;
}

/** A person that a request names, as it is now. */
export interface NamedPerson {
  id: string;
  kind: PersonKind;
  externalId: string;
  state: PersonState;
  errorCode: string | null;
  /** False: to be deleted. */
  wanted: boolean;
  platformUserId: string | null;
  /** A client's list on the platform as last applied; null: not known, and for a provider. */
  appliedProviders: string[] | null;
}

/** What was found of the people that a request names. */
export interface Found {
  provider: NamedPerson | undefined;
  /** Null: the request names none. */
  client: NamedPerson | undefined | null;
  /** Whether the EHR's list of the client's providers holds the provider. */
  treats: boolean;
}

/** A person that the platform knows. */
interface Participant {
  id: string;
  externalId: string;
  platformUserId: string;
}

/** A provider, and the client that it treats if the request names one. */
export interface ResolvedParties {
  provider: Participant;
  client: Participant | null;
}

/** The people of a request, found and checked. */
@Injectable()
export class ResolvedPartiesRepository {
  constructor(private readonly database: Database) {}

  /**
   * Finds a provider, and the client that it treats.
   *
   * @param tx where the answer has to hold together with what is written
   * @throws {Problem} as {@link parties}
   */
  async require(
    { provider, client }: PartyNames,
    tx: Pick<PoolClient, 'query'> = this.database.pool,
  ): Promise<ResolvedParties> {
    const { rows } = await tx.query<NamedPerson & { treats: boolean }>(
      `SELECT p.id, p.kind, p.external_id AS "externalId", p.state, p.error_code AS "errorCode", p.wanted,
         p.platform_user_id AS "platformUserId",
         CASE WHEN p.kind = 'client' AND p.providers_known THEN p.applied_providers END AS "appliedProviders",
         EXISTS (SELECT 1 FROM client_providers cp JOIN people q ON q.id = cp.provider_id
                 WHERE cp.client_id = p.id AND q.kind = 'provider' AND q.external_id = $1) AS treats
       FROM people p
       WHERE p.kind = 'provider' AND p.external_id = $1 OR p.kind = 'client' AND p.external_id = $2`,
      [provider, client ?? null],
    );
    const clientRow = rows.find((row) => row.kind === 'client');
    return parties({
      provider: rows.find((row) => row.kind === 'provider'),
      client: client === undefined ? null : clientRow,
      treats: clientRow?.treats ?? false,
    });
  }
}

/**
 * Checks that a provider may act for a client on the platform. Pure.
 *
 * @throws {Problem} 422 `unknown-provider`, `unknown-client` or `not-treated`; 409 `provider-not-mirrored` or
 *   `client-not-mirrored` with the person's `sync` state
 */
export function parties({ provider, client, treats }: Found): ResolvedParties {
  const knownProvider = known(provider, 'provider');
  const knownClient = client === null ? null : known(client, 'client');
  if (knownClient && !treats) {
    const detail = 'The provider does not treat this client; PUT the client with a list that names the provider first.';
    throw new Problem(422, 'not-treated', detail, { pointer: '/client' });
  }
  const mirroredProvider = mirrored(knownProvider);
  if (!knownClient) return { provider: mirroredProvider, client: null };
  const mirroredClient = mirrored(knownClient);
  const listed = knownClient.appliedProviders?.includes(mirroredProvider.platformUserId) ?? false;
  if (knownClient.state !== 'synced' && !listed) throw notMirrored(knownClient);
  return { provider: mirroredProvider, client: mirroredClient };
}

function known(person: NamedPerson | undefined, kind: PersonKind): NamedPerson {
  if (person && person.state !== 'deleted') return person;
  const detail = `The ${kind} is not known; PUT /v1/${kind}s/{externalId} first, or correct the id.`;
  throw new Problem(422, `unknown-${kind}`, detail, { pointer: `/${kind}` });
}

function mirrored(person: NamedPerson): Participant {
  const { id, externalId, platformUserId } = person;
  if (!person.wanted || platformUserId === null) throw notMirrored(person);
  return { id, externalId, platformUserId };
}

function notMirrored({ kind, state, errorCode }: NamedPerson): Problem {
  const detail = `The ${kind} is not on the platform yet (${state}); send the request again once its sync state is synced.`;
  return new Problem(409, `${kind}-not-mirrored`, detail, {
    pointer: `/${kind}`,
    extensions: { sync: { state, code: errorCode } },
  });
}
