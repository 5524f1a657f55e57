import type { PoolClient } from 'pg';

/** The columns of an import by their names in `ImportRecord`. */
export const RECORD = `id, kind, mode, dry_run AS "dryRun", default_provider AS "defaultProvider", id_systems AS "idSystems",
  encounter_since AS "encounterSince", state, staged_at AS "stagedAt", apply_wanted AS "applyWanted",
  steered_to AS "steeredTo", attempts, overrides, files, guards, error_code AS "errorCode",
  error_detail AS "errorDetail", created_at AS "createdAt", applied_at AS "appliedAt", finished_at AS "finishedAt"`;

export const BEING_READ = `(state = 'staging' AND staged_at IS NULL)`;

/** Read to its end, or to be applied, and no person is changed yet. */
export const NOT_BEGUN = `(staged_at IS NOT NULL AND (state = 'staging' OR state = 'planned' AND apply_wanted))`;

/** Its rows are being applied, batch by batch. */
export const APPLYING = `(state = 'running' AND apply_wanted)`;

/** Its rows may still change: outcomes are resolved, or it is rolled back. */
export const UNDER_WAY = `(state IN ('running', 'paused') OR state IN ('cancelled', 'failed') AND finished_at IS NULL)`;

/** Rows that one transaction applies, pauses or releases: an interactive change of one of its people waits for it. */
export const BATCH_ROWS = 1_000;

/**
 * Has the planner take a batch by key, whatever it believes of tables that were filled a moment ago. A batch takes a
 * fraction of 30 seconds; a longer one is given up, since interactive changes wait behind its locks.
 */
export const BATCH_BY_KEY = 'SET LOCAL statement_timeout = 30000; SET LOCAL enable_seqscan = off';

/** The rows `r` of one batch: of the import $1 those with the numbers $2. */
export const IN_BATCH = 'r.import_id = $1 AND r.row_no = ANY ($2::int[])';

/** A pending row `r` that changes the desired state of its person. */
export const CHANGES = `r.planned IN ('create-or-link', 'provider-change', 'attribute-change', 'needs-review')`;

/**
 * Something of the person of a row `r`, by key. A scalar subquery is never turned round; a join may begin with all people
 * when the planner has no statistics of tables that were filled a moment ago.
 */
export const ofPerson = (value: string): string =>
  `(SELECT ${value} FROM people p WHERE p.kind = r.kind AND p.external_id = r.external_id)`;

/** Empties what a finished row `r` said of its person, and the snapshot before it: no retry or roll back needs them. */
export const discarding = (isDone: string): string =>
  `profile = CASE WHEN ${isDone} THEN NULL ELSE r.profile END, was = CASE WHEN ${isDone} THEN NULL ELSE r.was END`;

/**
 * Whether a row `r` names one of a set of providers, a parameter such as `$2`: as a part of the statement the planner
 * would join it anew for each row, and take minutes for 100,000 clients.
 */
export const namesOneOf = (parameter: string): string =>
  `EXISTS (SELECT 1 FROM unnest(r.providers) AS one(provider) WHERE one.provider = ANY (${parameter}::text[]))`;

/** A list of external ids, which may be null, with those of another behind it that it does not hold. */
export const added = (before: string, more: string): string =>
  `coalesce(${before}, '{}') || ARRAY(SELECT one FROM unnest(${more}) WITH ORDINALITY AS listed(one, place)
     WHERE one <> ALL (coalesce(${before}, '{}')) ORDER BY place)`;

/** The advisory lock under which an import is planned, applied or rolled back, one at a time; any fixed number. */
export const IMPORT_LOCK = 727_002;

/** Takes the import lock until the transaction ends, unless another has it. */
export async function tryLockImports(tx: PoolClient): Promise<boolean> {
  const { rows } = await tx.query<{ locked: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS locked', [IMPORT_LOCK]);
  return rows[0]?.locked ?? false;
}

/** Waits for the import lock. To be called before anything else is locked. */
export async function lockImports(tx: PoolClient): Promise<void> {
  await tx.query('SELECT pg_advisory_xact_lock($1)', [IMPORT_LOCK]);
}
