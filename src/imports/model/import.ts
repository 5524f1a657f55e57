import type { ImportFormat, ImportKind } from '../parse/row/import-row.js';

/** Where an import stands. */
export type ImportState = 'staging' | 'planned' | 'running' | 'paused' | 'completed' | 'cancelled' | 'failed';

/** What becomes of a row; exactly one at any time. */
export const ROW_OUTCOMES = [
  ...(['pending', 'created', 'linked', 'updated', 'unchanged', 'skipped'] as const),
  ...(['rejected', 'failed', 'needsReview', 'deleted'] as const),
] as const;
export type RowOutcome = (typeof ROW_OUTCOMES)[number];

/** What the plan says of a row. Only the check decides between create and link. */
export const PLANNED_OUTCOMES = [
  ...(['create-or-link', 'provider-change', 'attribute-change', 'delete'] as const),
  ...(['unchanged', 'needs-review', 'rejected'] as const),
] as const;
export type PlannedOutcome = (typeof PLANNED_OUTCOMES)[number];

/** What the caller asked for. */
export interface ImportRequest {
  kind: ImportKind;
  mode: 'upsert' | 'snapshot';
  dryRun: boolean;
  defaultProvider?: string;
  idSystems: string[];
  /** Encounters before it name no provider; undefined: those before the last 365 days. */
  encounterSince?: Date;
}

/** A file of an import. Its name and its header are the sender's words and may hold personal data. */
export interface ImportFile {
  name: string;
  /** Its detected kind and format, and its number of rows; undefined until the header was read. */
  recognised?: { kind: ImportKind; format: ImportFormat; rows: number };
  /** The header of a CSV file. */
  columns?: string[];
  /** Those of the header from which nothing is read. */
  ignored?: string[];
}

/** Why a row says nothing any more. */
export const ERASED = { code: 'erased', hint: 'This person was deleted: what the row said was erased.' };
