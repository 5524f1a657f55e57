import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Clock } from '../../config/clock.js';
import { PROVIDERS_MAX } from '../../people/model/person-field-rules.js';
import { Vault } from '../../vault/vault.js';
import type { ImportRecord } from '../model/imports.repository.js';
import { knownPersonKeys } from '../parse/fhir/reference-key.js';
import type { ReferenceForm } from '../parse/row/import-row.js';
import { rejection } from '../parse/row/rejection.js';
import { keyFingerprint } from '../upload/staging.repository.js';
import { HASHES_AT_ONCE, knownProviders } from './known-providers.js';

/** Milliseconds before the newest date of the files in which an encounter names a provider by default. */
const ENCOUNTER_MS = 365 * 86_400_000;

const FORMS: ReferenceForm[] = ['Practitioner/…', 'PractitionerRole/…', 'urn:uuid:…', 'urn:oid:…', 'identifier'];

/**
 * The references of import $1 that hold at $2: care and roles that are not over at the newest date of the files,
 * encounters since $3, or else since $4 milliseconds before that date. Then whom keys of clients and of providers mean.
 */
const KEYS = `given AS MATERIALIZED (SELECT * FROM import_references WHERE import_id = $1),
  as_of AS (
    SELECT coalesce(max(date), $2::timestamptz) AS at FROM (SELECT at FROM given UNION ALL SELECT ends FROM given) AS dates(date)
    WHERE date <= $2),
  valid AS MATERIALIZED (
    SELECT t.* FROM given t, as_of WHERE (t.ends IS NULL OR t.ends > as_of.at)
      AND NOT (t.type = 'link' AND t.rank = 3 AND t.at IS NOT NULL
        AND t.at < coalesce($3::timestamptz, as_of.at - $4::float8 * interval '1 millisecond'))),
  clients AS (
    SELECT key, min(target) AS target FROM valid WHERE type = 'alias' GROUP BY key HAVING count(DISTINCT target) = 1),
  provider_targets AS (
    SELECT key, target FROM valid WHERE type = 'alias' AND kind = 'provider'
    UNION SELECT r.key, a.target FROM valid r JOIN valid a ON a.type = 'alias' AND a.key = r.target WHERE r.type = 'role'),
  providers AS (
    SELECT key, min(target) AS target FROM provider_targets GROUP BY key HAVING count(DISTINCT target) = 1)`;

/** A list of external ids, which may be null, with those of another behind it that it does not hold. */
export const added = (before: string, more: string): string =>
  `coalesce(${before}, '{}') || ARRAY(SELECT one FROM unnest(${more}) WITH ORDINALITY AS listed(one, place)
     WHERE one <> ALL (coalesce(${before}, '{}')) ORDER BY place)`;

type Resolvable = Pick<ImportRecord, 'id' | 'idSystems' | 'mode' | 'encounterSince'>;

/** References between the FHIR resources of one import, and to providers whom earlier ones named. */
@Injectable()
export class ReferencesRepository {
  constructor(
    private readonly vault: Vault,
    private readonly clock: Clock,
  ) {}

  /**
   * Gives the clients of an import their providers from the links of FHIR, by rank, then the latest first, then by
   * position; references may also mean providers known before. In an upsert only a generalPractitioner replaces the list.
   * Rejected clients have them, too, for the file of rejected rows.
   */
  async resolve(tx: PoolClient, record: Resolvable): Promise<void> {
    if (!(await this.refers(tx, record.id))) return;
    const named = await this.addKnownProviders(tx, record);
    await this.addKnownKeys(tx, record.id, named);
    await tx.query('ANALYZE import_references');
    await tx.query(
      `WITH ${KEYS},
       named AS (
         SELECT c.target AS client, p.target AS provider, l.rank, l.at, l.position
         FROM valid l JOIN clients c ON c.key = l.key JOIN providers p ON p.key = l.target WHERE l.type = 'link'),
       best AS (
         SELECT DISTINCT ON (client, provider) * FROM named
         ORDER BY client, provider, rank, at DESC NULLS LAST, position),
       lists AS (
         SELECT client, bool_or(rank = 1) AS replaces,
           array_agg(provider ORDER BY rank, at DESC NULLS LAST, position, provider COLLATE "C") AS providers
         FROM best GROUP BY client),
       before AS (
         SELECT c.external_id AS client, array_agg(q.external_id ORDER BY cp.position) AS providers
         FROM people c JOIN client_providers cp ON cp.client_id = c.id JOIN people q ON q.id = cp.provider_id AND q.wanted
         WHERE $6::boolean AND c.kind = 'client' AND c.wanted
           AND c.external_id IN (SELECT client FROM lists WHERE NOT replaces) GROUP BY c.id),
       wanted AS (
         SELECT client, ${added('before.providers', 'lists.providers')} AS providers,
           CASE WHEN $6 AND NOT replaces THEN lists.providers END AS added
         FROM lists LEFT JOIN before USING (client))
       UPDATE import_rows r SET providers = wanted.providers[1:$5], added_providers = wanted.added[1:$5] FROM wanted
       WHERE r.import_id = $1 AND r.kind = 'client' AND r.external_id = wanted.client
         AND r.outcome IN ('pending', 'rejected')`,
      [...this.windowOf(record), PROVIDERS_MAX, record.mode === 'upsert'],
    );
  }

  /** Rejects clients whose references to providers lead to nobody; the hint names the form of those. */
  async rejectUnresolved(tx: PoolClient, record: Resolvable): Promise<void> {
    const { rowCount: unresolved } = await tx.query(
      `SELECT 1 FROM import_rows WHERE import_id = $1 AND kind = 'client' AND outcome = 'pending'
         AND coalesce(providers, '{}') = '{}' LIMIT 1`,
      [record.id],
    );
    if (unresolved === 0 || !(await this.refers(tx, record.id))) return;
    const rejections = FORMS.map((form) => rejection('unresolved-provider', { field: 'providers', expected: form }));
    await tx.query(
      `WITH ${KEYS},
       lost AS (
         SELECT c.target AS client, min(l.form) AS form FROM valid l JOIN clients c ON c.key = l.key
         WHERE l.type = 'link' AND NOT EXISTS (SELECT 1 FROM providers p WHERE p.key = l.target) GROUP BY c.target)
       UPDATE import_rows r SET outcome = 'rejected', code = $5, field = 'providers', hint = hints.hint
       FROM lost JOIN unnest($6::text[], $7::text[]) AS hints(form, hint) USING (form)
       WHERE r.import_id = $1 AND r.kind = 'client' AND r.external_id = lost.client AND r.outcome = 'pending'
         AND coalesce(r.providers, '{}') = '{}'`,
      [...this.windowOf(record), rejections[0]?.code, FORMS, rejections.map(({ hint }) => hint)],
    );
  }

  /** Discards who treats whom; the keys of providers are stored once the import is applied. */
  async discardLinks(tx: PoolClient, importId: string): Promise<void> {
    await tx.query(
      `DELETE FROM import_references f WHERE import_id = $1 AND (type = 'link' OR kind = 'client' OR reference_no < 0 AND NOT EXISTS (
         SELECT 1 FROM import_references r WHERE r.import_id = $1 AND r.type = 'role' AND r.target = f.key))`,
      [importId],
    );
  }

  /** Stores the keys by which an applied import means providers: references of later imports may use them. */
  async storeProviderKeys(tx: PoolClient, importId: string): Promise<void> {
    const given = `SELECT key, target, NULL AS ends FROM import_references
        WHERE import_id = $1 AND type = 'alias' AND kind = 'provider' AND reference_no > 0
      UNION SELECT r.key, a.target, r.ends FROM import_references r
        JOIN import_references a ON a.import_id = $1 AND a.type = 'alias' AND a.key = r.target
        WHERE r.import_id = $1 AND r.type = 'role'`;
    await tx.query(`DELETE FROM provider_keys WHERE key IN (SELECT key FROM (${given}) AS given)`, [importId]);
    await tx.query(
      `INSERT INTO provider_keys (key, external_id, ends)
       SELECT key, target, CASE WHEN bool_or(ends IS NULL) THEN NULL ELSE max(ends) END FROM (${given}) AS given GROUP BY key, target`,
      [importId],
    );
    await this.discard(tx, importId);
  }

  async discard(tx: PoolClient, importId: string): Promise<void> {
    await tx.query('DELETE FROM import_references WHERE import_id = $1', [importId]);
  }

  private windowOf({ id, encounterSince }: Resolvable): [string, Date, Date | null, number] {
    return [id, this.clock.now(), encounterSince, ENCOUNTER_MS];
  }

  private async refers(tx: PoolClient, importId: string): Promise<boolean> {
    const { rowCount } = await tx.query(
      `SELECT 1 FROM import_references WHERE import_id = $1 AND type IN ('link', 'role') LIMIT 1`,
      [importId],
    );
    return rowCount !== 0;
  }

  /** References may also mean providers that an earlier import or a PUT named. @returns how many keys they have */
  private async addKnownProviders(tx: PoolClient, record: Resolvable): Promise<number> {
    const batch = Math.ceil(HASHES_AT_ONCE / Math.max(2, record.idSystems.length)) - 1;
    let named = 0;
    for await (const ids of knownProviders(tx, batch)) {
      const aliases = ids.flatMap((id) =>
        knownPersonKeys('provider', id, record.idSystems).map((key) => [keyFingerprint(this.vault, key), id] as const),
      );
      await tx.query(
        `INSERT INTO import_references (import_id, reference_no, type, key, target, kind)
         SELECT $1, -$4::int - ordinality, 'alias', key, target, 'provider'
         FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS known(key, target, ordinality)`,
        [record.id, aliases.map(([key]) => key), aliases.map(([, target]) => target), named],
      );
      named += aliases.length;
    }
    return named;
  }

  /** … or by an identifier or a role of an earlier import, unless this one says whom it means. */
  private async addKnownKeys(tx: PoolClient, importId: string, named: number): Promise<void> {
    await tx.query(
      `INSERT INTO import_references (import_id, reference_no, type, key, target, kind, ends)
       SELECT $1, -$2::int - row_number() OVER (), 'alias', k.key, p.external_id, 'provider', NULL
       FROM provider_keys k JOIN people p ON p.wanted AND p.id = coalesce(
         (SELECT person_id FROM former_ids WHERE kind = 'provider' AND external_id = k.external_id),
         (SELECT id FROM people WHERE kind = 'provider' AND external_id = k.external_id))
       WHERE k.key IN (SELECT target FROM import_references WHERE import_id = $1 AND type IN ('link', 'role'))
         AND (k.ends IS NULL OR k.ends > $3)
         AND NOT EXISTS (SELECT 1 FROM import_references f WHERE f.import_id = $1 AND f.key = k.key AND f.reference_no > 0
           AND (f.type = 'role' OR f.type = 'alias' AND f.kind = 'provider'))`,
      [importId, named, this.clock.now()],
    );
  }
}
