/** The columns of an import by their names in `ImportRecord`. */
export const RECORD = `id, kind, mode, dry_run AS "dryRun", default_provider AS "defaultProvider", id_systems AS "idSystems",
  encounter_since AS "encounterSince", state, staged_at AS "stagedAt", apply_wanted AS "applyWanted", steered_to AS "steeredTo", attempts, overrides, files, guards, error_code AS "errorCode",
  error_detail AS "errorDetail", created_at AS "createdAt", applied_at AS "appliedAt", finished_at AS "finishedAt"`;

export const BEING_READ = `(state = 'staging' AND staged_at IS NULL)`;

/** Read to its end, or told to be applied, and nothing of it is wanted yet. */
export const NOT_BEGUN = `(staged_at IS NOT NULL AND (state = 'staging' OR state = 'planned' AND apply_wanted))`;

/** Its rows are being wanted, batch by batch. */
export const APPLYING = `(state = 'running' AND apply_wanted)`;

export const TO_PREPARE = `(${NOT_BEGUN} OR ${APPLYING})`;

/** Its rows may still change: they are counted, or taken back. */
export const UNDER_WAY = `(state IN ('running', 'paused') OR state IN ('cancelled', 'failed') AND finished_at IS NULL)`;

/** A list of external ids, which may be null, with those of another behind it that it does not hold. */
export const added = (before: string, more: string): string =>
  `coalesce(${before}, '{}') || ARRAY(SELECT one FROM unnest(${more}) WITH ORDINALITY AS listed(one, place)
     WHERE one <> ALL (coalesce(${before}, '{}')) ORDER BY place)`;
