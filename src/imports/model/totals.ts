import type { RowOutcome } from './import.js';

/** The counts of an import. Stored once it has finished. */
export interface ImportTotals {
  counts: Partial<Record<RowOutcome, number>>;
  /** Rows added by a snapshot for people to delete, by outcome. */
  deletes: Partial<Record<RowOutcome, number>>;
  planned: Record<string, number>;
  reasons: { outcome: RowOutcome; code: string; rows: number }[];
  corrected: number;
  repeatedIds: number;
  unclearRows: number;
  callsMade: number;
  /** The calls that the pending rows need at least and at most. */
  remaining: Record<'min' | 'max', number>;
}
