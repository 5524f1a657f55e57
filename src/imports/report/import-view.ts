import { ApiProperty } from '@nestjs/swagger';
import type { StopCode } from '../../people/model/person-codes.js';
import { etaSeconds } from '../model/import-eta.js';
import type { IgnoredColumns } from '../model/import-files.js';
import type { Guard } from '../model/import-guards.js';
import { type ImportRecord, type ImportState, ROW_OUTCOMES, type RowOutcome } from '../model/import-types.js';
import type { ImportTotals } from '../run/outcomes.repository.js';

/** Why it is not known when an import ends. */
export type EtaUnknown = StopCode | 'paused' | 'not-configured' | 'platform-fault';

export class ImportCallsResponse {
  made!: number;
  remaining!: { min: number; max: number };
}

export class ImportErrorResponse {
  code!: string;
  message!: string;
}

/** An import as it is shown; `counts` but `deleted` add up to `total`. */
export class ImportResponse {
  id!: string;
  state!: ImportState;
  kind!: ImportRecord['kind'];
  mode!: ImportRecord['mode'];
  dryRun!: boolean;

  @ApiProperty({ type: 'object', additionalProperties: { type: 'integer' } })
  counts!: Record<'total' | RowOutcome, number>;

  /** Rows by planned outcome */
  @ApiProperty({ type: 'object', additionalProperties: { type: 'integer' } })
  planned!: Record<string, number>;

  /** People to delete, by outcome */
  @ApiProperty({ type: 'object', additionalProperties: { type: 'integer' } })
  deletes!: Record<string, number>;

  calls!: ImportCallsResponse;
  /** Null while the end is unknown, and after it */
  etaSeconds!: number | null;
  /** Why the end is unknown: nothing is sent at present */
  etaUnknown!: EtaUnknown | null;
  /** Rows, and people to delete, that need attention: rejected, failed, in review */
  needAttention!: number;
  /** What the plan does in the large, and its thresholds */
  guards!: Guard[];
  /** Columns from which nothing is read, by file: often a name that was misspelt */
  ignoredColumns!: IgnoredColumns[];
  error!: ImportErrorResponse | null;
  createdAt!: Date;
  finishedAt!: Date | null;
}

/** Shows an import. @param pace how often bulk calls may go; null: it is not known when the import ends */
export function showImport(
  record: ImportRecord,
  totals: ImportTotals,
  { pace, etaUnknown }: { pace: { callMs: number; blockedMs: number } | null; etaUnknown: EtaUnknown | null },
  ignoredColumns: IgnoredColumns[],
): ImportResponse {
  const outcomes = Object.fromEntries(ROW_OUTCOMES.map((outcome) => [outcome, totals.counts[outcome] ?? 0]));
  const total = Object.values(totals.counts).reduce((sum, rows) => sum + rows, 0);
  const open = ['planned', 'running', 'paused'].includes(record.state);
  const callsLeft = (which: 'min' | 'max') => totals.remaining.reduce((sum, calls) => sum + calls[which], 0);
  const remaining = { min: open ? callsLeft('min') : 0, max: open ? callsLeft('max') : 0 };
  return {
    id: record.id,
    state: record.state,
    kind: record.kind,
    mode: record.mode,
    dryRun: record.dryRun,
    counts: { total, ...outcomes, deleted: totals.deletes.deleted ?? 0 } as ImportResponse['counts'],
    planned: totals.planned,
    deletes: totals.deletes,
    calls: { made: totals.callsMade, remaining },
    guards: record.guards ?? [],
    etaSeconds: pace && etaSeconds(totals.remaining, pace),
    etaUnknown,
    needAttention: attention(totals.counts) + attention(totals.deletes),
    ignoredColumns,
    error: record.errorCode ? { code: record.errorCode, message: record.errorDetail ?? '' } : null,
    createdAt: record.createdAt,
    finishedAt: record.finishedAt,
  };
}

/** Outcomes that need attention. */
const ATTENTION: readonly RowOutcome[] = ['rejected', 'failed', 'needsReview'];

function attention(counts: Partial<Record<RowOutcome, number>>): number {
  return ATTENTION.reduce((sum, outcome) => sum + (counts[outcome] ?? 0), 0);
}
