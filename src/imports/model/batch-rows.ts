/** Rows that one transaction applies, holds back or lets go: who is changed at a screen meanwhile waits for it. */
export const BATCH_ROWS = 1_000;

/** A batch is short: one that takes longer is given up, since people wait behind its locks. */
const BATCH_STATEMENT_MS = 30_000;

/** Has a batch go by key alone: the planner knows nothing yet of rows that were read or applied a moment ago. */
export const BATCH_BY_KEY = `SET LOCAL statement_timeout = ${BATCH_STATEMENT_MS}; SET LOCAL enable_seqscan = off`;

/** The rows `r` of one batch: of the import $1 those with the numbers $2, which PostgreSQL finds by key, whatever it knows of them. */
export const IN_BATCH = 'r.import_id = $1 AND r.row_no = ANY ($2::int[])';

/** A row `r` that was planned and is not wanted yet. */
export const TO_APPLY = `r.outcome = 'pending' AND NOT r.applied AND r.planned IS NOT NULL`;

/** Empties what a row `r` that is done said of its person, and what was wanted before: no retry or cancel needs it. */
export const forgetting = (isDone: string): string =>
  `profile = CASE WHEN ${isDone} THEN NULL ELSE r.profile END, was = CASE WHEN ${isDone} THEN NULL ELSE r.was END`;

/** A pending row `r` that changes what is wanted of its person. */
export const CHANGES = `r.planned IN ('create-or-link', 'provider-change', 'attribute-change', 'needs-review')`;

/**
 * Something of the person of a row `r`, by key. A subquery for one value is never turned round: in a join the planner may
 * begin with everybody and look for each one's row, when it knows nothing yet of tables that were filled a moment ago.
 */
export const ofPerson = (value: string): string =>
  `(SELECT ${value} FROM people p WHERE p.kind = r.kind AND p.external_id = r.external_id)`;
