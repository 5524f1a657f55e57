import { type CodeOf, codesOf, WORDS } from '../../words/words.js';
import type { ChosenColumns, FileKind, FileMapping, ImportFormat } from '../parse/row/import-row.js';

/** `planned` waits to be applied; `needs-mapping` waits for the columns of its files. */
export type ImportState = CodeOf<'importState'>;

export const ROW_OUTCOMES = codesOf(WORDS.rowOutcome);
export type RowOutcome = CodeOf<'rowOutcome'>;

export const PLANNED_OUTCOMES = codesOf(WORDS.plannedOutcome);
export type PlannedOutcome = CodeOf<'plannedOutcome'>;

export const IMPORT_KINDS = ['providers', 'clients', 'fhir', 'mixed'] as const;
/** The people that the files of an import contain. `mixed`: providers and clients, in CSV or JSON lines. */
export type ImportKind = (typeof IMPORT_KINDS)[number];

/** The parameters of an import. */
export interface ImportRequest {
  /** Undefined: detected from each file. */
  kind?: Exclude<ImportKind, 'mixed'>;
  mode: 'upsert' | 'snapshot';
  dryRun: boolean;
  defaultProvider?: string;
  idSystems: string[];
  /** Encounters before it name no provider; default: those before the last 365 days. */
  encounterSince?: Date;
  /** Columns by field, or by kind and field, such as `clients.externalId`. */
  columns: Record<string, string>;
  /** The import whose rejected rows this one corrects. */
  correctionOf?: string;
}

/** A file of an import. Its name and header are the sender's words and may contain personal data: stored encrypted. */
export interface ImportFile {
  name: string;
  kind: FileKind;
  format: ImportFormat;
  /** People in it, including rejected rows. */
  rows: number;
  /** Rows without an id. */
  emptyIds: number;
  /** CSV only. */
  csv?: {
    header: string[];
    headerLine: number;
    mapping: FileMapping;
    /** Columns that a user chose. */
    chosen: ChosenColumns;
    /** Its records are stored until all columns are clear. */
    isStored: boolean;
  };
}

/** Why a row no longer says anything. */
export const ERASED = { code: 'erased', hint: 'This person was deleted, so the content of the row was erased.' };
