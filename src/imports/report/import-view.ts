import { ApiProperty } from '@nestjs/swagger';
import type { CallTempo } from '../../platform/rate-limit/throughput.js';
import { etaSeconds } from '../model/import-eta.js';
import type { IgnoredColumns } from '../model/import-files.js';
import type { Guard } from '../model/import-guards.js';
import { type ImportRecord, type ImportState, ROW_OUTCOMES, type RowOutcome } from '../model/import-types.js';
import { ETA_UNKNOWN, type EtaUnknown } from './import-outlook.js';
import type { ImportTotals } from './totals.repository.js';

/** An import as it is shown; `counts` but `deleted` add up to `total`. */
export class ImportView {
  @ApiProperty({ type: String })
  id!: string;

  @ApiProperty({ enum: ['staging', 'planned', 'running', 'paused', 'completed', 'cancelled', 'failed'] })
  state!: ImportState;

  @ApiProperty({ enum: ['providers', 'clients', 'fhir'] })
  kind!: string;

  @ApiProperty({ enum: ['upsert', 'snapshot'] })
  mode!: string;

  @ApiProperty({ type: Boolean })
  dryRun!: boolean;

  @ApiProperty({ type: 'object', additionalProperties: { type: 'integer' } })
  counts!: Record<'total' | RowOutcome, number>;

  @ApiProperty({ type: 'object', additionalProperties: { type: 'integer' }, description: 'Rows by planned outcome' })
  planned!: Record<string, number>;

  @ApiProperty({
    type: 'object',
    additionalProperties: { type: 'integer' },
    description: 'People to delete, by outcome',
  })
  deletes!: Record<string, number>;

  @ApiProperty({ type: 'object', additionalProperties: true })
  calls!: { made: number; remaining: { min: number; max: number } };

  @ApiProperty({
    type: Number,
    nullable: true,
    description: 'To tenths; null while it can not be told, and once it ended',
  })
  etaSeconds!: number | null;

  @ApiProperty({ enum: ETA_UNKNOWN, nullable: true, description: 'Why it can not be told: nothing is sent at present' })
  etaUnknown!: EtaUnknown | null;

  @ApiProperty({
    type: Number,
    description: 'Rows, and people to delete, that somebody has to see to: rejected, failed, in review',
  })
  needAttention!: number;

  @ApiProperty({
    type: 'array',
    items: { type: 'object' },
    description: 'What the plan does in the large, and its thresholds',
  })
  guards!: Guard[];

  @ApiProperty({
    type: 'array',
    items: { type: 'object' },
    description: 'Columns from which nothing is read, by file: often a name that was misspelt',
  })
  ignoredColumns!: IgnoredColumns[];

  @ApiProperty({ type: 'object', nullable: true, additionalProperties: true })
  error!: { code: string; message: string } | null;

  @ApiProperty({ type: String, format: 'date-time' })
  createdAt!: string;

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  finishedAt!: string | null;
}

/** Whether it can be told when an import ends: a paused one waits for somebody's word. */
export function hasEta({ state }: Pick<ImportRecord, 'state'>): boolean {
  return state === 'planned' || state === 'running';
}

/** Shows an import. @param outlook how calls go; null: it is not told when the import ends */
export function showImport(
  record: ImportRecord,
  totals: ImportTotals,
  { tempo, etaUnknown }: { tempo: CallTempo | null; etaUnknown: EtaUnknown | null },
  ignoredColumns: IgnoredColumns[],
): ImportView {
  const outcomes = Object.fromEntries(ROW_OUTCOMES.map((outcome) => [outcome, totals.counts[outcome] ?? 0]));
  const total = Object.values(totals.counts).reduce((sum, rows) => sum + rows, 0);
  const open = ['planned', 'running', 'paused'].includes(record.state);
  const remaining = { min: open ? totals.work.callsMin : 0, max: open ? totals.callsMax : 0 };
  return {
    id: record.id,
    state: record.state,
    kind: record.kind,
    mode: record.mode,
    dryRun: record.dryRun,
    counts: { total, ...outcomes, deleted: totals.deletes.deleted ?? 0 } as ImportView['counts'],
    planned: totals.planned,
    deletes: totals.deletes,
    calls: { made: totals.callsMade, remaining },
    guards: record.guards ?? [],
    etaSeconds: tempo && etaSeconds(totals.work, tempo),
    etaUnknown,
    needAttention: attention(totals.counts) + attention(totals.deletes),
    ignoredColumns,
    error: record.errorCode ? { code: record.errorCode, message: record.errorDetail ?? '' } : null,
    createdAt: record.createdAt.toISOString(),
    finishedAt: record.finishedAt?.toISOString() ?? null,
  };
}

/** Outcomes that somebody has to do something about. */
const ATTENTION: readonly RowOutcome[] = ['rejected', 'failed', 'needsReview'];

function attention(counts: Partial<Record<RowOutcome, number>>): number {
  return ATTENTION.reduce((sum, outcome) => sum + (counts[outcome] ?? 0), 0);
}
