import { ApiProperty } from '@nestjs/swagger';
import { PageResponse } from '../../http/request/page.js';
import type { BreakerCode } from '../../people/model/circuit-breaker.js';
import { type ImportFile, type ImportState, ROW_OUTCOMES, type RowOutcome } from '../model/import.js';
import type { Guard, GuardName } from '../model/import-guards.js';
import type { ImportRecord } from '../model/imports.repository.js';
import type { ImportFormat, ImportKind } from '../parse/row/import-row.js';
import type { ImportTotals, RemainingCalls } from '../run/outcomes.repository.js';

/** Columns of a file from which nothing is read. */
export class IgnoredColumnsResponse {
  file!: string;
  columns!: string[];
}

export class GuardThresholdResponse {
  percent!: number;
  people!: number;
}

/** A count of the plan against its threshold. */
export class GuardResponse implements Guard {
  name!: GuardName;
  count!: number;
  of!: number;
  /** Passed when both bounds are; null: there is none */
  threshold!: GuardThresholdResponse | null;
  exceeded!: boolean;
  /** Rejected rows of a snapshot that do not say whom they name: any of those to be deleted may be meant */
  nameless?: number;
}

/** As what a file was recognised. */
export class RecognisedFileResponse {
  name!: string;
  kind!: ImportKind;
  format!: ImportFormat;
  /** People in it, rejected ones too */
  rows!: number;
}

/** Why it is not known when an import ends. */
export type EtaUnknown = BreakerCode | 'paused' | 'not-configured';

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
  /** External id of the provider for clients that name none */
  defaultProvider!: string | null;

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
  guards!: GuardResponse[];
  /** The files that were read, in their order */
  files!: RecognisedFileResponse[];
  /** Columns from which nothing is read, by file: often a name that was misspelt */
  ignoredColumns!: IgnoredColumnsResponse[];
  error!: ImportErrorResponse | null;
  createdAt!: Date;
  finishedAt!: Date | null;
}

export class ImportPageResponse extends PageResponse {
  items!: ImportResponse[];
}

/** Shows an import. @param pace how often bulk calls may go; null: it is not known when the import ends */
export function showImport(
  record: ImportRecord,
  totals: ImportTotals,
  { pace, etaUnknown }: { pace: { callMs: number; blockedMs: number } | null; etaUnknown: EtaUnknown | null },
  files: readonly ImportFile[],
): ImportResponse {
  const { counts, deletes } = totals;
  const outcomes = Object.fromEntries(ROW_OUTCOMES.map((outcome) => [outcome, counts[outcome] ?? 0]));
  const total = sum(Object.values(counts));
  const isOpen = ['planned', 'running', 'paused'].includes(record.state);
  const callsLeft = (which: 'min' | 'max') => (isOpen ? sum(totals.remaining.map((calls) => calls[which])) : 0);
  const { id, state, kind, mode, dryRun, defaultProvider, createdAt, finishedAt } = record;
  return {
    ...{ id, state, kind, mode, dryRun, defaultProvider },
    counts: { total, ...outcomes, deleted: deletes.deleted ?? 0 } as ImportResponse['counts'],
    ...{ planned: totals.planned, deletes },
    calls: { made: totals.callsMade, remaining: { min: callsLeft('min'), max: callsLeft('max') } },
    guards: record.guards ?? [],
    etaSeconds: pace && etaSeconds(totals.remaining, pace),
    etaUnknown,
    needAttention: sum(ATTENTION.flatMap((outcome) => [counts[outcome] ?? 0, deletes[outcome] ?? 0])),
    files: files.flatMap(({ name, recognised }) => (recognised ? [{ name, ...recognised }] : [])),
    ignoredColumns: files.flatMap(({ name, ignored }) => (ignored?.length ? [{ file: name, columns: ignored }] : [])),
    error: record.errorCode ? { code: record.errorCode, message: record.errorDetail ?? '' } : null,
    ...{ createdAt, finishedAt },
  };
}

/** Outcomes that need attention. */
const ATTENTION: readonly RowOutcome[] = ['rejected', 'failed', 'needsReview'];

const sum = (numbers: readonly number[]) => numbers.reduce((left, right) => left + right, 0);

/**
 * The seconds that an import still takes: expected calls ÷ allowed rate, after the rest of a pause. Only its check shows
 * whether a person takes the fewest calls or the most; those checked so far are a fair sample, since rows go in shuffled
 * order, and half a person of each sort stands for those before them. Other load is not known.
 */
export function etaSeconds(remaining: readonly RemainingCalls[], pace: { callMs: number; blockedMs: number }): number {
  const calls = remaining.reduce(
    (sum, { min, max, linked, absent }) => sum + min + ((max - min) * (absent + 0.5)) / (linked + absent + 1),
    0,
  );
  return Math.ceil((pace.blockedMs + calls * pace.callMs) / 1_000);
}
