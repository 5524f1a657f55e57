import type { PersonKind } from '../../../people/rules/person.js';
import type { Profile } from '../../../people/rules/person-field-rules.js';
import { PERSON_FIELDS } from '../../../words/field-words.js';
import { codesOf } from '../../../words/words.js';
import type { Rejection } from './rejection.js';

/** The fields of a row, as the documented CSV columns name them. */
export const FIELDS = codesOf(PERSON_FIELDS);
export type Field = keyof typeof PERSON_FIELDS;

/** A provider or client as one row names it. */
export interface ImportedPerson extends Profile {
  kind: PersonKind;
  externalId: string;
  /** External ids of a client's providers, primary first. Undefined if the row does not name any (FHIR: see the links). */
  providers?: string[];
  /** The existing platform user to link to, instead of creating one. */
  platformUserId?: string;
}

/** The texts of a rejected row, as far as they could be told apart. Personal: stored encrypted. */
export type RowCells = Partial<Record<Field, string>>;

/** The order of versions of one resource: by time, then by version number, then by `place`. */
export interface Version {
  at?: Date;
  no?: number;
  /** Larger is newer. In a Bundle of type history, the first entry is the newest. */
  place: number;
}

/** A row that was read. */
export type ReadRow = {
  type: 'row';
  /** The physical line, from 1, on which the row begins. */
  line: number;
  /** FHIR only: repeated rows with versions are versions of one resource. */
  version?: Version;
} & (
  | {
      is: 'person';
      person: ImportedPerson;
      /** The source shows only a part of the person (FHIR SUBSETTED). A known person keeps what it does not show. */
      isPartial?: true;
    }
  /** Inactive, deceased or the like: never created, and left unchanged if it exists. */
  | { is: 'gone'; kind: PersonKind; externalId: string }
  /** The EHR deleted this person, according to the source. */
  | { is: 'deleted'; kind: PersonKind; externalId: string }
  /** Another chart stands for this one: never created, and left unchanged if it exists. */
  | { is: 'merged'; kind: 'client'; externalId: string }
  | ({ is: 'rejected'; kind?: PersonKind; externalId?: string; cells: RowCells } & Rejection)
);

/** One column of a CSV file. */
export interface MappedColumn {
  /** Unique within the file: repeated names get ` (2)`, unnamed columns are called `Column 3`. */
  name: string;
  /** The field that is read from it; `status` marks inactive people. Null if the column is ignored. */
  field: Field | 'status' | null;
  /** The first filled cell with its letters and digits replaced (`x`, `9`); empty if all cells are empty. */
  example: string;
}

/** The mapping of the columns of a CSV file to fields. */
export interface FileMapping {
  columns: MappedColumn[];
  /** Why the column of the external id was chosen, in one sentence; null if none was. */
  idReason: string | null;
  /** The choice to make before the rows can be read; null if there is none. */
  question: { fields: Field[]; detail: string } | null;
  /** The words in status columns that mark a person as inactive; empty without such a column. */
  goneWords: string[];
  /** These are rejected rows of an earlier import. */
  isRejectedCsv: boolean;
}

/** A record of a CSV file: its first physical line, how many it covers, and its cells, unquoted but not trimmed. */
export interface CsvRecord {
  line: number;
  span: number;
  cells: string[];
}

/** A physical line that begins no readable record. `text` is empty where the line is too long to keep. */
export interface BrokenLine {
  line: number;
  span: 1;
  broken: 'bad-quote' | 'row-too-large' | 'cell-count';
  text: string;
}

/**
 * A record of a CSV file whose mapping is not clear yet, stored until it is. `isErased`: only the id of a deleted person
 * is left of the cells.
 */
export type StoredRecord = (CsvRecord & { isErased?: true }) | BrokenLine;

/** The reason why a reference leads to no provider. */
export type LostReason =
  | 'unknown' // no provider has this id or identifier
  | 'rejected' // the provider's own row was rejected
  | 'ambiguous' // two have this identifier
  | 'role-without-practitioner'
  | 'other-server' // an absolute URL of another server
  | 'organization'
  | 'display-only'
  | 'contained';

/** The keys that references use, as `parse/fhir/reference-key.ts` makes them. */
export type ResourceReference =
  /** A key under which references may mean this person. */
  | { type: 'alias'; kind: PersonKind; key: string; externalId: string }
  /** A key of a PractitionerRole, and the key of its practitioner; null if it names none. */
  | { type: 'role'; key: string; practitionerKey: string | null }
  | LinkReference;

/** A client's provider, as one resource names it. Care that has ended, and old encounters, give no links. */
export interface LinkReference {
  type: 'link';
  /** The external id of the client if the Patient itself has the link, otherwise its key. */
  client: { externalId: string } | { key: string };
  /** Its key, or why it has none. */
  provider: { key: string } | { lost: LostReason };
  /** 1: generalPractitioner, 2: CareTeam, 3: Encounter. */
  rank: 1 | 2 | 3;
  /** Since when, if known. */
  at?: Date;
  /** Position in its resource, from 0. */
  position: number;
}

/** A merge of two charts, as one of them states it (FHIR R4, Patient.link). */
export interface MergeReference {
  type: 'merge';
  /** The line of the chart that states it. */
  line: number;
  externalId: string;
  /** `replaced-by`: the other chart stands for this one; `replaces`: this one stands for the other. */
  says: 'replaced-by' | 'replaces';
  /** The keys of the other chart; empty if the link does not name a Patient. */
  others: string[];
}

export type ReadEvent =
  /** CSV: the mapping, before the first row. @param line of the header */
  | { type: 'mapping'; line: number; header: string[]; mapping: FileMapping }
  | ReadRow
  /** CSV whose mapping has a question: its records, instead of rows. */
  | { type: 'record'; record: StoredRecord }
  /** With `whole`: texts that may contain ids which a stray quote swallowed. */
  | { type: 'mention'; texts: string[] }
  /** FHIR: the links of a Bundle that is one page of a search. */
  | { type: 'page'; self?: string; next?: string; previous?: string }
  | MergeReference
  | ResourceReference;

export type ImportFormat = 'csv' | 'ndjson' | 'fhir-ndjson' | 'fhir-json';

/** The people that a file contains. `both`: providers and clients, distinguished by a column or field `kind`. */
export type FileKind = 'providers' | 'clients' | 'both' | 'fhir';

/** The columns that a user chose, by field. */
export type ChosenColumns = Partial<Record<Field, string>>;

/** Maximum sizes in characters (UTF-16 units). */
export interface ReadLimits {
  row: number;
  cell: number;
}

export interface ReadOptions {
  format: ImportFormat;
  kind: FileKind;
  columns?: ChosenColumns;
  /** CSV: pass on records instead of rows, even if the mapping has no question. */
  isStored?: boolean;
  limits?: ReadLimits;
  /** Identifier systems whose value is the external id of a FHIR resource, the first that it has; otherwise its id. */
  idSystems?: readonly string[];
  now: Date;
  /** Encounters before it name no provider; default: those before the last 365 days. */
  encounterSince?: Date;
  /** The files list everyone (snapshot). */
  whole?: boolean;
}

export type CsvOptions = Pick<ReadOptions, 'kind' | 'columns' | 'whole' | 'isStored'> & { limits: ReadLimits };
