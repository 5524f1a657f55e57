import type { PersonKind } from '../../../people/model/person.js';
import type { ReadRow, ReferenceFact } from '../row/import-row.js';
import type { JsonObject } from '../row/json-object.js';
import { rawCells } from '../row/raw-row.js';
import { type Rejection, rejection } from '../row/rejection.js';
import { isImportableId, validatePerson } from '../row/validate-person.js';
import { fhirPerson, isReplaced } from './fhir-person.js';
import { aliasFacts, careTeamLinks, encounterLinks, generalPractitionerLinks, roleFacts } from './fhir-references.js';

const PEOPLE: Record<string, PersonKind> = { Practitioner: 'provider', Patient: 'client' };

/** A resource that is neither a person nor of any use to an import (Observation, Organization …). */
function isOtherResource(type: unknown): boolean {
  return typeof type === 'string' && /^[A-Z][A-Za-z]{1,60}$/.test(type) && type !== 'Bundle';
}

export interface ResourceContext {
  line: number;
  idSystems: readonly string[];
  now: Date;
  /** Of the Bundle's entry, where there is one. */
  fullUrl?: string;
}

/** A row of what could be read, for the file of rejected rows; the providers come from the links. */
function rawPerson(kind: PersonKind, fields: (string | undefined)[]): string {
  return rawCells([kind, ...fields.map((field) => field ?? ''), '']);
}

/** What is wrong with a person's resource that no check of its fields could tell. */
function ownFault(resource: JsonObject, unsplit: string | undefined): Rejection | undefined {
  if (isReplaced(resource)) return rejection('merged-record');
  return unsplit === undefined ? undefined : rejection('unsplit-name', { field: 'firstName' });
}

function* personEvents(
  kind: PersonKind,
  resource: JsonObject,
  context: ResourceContext,
): Generator<ReadRow | ReferenceFact> {
  const { unsplit, ...candidate } = fhirPerson(kind, resource, context.idSystems, context.now);
  const { externalId, email, firstName, lastName = unsplit } = candidate;
  const fault = ownFault(resource, unsplit);
  const validated = fault ? { rejection: fault } : validatePerson(candidate);
  const raw = rawPerson(kind, [externalId, email, firstName, lastName]);
  const at = { type: 'row', line: context.line, span: 1, raw } as const;
  const known = isImportableId(externalId) ? { externalId } : {};
  if ('person' in validated) yield { ...at, ok: true, person: validated.person };
  else yield { ...at, ok: false, kind, ...known, ...validated.rejection };

  if (known.externalId === undefined) return;
  const aliases = aliasFacts(kind, resource, context.fullUrl, known.externalId);
  yield* aliases;
  const ownKey = aliases[0]?.key;
  if (kind === 'client' && ownKey) yield* generalPractitionerLinks(resource, ownKey);
}

/**
 * What one FHIR R4 resource says: a row for a Practitioner or Patient with the keys that mean them, facts for a
 * PractitionerRole, CareTeam or Encounter, nothing for other resources.
 * @returns the events; undefined when a rejected row must stand for it, since it is no resource at all
 */
export function resourceEvents(
  resource: JsonObject,
  context: ResourceContext,
): Iterable<ReadRow | ReferenceFact> | undefined {
  const type = resource.resourceType;
  const kind = personKindOf(type);
  if (kind) return personEvents(kind, resource, context);
  if (type === 'PractitionerRole') return roleFacts(resource, context.fullUrl);
  if (type === 'CareTeam') return careTeamLinks(resource);
  if (type === 'Encounter') return encounterLinks(resource);
  return isOtherResource(type) ? [] : undefined;
}

/** The kind of person that a resource of this type is a row of; all others that are resources at all support those. */
export function personKindOf(type: unknown): PersonKind | undefined {
  return typeof type === 'string' && Object.hasOwn(PEOPLE, type) ? PEOPLE[type] : undefined;
}

/** Whether a resource of this type is no person, and so no row. */
export function isSupporting(type: unknown): boolean {
  return isOtherResource(type) && personKindOf(type) === undefined;
}
