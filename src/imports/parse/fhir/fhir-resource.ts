import type { PersonKind } from '../../../people/model/person.js';
import {
  type AliasReference,
  type LinkReference,
  type ReadRow,
  type ResourceReference,
  type RoleReference,
  rawCells,
} from '../row/import-row.js';
import { type JsonObject, objectsIn, textIn } from '../row/json-object.js';
import { identifierKeys, literalKeys, referenceForm, referenceKey, uriKey } from '../row/reference-key.js';
import { type Rejection, rejection } from '../row/rejection.js';
import { isImportableId, validatePerson } from '../row/validate-person.js';
import { endOf, sinceOf } from './fhir-period.js';
import { fhirPerson, isReplaced } from './fhir-person.js';

/** Statuses of an Encounter under which it says nothing about who treats whom. */
const VOID: readonly (string | undefined)[] = ['entered-in-error', 'proposed', 'cancelled'];

/** Every key under which references may mean this resource. */
function ownKeys(kind: PersonKind, type: string, resource: JsonObject, fullUrl: string | undefined): string[] {
  const id = textIn(resource.id);
  const keys = [
    ...(id ? literalKeys(kind, type, id) : []),
    ...(fullUrl ? [uriKey(kind, fullUrl)].filter((key) => key !== undefined) : []),
    ...identifierKeys(kind, resource.identifier),
  ];
  return [...new Set(keys)];
}

/** The keys of a Practitioner or Patient; a rejected row has them, too, as long as its external id is one. */
function aliasReferences(kind: PersonKind, resource: JsonObject, fullUrl: string | undefined, externalId: string) {
  const type = kind === 'provider' ? 'Practitioner' : 'Patient';
  return ownKeys(kind, type, resource, fullUrl).map(
    (key): AliasReference => ({ type: 'alias', kind, key, externalId }),
  );
}

/** Who fills a PractitionerRole, under each of the role's keys; nobody when it is not active any more. */
function roleReferences(resource: JsonObject, fullUrl: string | undefined): RoleReference[] {
  const practitionerKey = referenceKey('provider', resource.practitioner);
  if (!practitionerKey || resource.active === false) return [];
  const keys = ownKeys('provider', 'PractitionerRole', resource, fullUrl).filter((key) => key !== practitionerKey);
  const ends = endOf(resource.period);
  return keys.map((key) => ({ type: 'role', key, practitionerKey, ...(ends && { ends }) }));
}

function link(
  clientKey: string,
  rank: LinkReference['rank'],
  reference: unknown,
  position: number,
  when: Pick<LinkReference, 'at' | 'ends'> = {},
): LinkReference[] {
  const providerKey = referenceKey('provider', reference);
  if (!providerKey) return [];
  return [{ type: 'link', clientKey, providerKey, form: referenceForm(reference), rank, position, ...when }];
}

/** A Patient's generalPractitioner, in the order given. */
function generalPractitionerLinks(patient: JsonObject, clientKey: string): LinkReference[] {
  const references = objectsIn(patient.generalPractitioner);
  return references.flatMap((reference, position) => link(clientKey, 1, reference, position));
}

/**
 * The providers that a CareTeam names for its subject: a team that is active, or says nothing of it. Its members, or
 * itself, may have ended: the date that decides follows from the whole import.
 */
function careTeamLinks(team: JsonObject): LinkReference[] {
  const clientKey = referenceKey('client', team.subject);
  if (!clientKey || ![undefined, 'active'].includes(textIn(team.status))) return [];
  return objectsIn(team.participant).flatMap(({ period, member }, position) => {
    const [at, ends] = [sinceOf(period, team.period), endOf(period, team.period)];
    return link(clientKey, 2, member, position, { ...(at && { at }), ...(ends && { ends }) });
  });
}

/** The providers that an Encounter names for its subject; relatives are none. */
function encounterLinks(encounter: JsonObject): LinkReference[] {
  const clientKey = referenceKey('client', encounter.subject);
  if (!clientKey || VOID.includes(textIn(encounter.status))) return [];
  return objectsIn(encounter.participant).flatMap(({ period, individual }, position) => {
    const at = sinceOf(period, encounter.period);
    return link(clientKey, 3, individual, position, at && { at });
  });
}

const PEOPLE: Record<string, PersonKind> = { Practitioner: 'provider', Patient: 'client' };

/** A resource that is neither a person nor of any use to an import (Observation, Organization …). */
function isOtherResource(type: unknown): boolean {
  return typeof type === 'string' && /^[A-Z][A-Za-z]{1,60}$/.test(type) && type !== 'Bundle';
}

interface ResourceContext {
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

/** What is wrong with a person's resource that no check of its fields shows. */
function ownFault(resource: JsonObject, unsplit: string | undefined): Rejection | undefined {
  if (isReplaced(resource)) return rejection('merged-record');
  return unsplit === undefined ? undefined : rejection('unsplit-name', { field: 'firstName' });
}

function* personEvents(
  kind: PersonKind,
  resource: JsonObject,
  context: ResourceContext,
): Generator<ReadRow | ResourceReference> {
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
  const aliases = aliasReferences(kind, resource, context.fullUrl, known.externalId);
  yield* aliases;
  const ownKey = aliases[0]?.key;
  if (kind === 'client' && ownKey) yield* generalPractitionerLinks(resource, ownKey);
}

/**
 * What one FHIR R4 resource says: a row for a Practitioner or Patient with the keys that mean them, references for a
 * PractitionerRole, CareTeam or Encounter, nothing for other resources.
 * @returns the events; undefined when a rejected row must stand for it, since it is no resource at all
 */
export function resourceEvents(
  resource: JsonObject,
  context: ResourceContext,
): Iterable<ReadRow | ResourceReference> | undefined {
  const type = resource.resourceType;
  const kind = personKindOf(type);
  if (kind) return personEvents(kind, resource, context);
  if (type === 'PractitionerRole') return roleReferences(resource, context.fullUrl);
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
