import { ApiProperty } from '@nestjs/swagger';
import { PageResponse } from '../../http/request/page.js';
import type { CodeOf } from '../../words/words.js';
import type { Cancellation } from '../model/cancellation.js';
import { type ImportFile, type ImportKind, type ImportState, ROW_OUTCOMES, type RowOutcome } from '../model/import.js';
import type { Guard, GuardName } from '../model/import-guards.js';
import type { ImportRecord } from '../model/imports.repository.js';
import type { ImportTotals } from '../model/totals.js';
import type { Field, FileKind, FileMapping, ImportFormat, MappedColumn } from '../parse/row/import-row.js';

export class GuardThresholdResponse {
  percent!: number;
  people!: number;
}

/** A count of the plan against its threshold. */
export class GuardResponse implements Guard {
  name!: GuardName;
  count!: number;
  of!: number;
  /** Exceeded if both limits are exceeded; null if there is none */
  threshold!: GuardThresholdResponse | null;
  exceeded!: boolean;
}

/** A column of a CSV file. */
export class MappedColumnResponse implements MappedColumn {
  name!: string;
  /** The field that is read from it; `status` marks inactive people; null if it is ignored */
  @ApiProperty({ type: String, nullable: true })
  field!: MappedColumn['field'];
  /** Its first value with all letters and digits replaced */
  example!: string;
}

export class MappingQuestionResponse {
  fields!: Field[];
  detail!: string;
}

/** The mapping of the columns of a CSV file to fields. */
export class MappingResponse {
  columns!: MappedColumnResponse[];
  /** Why this column is the id */
  idReason!: string | null;
  /** The choice to make before the rows can be read; null if there is none */
  question!: MappingQuestionResponse | null;
  /** Values of status columns that mark a person as inactive */
  goneWords!: string[];
}

/** A file of an import. */
export class ImportFileResponse {
  name!: string;
  kind!: FileKind;
  format!: ImportFormat;
  /** People in it, including rejected rows */
  rows!: number;
  /** Rows without an id */
  emptyIds!: number;
  /** CSV only */
  mapping!: MappingResponse | null;
}

/** Rows with the same outcome for the same reason. */
export class ReasonResponse {
  outcome!: RowOutcome;
  code!: string;
  rows!: number;
}

type EtaUnknown = CodeOf<'etaUnknown'>;

export class ImportCallsResponse {
  made!: number;
  remaining!: { min: number; max: number };
}

export class ImportErrorResponse {
  code!: string;
  message!: string;
}

/** An import; `counts` add up to `total` and `deletes.deleted`. */
export class ImportResponse {
  id!: string;
  state!: ImportState;
  /** The people that the files contain */
  kind!: ImportKind | null;
  mode!: ImportRecord['mode'];
  dryRun!: boolean;
  /** External id of the provider for clients without one */
  defaultProvider!: string | null;
  /** The import whose rejected rows this one corrects */
  correctionOf!: string | null;

  @ApiProperty({ type: 'object', additionalProperties: { type: 'integer' } })
  counts!: Record<'total' | RowOutcome, number>;

  /** Rows by planned outcome */
  @ApiProperty({ type: 'object', additionalProperties: { type: 'integer' } })
  planned!: Record<string, number>;

  /** People to delete because a snapshot does not name them, by outcome */
  @ApiProperty({ type: 'object', additionalProperties: { type: 'integer' } })
  deletes!: Record<string, number>;

  /** Rows that need attention or were skipped, by reason, the most frequent first */
  reasons!: ReasonResponse[];
  /** Rows corrected in this import */
  corrected!: number;
  /** Ids that occur in several rows */
  repeatedIds!: number;
  /** Unresolved references from clients to providers (FHIR) */
  lostProviders!: number;
  /** Rejected rows of a snapshot that do not identify a person; while there are any, no one is deleted */
  unclearRows!: number;
  calls!: ImportCallsResponse;
  /** Until its last call, at the limit of calls, if every person needs the most calls and everyone else who is due goes first; null if unknown or finished */
  etaSeconds!: number | null;
  /** The same, if every person needs the fewest calls, and goes first */
  etaMinSeconds!: number | null;
  /** Why the end cannot be estimated */
  etaUnknown!: EtaUnknown | null;
  /** Rows and deletions that need attention: rejected, failed, in review */
  needAttention!: number;
  /** Guards of the plan; exceeded ones need confirmation before it is applied */
  guards!: GuardResponse[];
  files!: ImportFileResponse[];

  /** `needs-mapping`: the columns of the last import of this kind, by field; null if there was none */
  @ApiProperty({ type: 'object', additionalProperties: { type: 'string' }, nullable: true })
  offeredColumns!: Record<string, string> | null;

  error!: ImportErrorResponse | null;
  createdAt!: Date;
  finishedAt!: Date | null;
}

/** What a cancel of an import would do now. */
export class CancellationResponse implements Cancellation {
  /** Rows that were not applied, and are skipped */
  skipped!: number;
  /** New people that are withdrawn, because nothing was sent for them */
  withdrawnPeople!: number;
  /** Deletions that are withdrawn, because they were not sent: these people stay */
  withdrawnDeletions!: number;
  /** Deletions that complete, because they were sent, or a later import says the same */
  completedDeletions!: number;
  /** Other people whose rows were applied: they stay as the rows say */
  staying!: number;
  /** All of this in sentences */
  text!: string;
}

export class ImportPageResponse extends PageResponse {
  items!: ImportResponse[];
}

/** The rate of calls, or why none are sent. */
export interface Pace {
  /** Null if unknown. */
  callsPerSecond: number | null;
  /** The most calls of everyone else who is due. */
  others: number;
  etaUnknown: EtaUnknown | null;
}

/** Shows an import. */
export function showImport(
  record: ImportRecord,
  totals: ImportTotals,
  pace: Pace,
  files: readonly ImportFile[],
  offeredColumns: Record<string, string> | null,
): ImportResponse {
  const { counts, deletes, remaining } = totals;
  const outcomes = Object.fromEntries(ROW_OUTCOMES.map((outcome) => [outcome, counts[outcome] ?? 0]));
  const { id, state, kind, mode, dryRun, defaultProvider, correctionOf, createdAt, finishedAt, lostProviders } = record;
  const eta = (calls: number) => (pace.callsPerSecond === null ? null : Math.ceil(calls / pace.callsPerSecond));
  return {
    ...{ id, state, kind, mode, dryRun, defaultProvider, correctionOf },
    counts: {
      total: sum(Object.values(counts)),
      ...outcomes,
      deleted: (counts.deleted ?? 0) + (deletes.deleted ?? 0),
    } as ImportResponse['counts'],
    ...{ planned: totals.planned, deletes, reasons: totals.reasons },
    ...{ corrected: totals.corrected, repeatedIds: totals.repeatedIds, unclearRows: totals.unclearRows, lostProviders },
    calls: { made: totals.callsMade, remaining },
    etaSeconds: eta(remaining.max === 0 ? 0 : remaining.max + pace.others),
    etaMinSeconds: eta(remaining.min),
    etaUnknown: pace.etaUnknown,
    needAttention: sum(ATTENTION.flatMap((outcome) => [counts[outcome] ?? 0, deletes[outcome] ?? 0])),
    guards: record.guards ?? [],
    files: files.map(({ csv, ...file }) => ({ ...file, mapping: csv ? showMapping(csv.mapping) : null })),
    offeredColumns,
    error: record.errorCode ? { code: record.errorCode, message: record.errorDetail ?? '' } : null,
    ...{ createdAt, finishedAt },
  };
}

function showMapping({ isRejectedCsv: _, ...mapping }: FileMapping): MappingResponse {
  return mapping;
}

/** Outcomes that need attention. */
const ATTENTION: readonly RowOutcome[] = ['rejected', 'failed', 'needsReview'];

const sum = (numbers: readonly number[]) => numbers.reduce((left, right) => left + right, 0);
