import type { PersonKind } from '../../../people/model/person.js';
import type { LinkReference, ReadOptions, ReadRow, ResourceReference } from '../row/import-row.js';
import { type Rejection, rejection } from '../row/rejection.js';
import { isImportableId, rowOf, validatePerson } from '../row/validate-person.js';
import { type JsonObject, type JsonRecord, parseObject } from '../text/json-records.js';
import { endOf, fhirPerson, objectsIn, sinceOf, textIn } from './fhir-person.js';
import { identifierKeys, literalKeys, referenceForm, referenceKey, uriKey } from './reference-key.js';

interface FhirOptions extends Pick<ReadOptions, 'format' | 'idSystems' | 'now'> {
  limits: { row: number };
}

type FhirEvent = ReadRow | ResourceReference;

const KINDS = new Map<unknown, PersonKind>([
  ['Practitioner', 'provider'],
  ['Patient', 'client'],
]);

/** Any type of FHIR resource that can stand in a file. */
function isResourceType(type: unknown): boolean {
  return typeof type === 'string' && /^[A-Z][A-Za-z]{1,60}$/.test(type) && type !== 'Bundle';
}

/**
 * What one FHIR R4 resource says, on a line of its own or in an entry of a Bundle: a row for a Practitioner or Patient
 * with the keys that mean them, references for a PractitionerRole, CareTeam or Encounter, nothing for other resources.
 */
export function fhirEvents(record: JsonRecord, options: FhirOptions): Iterable<FhirEvent> {
  const { text } = record;
  if (text === undefined) return tooLarge(record, options);
  const parsed = parseObject(text);
  if (!parsed) return [rowOf(record, text, rejection('bad-json'))];
  const isEntry = options.format === 'fhir-json';
  const resource = isEntry ? objectsIn([parsed.resource])[0] : parsed;
  const type = resource?.resourceType;
  if (!resource || !isResourceType(type)) return [rowOf(record, text, rejection('not-a-person'))];
  const fullUrl = isEntry ? textIn(parsed.fullUrl) : undefined;
  const kind = KINDS.get(type);
  if (kind) return personEvents(kind, resource, record, fullUrl, options);
  if (type === 'PractitionerRole') return roleReferences(resource, fullUrl);
  if (type === 'CareTeam') return careTeamLinks(resource);
  return type === 'Encounter' ? encounterLinks(resource) : [];
}

/** What is too large to be read is a row only where it may be a person. */
function tooLarge(record: JsonRecord, { idSystems = [], limits }: FhirOptions): ReadRow[] {
  const { resourceType, id } = record;
  const kind = KINDS.get(resourceType);
  if (!kind && isResourceType(resourceType)) return [];
  const externalId = kind && idSystems.length === 0 ? id : undefined;
  return [rowOf(record, '', rejection('row-too-large', { limit: limits.row }), { kind, externalId })];
}

function* personEvents(
  kind: PersonKind,
  resource: JsonObject,
  record: JsonRecord,
  fullUrl: string | undefined,
  { idSystems = [], now }: FhirOptions,
): Generator<FhirEvent> {
  const { unsplit, ...candidate } = fhirPerson(kind, resource, idSystems, now);
  const { externalId, email, firstName, lastName = unsplit } = candidate;
  // What could be read, for the file of rejected rows; the providers come from the links.
  const cells = [kind, externalId, email, firstName, lastName, ''].map((field) => field ?? '');
  yield rowOf(record, cells, ownFault(resource, unsplit) ?? validatePerson(candidate), { kind, externalId });

  // A rejected person is meant by references, too, as long as the external id is one.
  if (!isImportableId(externalId)) return;
  const keys = ownKeys(kind, kind === 'provider' ? 'Practitioner' : 'Patient', resource, fullUrl);
  for (const key of keys) yield { type: 'alias', kind, key, externalId };
  const [clientKey] = keys;
  if (kind === 'provider' || !clientKey) return;
  const practitioners = objectsIn(resource.generalPractitioner);
  yield* practitioners.flatMap((reference, position) => link(clientKey, 1, reference, position));
}

/** What is wrong with a person's resource that no check of its fields shows. */
function ownFault(resource: JsonObject, unsplit: string | undefined): Rejection | undefined {
  // The record lives on in another one, so that it is no second person.
  if (objectsIn(resource.link).some(({ type }) => type === 'replaced-by')) return rejection('merged-record');
  return unsplit === undefined ? undefined : rejection('unsplit-name', { field: 'firstName' });
}

/** Every key under which references may mean this resource. */
function ownKeys(kind: PersonKind, type: string, resource: JsonObject, fullUrl: string | undefined): string[] {
  const id = textIn(resource.id);
  const urlKey = fullUrl && uriKey(kind, fullUrl);
  const keys = [...(id ? literalKeys(kind, type, id) : []), ...(urlKey ? [urlKey] : [])];
  return [...new Set([...keys, ...identifierKeys(kind, resource.identifier)])];
}

/** Who fills a PractitionerRole, under each of the role's keys; nobody when it is not active any more. */
function roleReferences(role: JsonObject, fullUrl: string | undefined): FhirEvent[] {
  const practitionerKey = referenceKey('provider', role.practitioner);
  if (!practitionerKey || role.active === false) return [];
  const keys = ownKeys('provider', 'PractitionerRole', role, fullUrl).filter((key) => key !== practitionerKey);
  const ends = endOf(role.period);
  return keys.map((key) => ({ type: 'role', key, practitionerKey, ...(ends && { ends }) }));
}

function link(
  clientKey: string,
  rank: LinkReference['rank'],
  reference: unknown,
  position: number,
  at?: Date,
  ends?: Date,
): LinkReference[] {
  const providerKey = referenceKey('provider', reference);
  if (!providerKey) return [];
  const when = { ...(at && { at }), ...(ends && { ends }) };
  return [{ type: 'link', clientKey, providerKey, form: referenceForm(reference), rank, position, ...when }];
}

/**
 * The providers that a CareTeam names for its subject: a team that is active, or says nothing of it. Its members, or
 * itself, may have ended: the date that decides follows from the whole import.
 */
function careTeamLinks(team: JsonObject): LinkReference[] {
  const clientKey = referenceKey('client', team.subject);
  if (!clientKey || ![undefined, 'active'].includes(textIn(team.status))) return [];
  return objectsIn(team.participant).flatMap(({ period, member }, position) =>
    link(clientKey, 2, member, position, sinceOf(period, team.period), endOf(period, team.period)),
  );
}

/** Statuses of an Encounter under which it says nothing about who treats whom. */
const VOID: readonly (string | undefined)[] = ['entered-in-error', 'proposed', 'cancelled'];

/** The providers that an Encounter names for its subject; relatives are none. */
function encounterLinks(encounter: JsonObject): LinkReference[] {
  const clientKey = referenceKey('client', encounter.subject);
  if (!clientKey || VOID.includes(textIn(encounter.status))) return [];
  return objectsIn(encounter.participant).flatMap(({ period, individual }, position) =>
    link(clientKey, 3, individual, position, sinceOf(period, encounter.period)),
  );
}
