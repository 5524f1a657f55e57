import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import { type NamedPerson, parties, type ResolvedParties } from '../model/resolved-parties.js';

/** Whom a request names, by the ids of the EHR. */
export interface PartyNames {
  provider: string;
  client?: string | undefined;
}

/** The people of a request, found and judged. */
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
