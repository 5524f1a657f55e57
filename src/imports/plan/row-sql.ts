import type { PoolClient } from 'pg';
import { PROVIDERS_MAX } from '../../people/rules/person-field-rules.js';
import { rejection } from '../parse/row/rejection.js';

/** SQL condition: a row `r` names one of a set of providers, which is a parameter, because a join would be repeated for each row. */
export const namesOneOf = (parameter: string): string =>
  `EXISTS (SELECT 1 FROM unnest(r.providers) AS one(provider) WHERE one.provider = ANY (${parameter}::text[]))`;

/**
 * SQL condition: a column is not null. Unlike IS NOT NULL, it does not imply the condition of a partial index, which the
 * planner would otherwise read for the rows of all imports.
 */
export const isFilled = (column: string): string => `num_nonnulls(${column}) = 1`;

/** SQL assignments that erase the data of row `r` about its person. @param condition of rows that no longer need it */
export const forget = (condition = 'true'): string =>
  ['profile', 'profile_hash', 'email_fingerprint']
    .map((column) => `${column} = CASE WHEN (${condition}) IS NOT TRUE THEN r.${column} END`)
    .join(', ');

/** SQL of the external ids of the providers that client `c` has. */
export const providersOf = (client: string): string =>
  `(SELECT array_agg(q.external_id ORDER BY cp.position) FROM client_providers cp JOIN people q ON q.id = cp.provider_id
    WHERE cp.client_id = ${client} AND q.wanted)`;

/** SQL of the list that a client has after a row `r`. @param before SQL of its list before */
export const listAfter = (before: string): string =>
  `CASE WHEN r.providers IS NULL THEN ${before} WHEN NOT r.adds_providers THEN r.providers
    ELSE (coalesce(${before}, '{}') || ARRAY(SELECT one FROM unnest(r.providers) WITH ORDINALITY AS added(one, place)
      WHERE one <> ALL (coalesce(${before}, '{}')) ORDER BY place))[1:${PROVIDERS_MAX}] END`;

/** A scalar subquery about the former id `f` with which a row `r` names its person, because the planner cannot reorder it. */
const ofFormerId = (value: string): string =>
  `(SELECT ${value} FROM former_ids f WHERE f.kind = r.kind AND f.external_id = r.external_id)`;
const IS_MERGED = ofFormerId('f.merged');

/**
 * Rejects rows that name a person by a former id. They count as naming its successor: see `SnapshotDeletes`.
 *
 * @param which condition of rows `r`, with its values
 */
export async function rejectFormerIds(tx: PoolClient, which: string, values: unknown[]): Promise<void> {
  const next = values.length + 1;
  await tx.query(
    `UPDATE import_rows r SET outcome = 'rejected', planned = 'rejected', phase = NULL, calls_min = 0, calls_max = 0,
       field = 'externalId', code = CASE WHEN ${IS_MERGED} THEN 'merged' ELSE 'renamed' END,
       hint = CASE WHEN ${IS_MERGED} THEN $${next + 1}::text ELSE $${next}::text END
     WHERE EXISTS (SELECT FROM former_ids) AND ${which} AND r.says = 'person' AND ${ofFormerId('true')}`,
    [...values, rejection('renamed').hint, rejection('merged').hint],
  );
}
