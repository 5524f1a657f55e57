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

interface Row {
  type: 'row';
  /** The physical line, from 1, on which the row begins. */
  line: number;
  /** Physical lines that the row covers; of a Bundle: entries, that is 1. */
  span: number;
  /** The row as it was, for storing sealed and for the file of rejected rows: see `raw-row.ts`. */
  raw: string;
}

export type AcceptedRow = Row & { ok: true; person: ImportedPerson };
/** `externalId` only where it is one that may be stored and shown. */
export type RejectedRow = Row & { ok: false; kind?: PersonKind; externalId?: string } & Rejection;
export type ReadRow = AcceptedRow | RejectedRow;

/** The file's own columns in their order, before its first row. */
export interface FileColumns {
  type: 'columns';
  columns: string[];
  /** Those from which nothing is read, as far as their names may be shown. */
  ignored?: string[];
  /** These are rejected rows of an earlier import that come back. */
  areRejects?: boolean;
}

/** A key (see `reference-key.ts`) under which references may mean this person. */
export interface AliasReference {
  type: 'alias';
  kind: PersonKind;
  key: string;
  externalId: string;
}

/** A key of a PractitionerRole, and the key of the practitioner who fills it. */
export interface RoleReference {
  type: 'role';
  key: string;
  practitionerKey: string;
  /** When it is over, where that is known. */
  ends?: Date;
}

/** How a reference is written: shown where it can't be resolved, since it holds nothing personal. */
export type ReferenceForm = 'Practitioner/…' | 'PractitionerRole/…' | 'urn:uuid:…' | 'urn:oid:…' | 'identifier';

/** A client's provider, as one resource names them. */
export interface LinkReference {
  type: 'link';
  clientKey: string;
  providerKey: string;
  /** 1: generalPractitioner, 2: CareTeam, 3: Encounter. */
  rank: 1 | 2 | 3;
  /** How the provider is referred to. */
  form: ReferenceForm;
  /** Since when, where that is known. */
  at?: Date;
  /** When it is over, where that is known. */
  ends?: Date;
  /** Place in its own resource, from 0. */
  position: number;
}

export type ResourceReference = AliasReference | RoleReference | LinkReference;

/**
 * The account of a file that was read to its end, in units: physical lines, of a Bundle its entries. Every unit is one
 * of these: `header + blank + supporting + (the sum of all rows' span) = units`.
 */
export interface FileSummary {
  type: 'end';
  units: number;
  header: number;
  blank: number;
  /** Resources that are not people: roles, care teams, encounters, and those that an import has no use for. */
  supporting: number;
}

export type ReadEvent = FileColumns | ReadRow | ResourceReference | FileSummary;

/** Sizes in characters (UTF-16 units). */
export interface ReadLimits {
  row: number;
  cell: number;
}

export const DEFAULT_LIMITS: ReadLimits = { row: 1024 * 1024, cell: 64 * 1024 };

export type ImportKind = 'providers' | 'clients' | 'fhir';
export type ImportFormat = 'csv' | 'ndjson' | 'fhir-ndjson' | 'fhir-json';

export interface ReadOptions {
  format: ImportFormat;
  kind: ImportKind;
  limits?: ReadLimits;
  /** Identifier systems of which a FHIR resource's external id is the value, the first that it has; else its id. */
  idSystems?: readonly string[];
  /** The present: of names, emails and identifiers those that hold now count first. */
  now: Date;
  /** The file is taken for the whole population: a page of a search is refused. */
  whole?: boolean;
}

/**
 * A row as it was, in one string: a JSON list of its cells in the order of the file's columns, or a JSON string of its
 * text where no cells could be told apart (broken JSON, broken quotes).
 */
export function rawCells(cells: readonly string[]): string {
  return JSON.stringify(cells);
}

/** The raw form of a row that has no cells: its text, or nothing where it was too large to keep. */
export function rawText(text: string): string {
  return JSON.stringify(text);
}

/** The cells of a raw row, or its text. Throws SyntaxError on what is neither. */
export function parseRaw(raw: string): { cells: string[]; text: string } {
  const value: unknown = JSON.parse(raw);
  return Array.isArray(value) ? { cells: value.map(String), text: '' } : { cells: [], text: String(value) };
}
