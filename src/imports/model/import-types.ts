import type { ImportKind } from '../parse/row/import-row.js';
import type { Guard } from './import-guards.js';

/** Where an import stands. */
export type ImportState = 'staging' | 'planned' | 'running' | 'paused' | 'completed' | 'cancelled' | 'failed';

/** What becomes of a row; exactly one at any time. */
export const ROW_OUTCOMES = [
  'pending',
  'created',
  'linked',
  'updated',
  'unchanged',
  'skipped',
  'rejected',
  'failed',
  'needsReview',
  'deleted',
] as const;
export type RowOutcome = (typeof ROW_OUTCOMES)[number];

/** What the plan says of a row. Only the check decides between create and link. */
export const PLANNED_OUTCOMES = [
  'create-or-link',
  'provider-change',
  'attribute-change',
  'delete',
  'unchanged',
  'needs-review',
  'rejected',
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
  createdBy: string;
}

/** An import's row in the database. */
export interface ImportRecord {
  id: string;
  kind: ImportKind;
  mode: 'upsert' | 'snapshot';
  dryRun: boolean;
  defaultProvider: string | null;
  idSystems: string[];
  encounterSince: Date | null;
  state: ImportState;
  stagedAt: Date | null;
  applyWanted: boolean;
  /** People of rows up to this number were held back or let go after the last word; null: of all. */
  steeredTo: number | null;
  /** Attempts to plan or apply it, this one included, since the last that got on. */
  attempts: number;
  overrides: string[];
  /** Sealed (`ImportFiles`). */
  files: Buffer | null;
  guards: Guard[] | null;
  errorCode: string | null;
  errorDetail: string | null;
  createdAt: Date;
  appliedAt: Date | null;
  finishedAt: Date | null;
}
