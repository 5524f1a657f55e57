import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { PROVIDERS_MAX } from '../people/person-rules.js';
import type { ImportRecord } from './import-types.js';
import { knownPersonKeys } from './read/reference-key.js';
import { ReferenceKeys } from './reference-keys.js';

/** References between the FHIR resources of one import. */
@Injectable()
export class ReferencesRepository {
  constructor(private readonly keys: ReferenceKeys) {}

  /**
   * Gives the pending clients of an import their providers from the links of FHIR, and forgets the facts: the rule of
   * `resolveProviders` in SQL, where the references may also mean providers known before.
   */
  async resolve(tx: PoolClient, record: Pick<ImportRecord, 'id' | 'idSystems'>): Promise<void> {
    await this.nameKnownProviders(tx, record);
    await tx.query('ANALYZE import_facts');
    await tx.query(
      `WITH facts AS MATERIALIZED (SELECT * FROM import_facts WHERE import_id = $1),
       clients AS (
         SELECT key, min(target) AS target FROM facts WHERE type = 'alias' GROUP BY key HAVING count(DISTINCT target) = 1),
       provider_keys AS (
         SELECT key, target FROM facts WHERE type = 'alias' AND kind = 'provider'
         UNION SELECT r.key, a.target FROM facts r JOIN facts a ON a.type = 'alias' AND a.key = r.target WHERE r.type = 'role'),
       providers AS (
         SELECT key, min(target) AS target FROM provider_keys GROUP BY key HAVING count(DISTINCT target) = 1),
       named AS (
         SELECT c.target AS client, p.target AS provider, l.rank, l.at, l.position
         FROM facts l JOIN clients c ON c.key = l.key JOIN providers p ON p.key = l.target WHERE l.type = 'link'),
       best AS (
         SELECT DISTINCT ON (client, provider) * FROM named
         ORDER BY client, provider, rank, at DESC NULLS LAST, position),
       lists AS (
         SELECT client, array_agg(provider ORDER BY rank, at DESC NULLS LAST, position, provider COLLATE "C") AS providers
         FROM best GROUP BY client)
       UPDATE import_rows r SET providers = lists.providers[1:$2] FROM lists
       WHERE r.import_id = $1 AND r.kind = 'client' AND r.external_id = lists.client AND r.outcome = 'pending'`,
      [record.id, PROVIDERS_MAX],
    );
    await this.forget(tx, record.id);
  }

  /** Forgets the facts of an import. */
  async forget(tx: PoolClient, importId: string): Promise<void> {
    await tx.query('DELETE FROM import_facts WHERE import_id = $1', [importId]);
  }

  /** References may also mean providers that an earlier import or a PUT named. */
  private async nameKnownProviders(tx: PoolClient, record: Pick<ImportRecord, 'id' | 'idSystems'>): Promise<void> {
    const { rows } = await tx.query<{ external_id: string }>(
      `SELECT external_id FROM people WHERE kind = 'provider' AND wanted`,
    );
    const aliases = rows.flatMap(({ external_id }) =>
      knownPersonKeys('provider', external_id, record.idSystems).map(
        (key) => [this.keys.of(key), external_id] as const,
      ),
    );
    await tx.query(
      `INSERT INTO import_facts (import_id, fact_no, type, key, target, kind)
       SELECT $1, -ordinality, 'alias', key, target, 'provider'
       FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS known(key, target, ordinality)`,
      [record.id, aliases.map(([key]) => key), aliases.map(([, target]) => target)],
    );
  }
}
