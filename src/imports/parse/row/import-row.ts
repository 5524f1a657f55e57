import type { PersonKind } from '../../../people/model/person.js';
import type { Rejection } from './rejection.js';

/** A provider or client as one row of an import names them. */
export interface ImportedPerson {
  kind: PersonKind;
  externalId: string;
  email?: string;
  firstName: string;
  lastName: string;
  /** Clients only: external ids, the first is the primary. Absent: the row does not speak of them; see the links (FHIR). */
  providers?: string[];
}

/** The columns of a CSV file that the project writes or documents (design: CSV columns). */
export const CSV_COLUMNS = ['externalId', 'email', 'firstName', 'lastName', 'providers'] as const;

/** The columns of rows that come from FHIR, where both kinds stand in one file. */
export const FHIR_COLUMNS = ['kind', ...CSV_COLUMNS] as const;

/** A row that was read: a person, or why it is rejected. */
export type ReadRow = {
  type: 'row';
  /** The physical line, from 1, on which the row begins. */
  line: number;
  /** Physical lines that the row covers; of a Bundle: entries, that is 1. */
  span: number;
  /** The row as it was, for storing sealed and for the file of rejected rows: see `rawRow`. */
  raw: string;
  /** Of a rejected one the external id is known only where it may be stored and shown. */
} & ({ ok: true; person: ImportedPerson } | ({ ok: false; kind?: PersonKind; externalId?: string } & Rejection));

/** The file's own columns in their order, before its first row. */
interface FileColumns {
  type: 'columns';
  columns: string[];
  /** Those from which nothing is read, as far as their names may be shown. */
  ignored?: string[];
  /** These are rejected rows of an earlier import that come back. */
  areRejects?: boolean;
}

/** How a reference is written: shown where it can't be resolved, since it holds nothing personal. */
export type ReferenceForm = 'Practitioner/…' | 'PractitionerRole/…' | 'urn:uuid:…' | 'urn:oid:…' | 'identifier';

/** What a FHIR resource says beside the people; keys are those of `reference-key.ts`. */
export type ResourceReference =
  /** A key under which references may mean this person. */
  | { type: 'alias'; kind: PersonKind; key: string; externalId: string }
  /** A key of a PractitionerRole, the key of the practitioner who fills it, and when that is over, where it is known. */
  | { type: 'role'; key: string; practitionerKey: string; ends?: Date }
  | LinkReference;

/** A client's provider, as one resource names them. */
export interface LinkReference {
  type: 'link';
  clientKey: string;
  providerKey: string;
  /** 1: generalPractitioner, 2: CareTeam, 3: Encounter. */
  rank: 1 | 2 | 3;
  form: ReferenceForm;
  /** Since when, and when it is over, where that is known. */
  at?: Date;
  ends?: Date;
  /** Place in its own resource, from 0. */
  position: number;
}

export type ReadEvent = FileColumns | ReadRow | ResourceReference;

export type ImportKind = 'providers' | 'clients' | 'fhir';
export type ImportFormat = 'csv' | 'ndjson' | 'fhir-ndjson' | 'fhir-json';

export interface ReadOptions {
  format: ImportFormat;
  kind: ImportKind;
  /** Sizes in characters (UTF-16 units). */
  limits?: { row: number; cell: number };
  /** Identifier systems of which a FHIR resource's external id is the value, the first that it has; else its id. */
  idSystems?: readonly string[];
  /** The present: of names, emails and identifiers those that hold now count first. */
  now: Date;
  /** The file is taken for the whole population: a page of a search is refused. */
  whole?: boolean;
}

/**
 * A row as it was, in one string: a JSON list of its cells in the order of the file's columns, or a JSON string of its
 * text where no cells could be told apart; nothing where it was too large to keep.
 */
export function rawRow(row: readonly string[] | string): string {
  return JSON.stringify(row);
}

/** The cells of a raw row, or its text. Throws SyntaxError on what is neither. */
export function parseRaw(raw: string): { cells: string[]; text: string } {
  const value: unknown = JSON.parse(raw);
  return Array.isArray(value) ? { cells: value.map(String), text: '' } : { cells: [], text: String(value) };
}
