/** The rows `r` of one batch: of the import $1 those with the numbers $2, which PostgreSQL finds by key, whatever it knows of them. */
export const IN_BATCH = 'r.import_id = $1 AND r.row_no = ANY ($2::int[])';

/** A row `r` that was planned and is not wanted yet. */
export const TO_APPLY = `r.outcome = 'pending' AND NOT r.applied AND r.planned IS NOT NULL`;

/** A pending row `r` that changes what is wanted of its person. */
export const CHANGES = `r.planned IN ('create-or-link', 'provider-change', 'attribute-change', 'needs-review')`;

/**
 * Something of the person of a row `r`, by key. A subquery for one value is never turned round: in a join the planner may
 * begin with everybody and look for each one's row, when it knows nothing yet of tables that were filled a moment ago.
 */
export const ofPerson = (value: string): string =>
  `(SELECT ${value} FROM people p WHERE p.kind = r.kind AND p.external_id = r.external_id)`;
