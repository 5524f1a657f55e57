import type { Pool } from 'pg';

/** SQL of the person that stands for person `p`: itself, or the one that it was merged into. */
export const STANDS_FOR = 'coalesce(p.merged_into, p.id)';

/** A person with the clients that were merged into it. */
export interface Family {
  people: string[];
  /** Every id that any of them has or had. */
  externalIds: string[];
}

const FAMILY = `
  WITH named AS (
    SELECT person_id AS id FROM former_ids WHERE kind = $1::person_kind AND external_id = $2
    UNION SELECT id FROM people WHERE kind = $1::person_kind AND external_id = $2),
  heads AS MATERIALIZED (
    SELECT ${STANDS_FOR} AS id FROM people p WHERE p.id = ANY (ARRAY(SELECT id FROM named))),
  family AS (
    SELECT id, external_id FROM people WHERE id = ANY (ARRAY(SELECT id FROM heads))
    UNION SELECT id, external_id FROM people WHERE merged_into = ANY (ARRAY(SELECT id FROM heads)))
  SELECT coalesce((SELECT array_agg(id::text) FROM family), '{}') AS people, ARRAY(
    SELECT $2 UNION SELECT external_id FROM family
    UNION SELECT external_id FROM former_ids WHERE person_id IN (SELECT id FROM family)) AS "externalIds"`;

/** Finds the family of a current or former id. An unknown id has no people, and only itself as an id. */
export async function familyOf(sql: Pick<Pool, 'query'>, kind: string, externalId: string): Promise<Family> {
  const { rows } = await sql.query<Family>(FAMILY, [kind, externalId]);
  return rows[0] ?? { people: [], externalIds: [externalId] };
}
